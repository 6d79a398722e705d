"""The official conformance suite as a program: how it is started, and what it found.

Its exit status says little (a scenario that checked nothing passes, a broken SHOULD passes), so what
counts here is the file of checks that it writes for each scenario.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

from tests import needs

CLIENT = Path(__file__).with_name("client.py")
RESULTS = needs.ROOT / "build" / "conformance"
TIMEOUT = 30_000  # milliseconds for one scenario, the suite's own default
HARNESS = "wire-schema-valid"  # the suite checks every message against the schema: no scenario is about that

_TIMESTAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


@dataclass(frozen=True)
class Check:
    id: str
    status: str  # SUCCESS, FAILURE, WARNING, INFO, SKIPPED
    message: str

    @property
    def bad(self) -> bool:
        """A broken MUST, or a broken SHOULD."""
        return self.status in ("FAILURE", "WARNING")


@dataclass(frozen=True)
class Outcome:
    """What one scenario found. `status` is the suite's own verdict where it was run by itself."""

    checks: tuple[Check, ...]
    command: str
    status: int = 0
    said: str = field(default="", repr=False)

    @property
    def passed(self) -> int:
        return sum(check.status == "SUCCESS" for check in self.checks)

    @property
    def bad(self) -> Counter[str]:
        """Ids of the checks that failed; one id may stand for several checks."""
        return Counter(check.id for check in self.checks if check.bad)

    @property
    def fails(self) -> bool:
        """Whether anything was wrong, or nothing was tested at all."""
        tested = any(check.status == "SUCCESS" and check.id != HARNESS for check in self.checks)
        return bool(self.bad) or self.status != 0 or not tested

    def __str__(self) -> str:
        lines = [f"{check.status:7} {check.id}  {check.message}" for check in self.checks if check.bad]
        lines += [f"exit status {self.status}"] if self.status else []
        lines += [line for line in self.said.splitlines()[-20:] if line.strip()]
        return "\n".join([f"{self.passed} checks passed", *lines, f"again: {self.command}"])


def command(*arguments: str) -> list[str]:
    package = needs.npm_package("@modelcontextprotocol/conformance")
    return [needs.node(), str(package / "dist" / "index.js"), *arguments]


def listed(*arguments: str) -> str:
    """What `list` prints, for example with `--requirements 2026-07-28`."""
    done = subprocess.run(command("list", *arguments), capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def run_server_requirements(url: str, revision: str) -> dict[str, Outcome]:
    """All server scenarios that a revision asks for, one after the other in one process of the suite."""
    folder = RESULTS / "server" / revision / "required"
    rmtree(folder, ignore_errors=True)
    line = command("server", "--url", url, "--requirements", revision, "-o", str(folder))
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    found = {
        name.removeprefix("server-"): Outcome(checks, _server_line(name.removeprefix("server-"), revision))
        for name, checks in _read(folder).items()
    }
    assert found, f"the suite wrote no results:\n{done.stdout}\n{done.stderr}"
    return found


def run_server_scenario(url: str, scenario: str, revision: str) -> Outcome:
    """One server scenario by itself."""
    folder = RESULTS / "server" / revision / scenario
    line = command("server", "--url", url, "--scenario", scenario, "--spec-version", revision, "--force")
    return _run([*line, "-o", str(folder)], folder, again=_server_line(scenario, revision))


def run_client_scenario(scenario: str, revision: str) -> Outcome:
    """One client scenario by itself. The suite starts its server, and then our client as a process."""
    folder = RESULTS / "client" / revision / scenario
    # `exec`: the suite can only kill the shell that it starts, so the shell has to become the client.
    client = f"exec {shlex.quote(sys.executable)} -W error {shlex.quote(str(CLIENT))}"
    line = command("client", "--command", client, "--scenario", scenario, "--spec-version", revision)
    line += ["--force", "--timeout", str(TIMEOUT), "-o", str(folder)]
    return _run(line, folder, again=shlex.join(line))


def read_results(side: str, revision: str) -> dict[str, Outcome]:
    """What the last runs left behind, by scenario."""
    found = _read(RESULTS / side / revision)
    # Below the folder of their run: `required/server-ping`, `server-stateless/server-server-stateless`,
    # `auth/basic-cimd/auth/basic-cimd`.
    return {_scenario(name, side): Outcome(checks, "") for name, checks in sorted(found.items())}


def _scenario(name: str, side: str) -> str:
    if side == "server":
        return name.partition("/")[2].removeprefix("server-")
    parts = name.split("/")
    return "/".join(parts[len(parts) // 2 :])


def _run(line: list[str], folder: Path, *, again: str) -> Outcome:
    rmtree(folder, ignore_errors=True)
    done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT / 1000 + 30, check=False)
    checks = [checks for found in _read(folder).values() for checks in found]
    said = "".join(path.read_text() for path in folder.rglob("stderr.txt"))
    assert checks, f"the suite wrote no results:\n{done.stdout}\n{done.stderr}\n{said}"
    return Outcome(tuple(checks), again, done.returncode, said)


def _read(folder: Path) -> dict[str, tuple[Check, ...]]:
    """The checks of each scenario in a folder of results."""
    found: dict[str, tuple[Check, ...]] = {}
    for path in folder.rglob("checks.json"):
        name = _TIMESTAMP.sub("", path.parent.relative_to(folder).as_posix())
        found[name] = tuple(
            Check(check["id"], check["status"], check.get("errorMessage") or check.get("description") or "")
            for check in json.loads(path.read_text())
        )
    return found


def _server_line(scenario: str, revision: str) -> str:
    """How a person runs it again."""
    line = command("server", "--url", "http://127.0.0.1:8000/mcp", "--scenario", scenario)
    line += ["--spec-version", revision, "--force"]
    return f"python examples/everything/server.py, and {shlex.join(line)}"
