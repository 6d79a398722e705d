"""The house rules: what the linters do not know about this code base, checked on its syntax trees.

    python -m tools.house [FILE ...]

Prints one line a finding, `path:line: rule: what was found, what was expected`, and exits 1 when
there is any. Nothing is imported or run; `docs/architecture.md` gives the reasons for the rules.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from . import graph, rules, text
from .source import Finding, Source

ROOT = Path(__file__).resolve().parents[2]

Rule = Callable[[Source], Iterable[Finding]]

FILE_RULES: dict[str, Rule] = {**rules.RULES, **graph.RULES, **text.RULES}


def tracked() -> list[Path]:
    """The files of the repository: tracked ones, and new ones that are not ignored."""
    output = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    names = sorted({name for name in output.decode().split("\0") if name})
    return [path for name in names if (path := ROOT / name).is_file() and not path.is_symlink()]


def load(paths: Iterable[Path]) -> list[Source]:
    """Read the text files among `paths`; a file with NUL bytes or no UTF-8 is no text."""
    sources: list[Source] = []
    for path in paths:
        data = path.read_bytes()
        if b"\0" in data:
            continue
        try:
            sources.append(Source(path.relative_to(ROOT).as_posix(), data.decode()))
        except UnicodeDecodeError:
            continue
    return sources


def check(sources: list[Source]) -> Iterator[Finding]:
    """Every finding of every rule, file by file, then those that need all files at once."""
    for source in sources:
        for rule in FILE_RULES.values():
            yield from rule(source)
    for whole in graph.WHOLE.values():
        yield from whole(sources)


def main(arguments: list[str]) -> int:
    paths = [Path(argument).resolve() for argument in arguments] or tracked()
    findings = sorted(set(check(load(paths))))
    for finding in findings:
        print(finding)
    if findings:
        print(f"house rules: {len(findings)} finding(s); the reasons stand in docs/architecture.md")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
