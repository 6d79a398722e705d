"""Run the tests: first those that may run side by side, then those that need a quiet machine.

    python tools/test.py [PYTEST ARGUMENT ...]

Passes its arguments on to pytest. Exits 1 when a test failed, when a file could not be collected,
or when no test ran; the last line gives the sums of both runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
NO_TESTS = 5  # pytest's exit status for "nothing to run"


class Counts(NamedTuple):
    """Numbers of tests; expected failures are among the skipped."""

    passed: int
    failed: int
    skipped: int


def count(report: Path) -> Counts:
    """The sums of a JUnit report; an error while setting up counts as a failed test."""
    passed = failed = skipped = 0
    for suite in ET.parse(report).getroot().iter("testsuite"):
        bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        left_out = int(suite.get("skipped", 0))
        failed += bad
        skipped += left_out
        passed += max(int(suite.get("tests", 0)) - bad - left_out, 0)
    return Counts(passed, failed, skipped)


def run(name: str, arguments: list[str]) -> tuple[int, Counts]:
    report = ROOT / "build" / f"tests-{name}.xml"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", *arguments]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    return status, count(report) if report.exists() else Counts(0, 0, 0)


def main(arguments: list[str]) -> int:
    started = time.monotonic()
    workers = str(min(os.cpu_count() or 1, 8))
    runs = [
        run("together", ["-n", workers, "--dist", "loadgroup", "-m", "not alone", *arguments]),
        run("alone", ["-m", "alone", *arguments]),
    ]
    total = Counts(*(sum(numbers) for numbers in zip(*(counts for _, counts in runs), strict=True)))
    bad = [status for status, _ in runs if status not in (0, NO_TESTS)]
    print(f"\n{time.monotonic() - started:.0f} s in all")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 1 if bad or total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
