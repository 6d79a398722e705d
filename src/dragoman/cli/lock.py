"""`dragoman lock`: write down what servers list, and tell later what is different."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.cli import failure, output
from dragoman.cli.brush import Brush
from dragoman.cli.reach import Reached, reach
from dragoman.errors import UsageError
from dragoman.host.lock import FILE, Comparison, Lock, read_lock, write_lock
from dragoman.host.suspicion import Finding, inspect, look_alikes

_STYLES: Final = {"breaking": "red", "gone": "red", "new": "yellow", "compatible": "yellow", "text": "blue"}


@dataclass(frozen=True, slots=True)
class _Report:
    """One server against the lock. `known` is whether the lock had it."""

    reached: Reached
    known: bool
    tools: tuple[Comparison, ...] = ()

    @property
    def differs(self) -> bool:
        return self.reached.ok and (not self.known or any(item.state != "same" for item in self.tools))


def run(options: Namespace) -> int:
    """Compare, or write; returns the exit status."""
    try:
        path = Path(options.file) if options.file else Path(options.folder) / FILE
        fresh = not path.exists()
        lock = Lock() if fresh else read_lock(path)
        reached = asyncio.run(reach(options))
        reports = [_report(lock, item) for item in reached]
        writes = options.update or fresh
        if writes and any(item.ok for item in reached):
            write_lock(path, _locked(lock, reached, prune=not options.target))
    except UsageError as exc:
        return output.fail(exc, json=options.json)
    findings = _findings(reached)
    state = "written" if writes else "changed" if any(item.differs for item in reports) else "same"
    if options.json:
        output.envelope(ok=True, value=_record(path, state, reports=reports, findings=findings))
    else:
        _paint(path, reports, findings=findings, fresh=fresh, written=writes)
    if state == "changed" or (options.strict and findings):
        return failure.TOOL
    return failure.DONE if all(item.ok for item in reached) else failure.CONNECT


def _report(lock: Lock, reached: Reached) -> _Report:
    known = reached.server in lock.servers
    if not reached.ok:
        return _Report(reached, known)
    return _Report(reached, known, tuple(lock.compare(reached.server, reached.tools)))


def _locked(lock: Lock, reached: Sequence[Reached], *, prune: bool) -> Lock:
    """The lock as it is to be; a server that was not reached stays as it was."""
    names = {item.server for item in reached}
    for gone in set(lock.servers) - names if prune else ():
        lock = lock.without(gone)
    for item in reached:
        if item.ok:
            lock = lock.with_(item.server, item.tools)
    return lock


def _findings(reached: Iterable[Reached]) -> list[Finding]:
    pairs = [(item.server, tool) for item in reached for tool in item.tools]
    found = [finding for server, tool in pairs for finding in inspect(server, msgspec.to_builtins(tool))]
    return sorted({*found, *look_alikes((server, tool.name) for server, tool in pairs)})


def _record(
    path: Path, state: str, *, reports: Sequence[_Report], findings: Sequence[Finding]
) -> dict[str, Any]:
    return {
        "file": str(path),
        "state": state,
        "servers": [
            {
                "server": item.reached.server,
                "locked": item.known,
                **({} if item.reached.ok else {"error": item.reached.why}),
                "tools": [
                    {"tool": one.tool, "state": one.state, "changes": list(map(_change, one.changes))}
                    for one in item.tools
                ],
            }
            for item in reports
        ],
        "findings": [msgspec.to_builtins(finding) for finding in findings],
    }


def _change(change: Any) -> dict[str, str]:
    told: dict[str, str] = msgspec.to_builtins(change)
    return told


# For people ----------------------------------------------------------------------------------------------


def _paint(
    path: Path, reports: Sequence[_Report], *, findings: Sequence[Finding], fresh: bool, written: bool
) -> None:
    brush = Brush.for_stdout()
    wide = max(output.width(item.reached.server) for item in reports)
    for item in reports:
        name = output.flat(item.reached.server)
        lead = name + " " * (wide - output.width(name))
        output.line(f"{brush('bold', lead)}  {_summary(item, brush, fresh=fresh)}")
        if not fresh and item.known:
            _changes(item, brush)
    for finding in findings:
        output.line(f"{brush('yellow', 'suspicious')}  {output.flat(str(finding))}")
    if written:
        output.line(f"{brush('green', 'written')} {output.flat(str(path))}")
    elif any(item.differs for item in reports):
        output.note(f"not as in {path}\n  try: look at what changed, then `dragoman lock --update`")


def _summary(item: _Report, brush: Brush, *, fresh: bool) -> str:
    count = len(item.reached.tools)
    tools = "1 tool" if count == 1 else f"{count} tools"
    if not item.reached.ok:
        why = item.reached.why.partition("\n")[0]
        return brush("red", f"not reached: {output.flat(why)}")
    if fresh:
        return tools
    if not item.known:
        return f"{tools}, {brush('yellow', 'not in the lock')}"
    if not item.differs:
        return f"{tools}, {brush('green', 'as locked')}"
    many = sum(one.state != "same" for one in item.tools)
    return f"{tools}, {brush('red', f'{many} not as locked')}"


def _changes(item: _Report, brush: Brush) -> None:
    rows: list[tuple[str, str, str, str]] = []
    for one in item.tools:
        if one.state in ("new", "gone"):
            rows.append((one.tool, one.state, "", ""))
        rows += [(one.tool, change.kind, change.place, change.text) for change in one.changes]
    if not rows:
        return
    seen = ""
    lines = output.table([("", "", "", ""), *rows], output.columns() and (output.columns() or 0) - 2)[1:]
    for row, line in zip(rows, lines, strict=True):
        shown = line if row[0] != seen else " " * len(row[0]) + line[len(row[0]) :]
        seen = row[0]
        output.line("  " + shown.replace(row[1], brush(_STYLES[row[1]], row[1]), 1))
