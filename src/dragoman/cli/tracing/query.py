"""`dragoman trace query`: a JSONPath query over the lines of a trace, or over its calls."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.cli import output
from dragoman.cli.tracing import chosen
from dragoman.errors import UsageError
from dragoman.host.trace.asking import ask
from dragoman.host.trace.calls import calls, whole
from dragoman.host.trace.paths import normal
from dragoman.host.trace.reading import lines


def run(options: Namespace) -> int:
    """Print the nodes of the query; returns the exit status."""
    query, file = _words(options.words)
    faults = chosen.Faults()
    path = chosen.place(file)
    values: Iterator[Any] = (
        (whole(call) for call in calls(path, on_fault=faults))
        if options.calls
        else (line.full() for line in lines(path, on_fault=faults))
    )
    nodes = ask(query, values)
    if options.json:
        found = [{"path": normal(place), "value": value} for place, value in nodes]
        output.envelope(ok=True, value={"nodes": found, "unreadable": faults.record()})
        return 0
    for place, value in nodes:
        text = msgspec.json.encode(value).decode()
        output.text(f"{normal(place)}\t{text}" if options.paths else text)
    faults.note()
    return 0


def _words(words: list[str]) -> tuple[str, str | None]:
    """The query, which begins with `$`, and the file if it was named."""
    queries = [word for word in words if word.startswith("$")]
    files = [word for word in words if not word.startswith("$")]
    if len(queries) != 1 or len(files) > 1:
        raise UsageError("expected a query that begins with $, and at most one file beside it")
    return queries[0], files[0] if files else None
