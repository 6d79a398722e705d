"""A trace as one page with a waterfall picture. It loads nothing, runs nothing, and everything is escaped.

What servers and models said is text in it: control characters are shown, and no markup of theirs is any.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from html import escape
from typing import Any, Final

import msgspec

from dragoman.cli import output
from dragoman.cli.tracing import paint
from dragoman.host.trace.calls import Call, Newest
from dragoman.host.trace.reading import Line
from dragoman.host.trace.timeline import Bar, Stretch, stretches
from dragoman.schema.escapes import harmless
from dragoman.version import VERSION

_LONGEST: Final = 20_000  # characters of a value that a page shows
_ROW: Final = 22  # pixels
_CHART: Final = 1000  # units of the picture's width
_NAMES: Final = 260
_LEAST: Final = 2.0  # units that a bar is wide at least
_TICKS: Final = 5


def page(found: Newest, *, title: str, made: datetime) -> Iterator[str]:
    """The page, piece by piece."""
    parts, earlier = stretches(found.calls), found.earlier
    calls = [call for part in parts for call in part.calls]
    yield _HEAD.format(title=_text(title), style=_STYLE)
    yield f"<h1>{_text(title)}</h1>\n<p>{_summary(calls, earlier=earlier)}</p>\n{_LEGEND}"
    number = 0
    for part in parts:
        yield from _stretch(part, first=number, turn=found.turns.get(part.turn or ""))
        number += len(part.calls)
    when = made.strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f"<footer>dragoman {_text(VERSION)}, {when}. Times are UTC.</footer>\n</body>\n</html>\n"


def _summary(calls: list[Call], *, earlier: bool) -> str:
    counts: dict[str, int] = {}
    for call in calls:
        counts[call.outcome] = counts.get(call.outcome, 0) + 1
    told = ", ".join(f"{count} {_text(outcome)}" for outcome, count in sorted(counts.items()))
    more = "; earlier calls are left out" if earlier else ""
    return f"{len(calls)} call{'s' * (len(calls) != 1)}: {told or 'none'}{more}"


def _stretch(part: Stretch, *, first: int, turn: Line | None) -> Iterator[str]:
    day = part.begun.strftime("%Y-%m-%d %H:%M:%S")
    head = f"run {part.run}{paint.turn_of(part, turn)}: {paint.summary(part)}"
    yield f"<section>\n<h2>{day} <small>{_text(head)}</small></h2>\n"
    bars = part.bars()
    yield _picture(bars, part, first=first)
    for number, call in enumerate(part.calls, first):
        yield _call(call, number)
    yield "</section>\n"


# The picture ---------------------------------------------------------------------------------------------


def _picture(bars: list[Bar], part: Stretch, *, first: int) -> str:
    height = _ROW * (len(bars) + 1)
    rows = [_axis(part, height), *(_row(bar, place, number=first + place) for place, bar in enumerate(bars))]
    label = paint.summary(part)
    return (
        f'<svg viewBox="0 0 {_NAMES + _CHART} {height}" role="img" aria-label="{_text(label)}">\n'
        + "".join(rows)
        + "</svg>\n"
    )


def _axis(part: Stretch, height: int) -> str:
    marks: list[str] = []
    for tick in range(_TICKS + 1):
        x = _NAMES + _CHART * tick / _TICKS
        anchor = "start" if tick == 0 else "end" if tick == _TICKS else "middle"
        told = paint.duration(part.ms * tick / _TICKS)
        marks.append(
            f'<line class="grid" x1="{x:.1f}" y1="{_ROW}" x2="{x:.1f}" y2="{height}"/>'
            f'<text class="tick" x="{x:.1f}" y="15" text-anchor="{anchor}">{told}</text>\n'
        )
    return "".join(marks)


def _row(bar: Bar, place: int, *, number: int) -> str:
    call = bar.call
    top = _ROW * (place + 1)
    name = _text(output.cut(output.flat(_name(call)), 34))
    left = _NAMES + bar.left * _CHART
    here, there = bar.here * _CHART, bar.there * _CHART
    wide = max(here + there, _LEAST)
    left = min(left, _NAMES + _CHART - wide)
    shown = f"{_name(call)}: {call.outcome}, {paint.duration(call.ms)}"
    bars = f'<rect class="here" x="{left:.1f}" y="{top + 5}" width="{wide:.1f}" height="{_ROW - 10}"/>'
    if call.sent is not None:
        bars += (
            f'<rect class="there {call.outcome}" x="{left + here:.1f}" y="{top + 3}" '
            f'width="{max(wide - here, _LEAST):.1f}" height="{_ROW - 6}" rx="2"/>'
        )
    return (
        f'<a href="#c{number}"><title>{_text(output.flat(shown))}</title>'
        f'<text class="{call.outcome}" x="4" y="{top + 15}">{name}</text>{bars}</a>\n'
    )


# The calls -----------------------------------------------------------------------------------------------


def _call(call: Call, number: int) -> str:
    begun = call.begun
    at = "" if begun is None else paint.clock(begun)
    rows = "".join(
        f"<dt>{_text(label)}</dt><dd>{_value(text)}</dd>\n" for label, text, _ in paint.facts(call, full=True)
    )
    lines = "".join(
        f"<dt>{_text(line.facts.kind)}</dt><dd>{_value(_pretty(line.full()))}</dd>\n" for line in call.lines
    )
    return (
        f'<details id="c{number}"><summary><time>{at}</time> <b>{_text(output.flat(_name(call)))}</b> '
        f'<span class="mark {call.outcome}">{_text(call.outcome)}</span> {paint.duration(call.ms)} '
        f"<code>{_text(call.id)}</code></summary>\n<dl>\n{rows}</dl>\n"
        f"<details><summary>lines</summary><dl>\n{lines}</dl></details></details>\n"
    )


def _name(call: Call) -> str:
    return f"{call.server}/{call.tool}" if call.tool and call.server else call.name


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _value(text: str) -> str:
    cut = f"… ({len(text):,} characters)" if len(text) > _LONGEST else ""
    return f"<pre>{_text(text[:_LONGEST])}{cut}</pre>"


def _text(value: str) -> str:
    """A text as text: nothing in it is markup, and what steers is shown."""
    return escape(harmless(value).encode("utf-8", "replace").decode(), quote=True)


_STYLE: Final = """\
:root { color-scheme: light dark; --line: #8884; --here: #c90; --there: #48c; --good: #2a7; --bad: #d33; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } small, footer, .tick { opacity: .7; }
svg { width: 100%; height: auto; border: 1px solid var(--line); border-radius: 4px; }
svg text { font: 12px ui-monospace, monospace; fill: currentColor; } svg a:hover { opacity: .6; }
.grid { stroke: var(--line); } .here { fill: var(--here); } .there { fill: var(--there); }
.there.error { fill: var(--bad); } svg text.denied, svg text.lock, svg text.error { fill: var(--bad); }
svg text.schema, svg text.refused { fill: var(--here); }
.key { display: inline-block; width: 1em; height: .8em; margin: 0 .3em 0 1em; }
details { border-top: 1px solid var(--line); padding: .3rem 0; } details details { margin-left: 1rem; }
summary { cursor: pointer; } time, code { font-family: ui-monospace, monospace; opacity: .7; }
.mark { padding: 0 .5em; border-radius: 3px; border: 1px solid; } .mark.done { color: var(--good); }
.mark.denied, .mark.error, .mark.lock { color: var(--bad); }
.mark.schema, .mark.refused { color: var(--here); }
dl { display: grid; grid-template-columns: 6rem 1fr; gap: .2rem .8rem; margin: .5rem 1rem; }
dt { opacity: .7; } dd { margin: 0; min-width: 0; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
"""
_HEAD: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
"""
_LEGEND: Final = """\
<p><span class="key" style="background: var(--here)"></span>decided here, with a person's answer if one was
asked<span class="key" style="background: var(--there)"></span>the server's time</p>
"""
