"""`dragoman trace show`: the newest calls as a tree with a timeline."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from dragoman.cli import output
from dragoman.cli.brush import Brush
from dragoman.cli.tracing import chosen, paint
from dragoman.host.trace.calls import Call, Wanted, newest, whole
from dragoman.host.trace.timeline import stretches


def run(options: Namespace) -> int:
    """Show the calls; returns the exit status."""
    faults = chosen.Faults()
    wanted = chosen.wanted(options)
    last = None if options.all or options.call is not None else options.last
    found = newest(chosen.path(options), wanted, last=last, on_fault=faults)
    if options.json:
        value = {
            "calls": [record(call, full=options.full) for call in found.calls],
            "earlier": found.earlier,
            "unreadable": faults.record(),
        }
        output.envelope(ok=True, value=value)
        return 0
    brush = Brush.for_stdout(colour=not options.no_color, full=options.full)
    day = None
    for number, part in enumerate(stretches(found.calls)):
        if number:
            output.line("")
        today = part.begun.strftime("%Y-%m-%d")
        turn = found.turns.get(part.turn or "")
        for line in paint.stretch(brush, part, day=today if today != day else None, turn=turn):
            output.line(line)
        day = today
    faults.note()
    if not found.calls:
        output.note(
            "no call fits" if wanted != Wanted() else f"no call is written down in {chosen.path(options)}"
        )
    elif found.earlier:
        output.note(f"the newest {len(found.calls)}; --last N shows more, --all everything")
    return 0


def record(call: Call, *, full: bool) -> dict[str, Any]:
    """A call for `--json`: what a table would say, and its lines with `full`."""
    begun = call.begun
    use = None if call.use is None else call.use.facts
    told: dict[str, Any] = {
        "call": call.id,
        "at": None if begun is None else begun.isoformat(),
        "name": call.name,
        "server": call.server,
        "tool": call.tool,
        "outcome": call.outcome,
        "ms": call.ms,
        "decision": None if use is None else use.decision,
        "sent": call.sent is not None,
        "turn": None if use is None else use.turn,
    }
    return told | whole(call) if full else told
