"""How a call of a trace looks on a terminal and in a pipe; nothing in it steers a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from dragoman.cli import output
from dragoman.cli.brush import Brush
from dragoman.host.trace.calls import Call
from dragoman.host.trace.reading import Line
from dragoman.host.trace.timeline import Bar, Stretch
from dragoman.schema.escapes import harmless
from dragoman.schema.shapes import is_array, is_object

Fact: TypeAlias = tuple[str, str, str]

STYLES: Final = {
    "done": "green",
    "error": "red",
    "denied": "red",
    "schema": "yellow",
    "lock": "red",
    "refused": "yellow",
    "open": "dim",
}
_BAR: Final = 24  # columns of the timeline, half of it on a narrow terminal
_WIDE: Final = 100
_LABEL: Final = 10
_WIDEST: Final = 4096  # characters of a value that are shown in a pipe


def stretch(brush: Brush, part: Stretch, *, day: str | None, turn: Line | None = None) -> Iterator[str]:
    """The lines of a stretch: its head, and a tree of its calls."""
    stamp = "" if day is None else f"{day}  "
    yield brush("bold", output.flat(f"{stamp}run {part.run}{turn_of(part, turn)}: {summary(part)}"))
    count = len(part.calls)
    for number, bar in enumerate(part.bars(), 1):
        last = number == count
        yield from _call(brush, bar, stem="   " if last else "│  ", branch="└─ " if last else "├─ ")


def summary(part: Stretch) -> str:
    """How many calls in what time."""
    count = len(part.calls)
    return f"{'1 call' if count == 1 else f'{count} calls'} in {duration(part.ms)}"


def turn_of(part: Stretch, turn: Line | None) -> str:
    """The turn of a stretch, with its model and tokens where its line is known."""
    if part.turn is None:
        return ""
    told = f", turn {part.turn.rpartition('/')[2]}"
    facts = {} if turn is None else turn.value()
    if isinstance(facts.get("model"), str):
        told += f" of {facts['model']}"
    if isinstance(facts.get("input"), int) and isinstance(facts.get("output"), int):
        told += f" ({facts['input']:,} tokens read, {facts['output']:,} written)"
    return told


def _call(brush: Brush, bar: Bar, *, stem: str, branch: str) -> Iterator[str]:
    call = bar.call
    wide = brush.width >= _WIDE
    at = "--:--:--" if call.begun is None else clock(call.begun) if wide else clock(call.begun)[:8]
    took = duration(call.ms) if call.ms is not None else ""
    name = f"{call.server}/{call.tool}" if call.tool and call.server else call.name
    left = f"{branch}{at}  {output.cut(output.flat(call.id), 24)}  "
    columns = _BAR if wide else _BAR // 2
    mark = f"{call.outcome:8}{took:>9}"
    room = max(8, brush.width - output.width(left) - columns - len(mark) - 6)
    shown = output.cut(output.flat(name), room)
    pad = " " * (room - output.width(shown))
    painted = brush(STYLES[call.outcome], mark)
    yield f"{left}{shown}{pad}  {painted}  {_timeline(brush, bar, columns=columns)}".rstrip()
    for label, text, style in facts(call, full=brush.full):
        yield from _field(brush, label, text=text, style=style, stem=stem)


def _timeline(brush: Brush, bar: Bar, *, columns: int) -> str:
    """The call's place in its stretch: what was spent here, and what the server took."""
    left = min(columns - 1, int(bar.left * columns))
    here = round(bar.here * columns)
    there = round(bar.there * columns)
    if here + there == 0:
        here, there = (1, 0) if bar.call.sent is None else (0, 1)
    here = min(here, columns - left)
    there = min(there, columns - left - here)
    rest = " " * (columns - left - here - there)
    return f"|{' ' * left}{brush('yellow', '-' * here)}{brush('blue', '=' * there)}{rest}|"


