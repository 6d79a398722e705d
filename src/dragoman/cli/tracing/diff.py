"""`dragoman trace diff`: what differs between two calls."""

from __future__ import annotations

import os
from argparse import Namespace

from dragoman.cli import failure, output
from dragoman.cli.brush import Brush
from dragoman.cli.tracing import chosen
from dragoman.cli.tracing.show import record
from dragoman.errors import UsageError
from dragoman.host.trace.comparing import compare, pair
from dragoman.schema.escapes import harmless

DIFFERENT = failure.TOOL


def run(options: Namespace) -> int:
    """Compare two calls; returns the exit status."""
    words = list(options.words)
    file = words.pop(0) if len(words) == 3 or os.path.isfile(words[0]) else None  # noqa: PTH113  # no name makes it raise
    if not 1 <= len(words) <= 2:
        raise UsageError("expected one call or two, by id or name, behind the trace's file")
    faults = chosen.Faults()
    compared = compare(*pair(chosen.place(file), *words, on_fault=faults))
    if options.json:
        value = {
            "told": compared.told,
            "differ": compared.parts,
            "was": record(compared.was, full=False),
            "now": record(compared.now, full=False),
        }
        output.envelope(ok=True, value=value)
    else:
        brush = Brush.for_stdout(colour=not options.no_color, full=True)
        output.line(brush("bold", harmless(compared.told)))
        for part, lines in compared.parts.items():
            for place, line in enumerate(lines):
                label = brush("yellow", part.ljust(11)) if place == 0 else " " * 11
                output.line(f"  {label}{harmless(line)}")
        faults.note()
    return failure.DONE if compared.same else DIFFERENT
