"""`dragoman trace follow`: calls as they happen."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dragoman.cli import output
from dragoman.cli.brush import Brush
from dragoman.cli.tracing import chosen, paint
from dragoman.host.trace.calls import Call, Wanted, gathered, moment, newest
from dragoman.host.trace.following import Follower
from dragoman.host.trace.reading import Fault, Line
from dragoman.host.trace.timeline import stretches

_LOOK: Final = 0.1  # seconds between two looks at the file
_OPEN: Final = 1024  # calls under way that are known by their first line


def run(options: Namespace) -> int:
    """Show what is written until it is interrupted."""
    path = chosen.path(options)
    brush = Brush.for_stdout(colour=not options.no_color, full=options.full)
    printer = _Printer(chosen.wanted(options), brush, json=options.json)
    follower = Follower(path, wait=_wait, on_fault=_tell)  # from here on, nothing is missed
    if not path.exists():
        output.note(f"waiting for {path}")
    elif options.last:
        for call in newest(path, chosen.wanted(options), last=options.last).calls:
            printer.whole(call)
    sys.stdout.flush()
    for line in follower.lines():
        printer.take(line)
        sys.stdout.flush()
    return 0


def _wait() -> bool:
    time.sleep(_LOOK)
    return True


def _tell(fault: Fault) -> None:
    output.note(f"left out: {output.cut(output.flat(f'{fault.file}: {fault.text}'), 300)}")


class _Printer:
    """What is shown of each line: at once where its call is known, with the result where that counts."""

    def __init__(self, wanted: Wanted, brush: Brush, *, json: bool) -> None:
        self._wanted = wanted
        self._late = wanted.denied or wanted.errors
        self._early = replace(wanted, denied=False, errors=False)
        self._brush = brush
        self._json = json
        self._calls: OrderedDict[str, Call] = OrderedDict()
        self._shown: set[str] = set()

    def take(self, line: Line) -> None:
        """Show a line, or keep it until its call's result."""
        facts = line.facts
        if not facts.call or facts.call in self._shown:
            return
        call = self._calls.get(facts.call)
        if call is None or facts.kind == "tool_use":
            call = Call(facts.call)
            while len(self._calls) >= _OPEN:
                self._calls.popitem(last=False)
        call = next(gathered([*call.lines, line]), call)
        self._calls[facts.call] = call
        if facts.kind == "result":
            del self._calls[facts.call]
        if self._late:
            if facts.kind == "result" and self._wanted(call):
                self.whole(call)
        elif self._early(call):
            self._print(call, line)

    def whole(self, call: Call) -> None:
        """Show all lines of a call that is over, or was already there."""
        if call.result is not None and len(self._shown) < _OPEN:
            self._shown.add(call.id)
        if self._json:
            for line in call.lines:
                output.line(line.raw.decode("utf-8", "backslashreplace"))
            return
        for part in stretches([call]):
            for text in paint.stretch(self._brush, part, day=part.begun.strftime("%Y-%m-%d")):
                output.line(text)

    def _print(self, call: Call, line: Line) -> None:
        if self._json:
            output.line(line.raw.decode("utf-8", "backslashreplace"))
            return
        at = moment(line.facts.at)
        name = f"{call.server}/{call.tool}" if call.tool and call.server else call.name
        stamp = "--:--:--.---" if at is None else paint.clock(at)
        for place, text in enumerate(self._texts(call, line)):
            left = f"{stamp}  {call.id}  {output.flat(name)}  " if place == 0 else " " * (len(stamp) + 2)
            shown = output.flat(f"{left}{text}") if place == 0 else f"{left}{output.flat(text)}"
            if self._brush.terminal and not self._brush.full:
                shown = output.cut(shown, self._brush.width)
            style = paint.STYLES[call.outcome] if line.facts.kind == "result" else ""
            output.line(self._brush(style, shown) if style else shown)

    def _texts(self, call: Call, line: Line) -> Iterator[str]:
        """What a line adds to its call."""
        kind = line.facts.kind
        only = Call(call.id, **{_MEMBERS[kind]: line}) if kind in _MEMBERS else call
        for label, text, _ in paint.facts(only, full=self._brush.full):
            if (kind == "result") is (label == "answered") and (kind == "tools/call") is (label in _SENT):
                took = f" ({call.outcome}, {paint.duration(call.ms)})" if label == "answered" else ""
                yield f"{label} {text}{took}"


_MEMBERS: Final = {"tool_use": "use", "tools/call": "sent", "result": "result"}
_SENT: Final = ("sent", "request")
