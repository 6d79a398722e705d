"""`dragoman trace verify`: whether a trace is as it was written."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

from dragoman.cli import failure, output
from dragoman.cli.brush import Brush
from dragoman.cli.tracing import chosen
from dragoman.errors import UsageError
from dragoman.host.trace.verifying import Report, verify


def run(options: Namespace) -> int:
    """Check the trace; returns the exit status."""
    path = chosen.path(options)
    report = verify(path, key=_key(options.key_env), anchor=options.head)
    wrong = [finding for finding in report.findings if finding.wrong]
    count = len(wrong) + report.more
    summary = (
        f"{report.lines:,} lines in {report.files} file{'s' * (report.files != 1)}: "
        f"{'as written' if report.ok else f'{count:,} thing' + 's' * (count != 1) + ' wrong'}"
    )
    if options.json:
        value = _record(report)
        if not report.ok:
            value = {"kind": "tampered", "message": summary, **value}
        output.envelope(ok=report.ok, value=value)
    else:
        brush = Brush.for_stdout(colour=True, full=False)
        for finding in report.findings:
            mark = brush("red", "WRONG") if finding.wrong else brush("dim", "note ")
            output.line(f"{mark}  {output.flat(str(finding))}")
        if report.more:
            output.line(f"{brush('red', 'WRONG')}  {report.more:,} more")
        output.line(brush("green" if report.ok else "red", summary))
        output.line(f"last line  {report.seq}:{report.hash}")
    return failure.DONE if report.ok else failure.TOOL


def _key(name: str | None) -> bytes | None:
    if name is None:
        return None
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"--key-env {name}: there is no such variable, or it is empty")
    return value.encode()


def _record(report: Report) -> dict[str, Any]:
    return {
        "files": report.files,
        "lines": report.lines,
        "last": {"number": report.seq, "hash": report.hash},
        "findings": [
            {
                "file": str(each.file),
                "line": each.number or None,
                "kind": each.kind,
                "text": each.text,
                "wrong": each.wrong,
            }
            for each in report.findings
        ],
    }
