"""`dragoman trace export`: a trace for OpenTelemetry, or as a page."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dragoman.cli import output
from dragoman.cli.tracing import chosen
from dragoman.cli.tracing.html import page
from dragoman.errors import UsageError
from dragoman.host.atomic import PRIVATE, replacing
from dragoman.host.trace.calls import calls, newest
from dragoman.host.trace.otel import documents

_PAGE: Final = 500  # calls of a page, unless more are asked for


def run(options: Namespace) -> int:
    """Write the trace in the form that was asked for; returns the exit status."""
    if options.json and options.output is None:
        raise UsageError("--json tells of the file that was written; it needs --output FILE")
    faults = chosen.Faults()
    pieces = _page(options, faults) if options.to == "html" else _spans(options, faults)
    count = _write(pieces, options.output)
    faults.note()
    if options.json:
        value = {"file": options.output, "bytes": count, "unreadable": faults.record()}
        output.envelope(ok=True, value=value)
    elif options.output is not None:
        output.note(f"{options.output}: {count:,} bytes")
    return 0


def _page(options: Namespace, faults: chosen.Faults) -> Iterator[bytes]:
    path = chosen.path(options)
    last = _PAGE if options.last is None else options.last
    found = newest(path, chosen.wanted(options), last=last, on_fault=faults)
    title = options.title or f"Trace {path.name}"
    for text in page(found, title=title, made=datetime.now(UTC)):
        yield text.encode("utf-8")


def _spans(options: Namespace, faults: chosen.Faults) -> Iterator[bytes]:
    path, wanted = chosen.path(options), chosen.wanted(options)
    if options.last is not None:
        found = newest(path, wanted, last=options.last, on_fault=faults).calls
        return documents(found, content=options.content)
    every = (call for call in calls(path, on_fault=faults) if wanted(call))
    return documents(every, content=options.content)


def _write(pieces: Iterable[bytes], name: str | None) -> int:
    """Write to a file, which is there when it is whole and is read by its owner alone, or to stdout."""
    if name is None or name == "-":
        return sum(sys.stdout.buffer.write(piece) for piece in pieces)
    target = Path(name)
    try:
        with replacing(target, mode=PRIVATE, durable=False) as file:
            return sum(file.write(piece) for piece in pieces)
    except OSError as exc:
        raise UsageError(f"{name} cannot be written: {exc.strerror}") from None