def facts(call: Call, *, full: bool) -> Iterator[Fact]:
    """Label, text and style of what is known of a call."""
    if call.use is None:
        yield "model", "(the line of the model's call is not in this trace)", "dim"
    else:
        yield from _asked(_read(call.use, full=full), full=full)
    if call.sent is not None:
        yield from _sent(call.sent, full=full)
    elif call.use is not None and call.outcome != "open":
        yield "sent", "nothing", "dim"
    if call.result is not None:
        result = _read(call.result, full=full)
        told = texts(result.get("block"))
        yield (
            "answered",
            f"by {result.get('by')}: {told}",
            STYLES[call.outcome] if call.outcome != "done" else "",
        )


def _asked(use: dict[str, Any], *, full: bool) -> Iterator[Fact]:
    block, decision = use.get("block"), use.get("decision")
    if is_object(block):
        yield "model", f"{block.get('name')} {_json(block.get('input', {}))}", ""
    for fault in _objects(use.get("faults")):
        yield "schema", str(fault.get("text")), "yellow"
    if is_object(decision):
        yield "decided", decided(decision), "yellow"
    if full and use.get("config") is not None:
        yield "entry", str(use.get("config")), "dim"


def _sent(line: Line, *, full: bool) -> Iterator[Fact]:
    sent = _read(line, full=full)
    request = sent.get("request")
    number = request.get("id") if is_object(request) else None
    told = f"tools/call {_json(number)} over {sent.get('transport')}, revision {sent.get('revision')}"
    yield "sent", f"{told}, after {duration(line.facts.ms)}", "blue"
    if full:
        yield "request", _json(request), "dim"


def decided(decision: dict[str, Any]) -> str:
    """A decision in a line: effect, rule and place, what a person said, and the rules that lost."""
    effect, rule, why = decision.get("effect"), decision.get("rule"), decision.get("why")
    text = f"{effect}: {why}" if rule is None else f"{effect} by {rule} ({decision.get('origin')})"
    if decision.get("answer") is not None:
        text += f"; a person said {'yes' if decision['answer'] else 'no'}"
    lost: Any = decision.get("lost")
    return f"{text}; over {', '.join(map(str, lost))}" if is_array(lost) and lost else text


def texts(block: Any) -> str:
    """What the model was told: its texts, and of everything else what it is."""
    content: Any = block.get("content") if is_object(block) else None
    if isinstance(content, str):
        return content
    parts: list[str] = []
    for item in _objects(content):
        text = item.get("text")
        parts.append(text if isinstance(text, str) else f"[{item.get('type')}]")
    return "\n".join(parts)


def duration(ms: float | None) -> str:
    """A time that something took, in the unit that fits."""
    if ms is None:
        return "?"
    if ms < 1000:
        return f"{ms:.1f} ms"
    if ms < 120_000:
        return f"{ms / 1000:.2f} s"
    minutes = ms / 60_000
    return f"{minutes:.1f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def clock(at: datetime) -> str:
    """The time of day, in UTC."""
    return at.strftime("%H:%M:%S.") + f"{at.microsecond // 1000:03}"


def _read(line: Line, *, full: bool) -> dict[str, Any]:
    return line.full() if full else line.value()


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    for item in value if is_array(value) else ():
        if is_object(item):
            yield item


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _field(brush: Brush, label: str, *, text: str, style: str, stem: str) -> Iterator[str]:
    """A label and its text: in a line, or with `full` whole, and wrapped on a terminal."""
    name = brush("dim", label.ljust(_LABEL))
    room = max(20, brush.width - len(stem) - _LABEL - 3)
    if not brush.full:
        shown = output.cut(output.flat(text[: _WIDEST * 2]), room if brush.terminal else _WIDEST)
        yield f"{stem}  {name}{brush(style, shown) if style else shown}".rstrip()
        return
    for number, line in enumerate(_lines(harmless(text), room if brush.terminal else None)):
        left = name if number == 0 else " " * _LABEL
        yield f"{stem}  {left}{brush(style, line) if style else line}".rstrip()


def _lines(text: str, room: int | None) -> Iterator[str]:
    for line in text.split("\n"):
        shown = line.expandtabs(4)
        if room is None or output.width(shown) <= room:
            yield shown
        else:
            yield from output.wrapped(shown, room)
