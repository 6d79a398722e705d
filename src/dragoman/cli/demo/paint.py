"""How the demo looks: colours on a terminal, plain aligned text in a pipe, long messages cut unless asked.

It knows what is to be shown and nothing of how it came about.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.cli import output
from dragoman.cli.brush import LABEL, Brush
from dragoman.cli.demo.answers import Answers
from dragoman.cli.demo.cases import Case
from dragoman.cli.demo.stage import Run, Shown
from dragoman.host import DIALECTS
from dragoman.schema.shapes import is_object

_FRAME: Final = 640  # characters of a message that are shown unless all are asked for
_COMMON: Final = frozenset({"_meta", "resultType", "ttlMs", "cacheScope"})
_INDENT: Final = " " * (2 + LABEL)

_WAYS: Final = {"stdio": "stdio", "http": "HTTP"}


def title(brush: Brush, folder: Path, *, answers: Answers, cases: Sequence[Case]) -> None:
    """What is about to be shown."""
    ways = " and ".join(dict.fromkeys(_WAYS[case.transport] for case in cases))
    output.line(brush("bold", f"dragoman demo: the order service over {ways}, on two revisions"))
    output.line(
        f"  host     {DIALECTS[cases[0].host].title}: {', '.join(dict.fromkeys(c.file for c in cases))}"
    )
    output.line(f"  files    {folder}")
    output.line(f"  answers  {answers.source}")
    if brush.terminal and not brush.full:
        output.line("  shown    messages in brief; --full shows them whole")


def head(brush: Brush, run: Run) -> None:
    """The line above the scenes of one run."""
    name = f"== {run.case.surface or run.case.transport}, revision {run.revision.version} "
    output.line("")
    output.line(brush("bold", name.ljust(brush.width - 1, "=")))
    sys.stdout.flush()


def scene(brush: Brush, shown: Shown) -> None:
    """One scene: what was asked, every message, what decided and how it ended."""
    mark = brush("green", "as expected") if shown.ok else brush("red", "UNEXPECTED")
    output.line("")
    output.line(f"{brush('bold', shown.title)}  [{mark}]")
    if shown.asked is not None:
        _field(brush, "model", text=shown.asked)
    for frame in shown.frames:
        label = "-> sent" if frame.direction == "out" else "<- came"
        _field(brush, label, text=_short(brush, frame.data), style="blue")
    for line in shown.lines:
        _field(brush, "trace", text=_short(brush, line), style="blue")
    if not shown.frames and not shown.lines:
        _field(brush, "wire", text="nothing was sent", style="dim")
    place = f" ({shown.place})" if shown.place else ""
    _field(brush, "decided", text=f"{shown.decided}{place}", style="yellow")
    _field(brush, "outcome", text=shown.outcome)
    if not shown.ok:
        _field(brush, "expected", text=shown.expected, style="red")
    sys.stdout.flush()


def verdict(brush: Brush, runs: Sequence[Run]) -> None:
    """All scenes of all runs in one table, and one line for the whole."""
    titles = [shown.title for shown in runs[0].shown]
    rows = [["outcome", *(run.name for run in runs)]]
    for place, name in enumerate(titles):
        rows.append([name, *(("ok" if run.shown[place].ok else "UNEXPECTED") for run in runs)])
    output.line("")
    output.line(brush("bold", "== outcomes ".ljust(brush.width - 1, "=")))
    first, *rest = output.table(rows, output.columns())
    output.line(brush("dim", first))
    for row in rest:
        output.line(row)
    bad = sum(not shown.ok for run in runs for shown in run.shown)
    count = sum(len(run.shown) for run in runs)
    output.line("")
    if bad:
        output.line(brush("red", f"{bad} of {count} outcomes were not the expected ones"))
    else:
        output.line(brush("green", f"all {count} outcomes were the expected ones"))


def _short(brush: Brush, data: bytes) -> str:
    """A message: whole if that was asked for, else a line of the terminal, or what is enough in a file."""
    text = data.decode("utf-8", "replace")
    if brush.full:
        return text
    if brush.terminal:
        return output.cut(output.flat(_gist(data, text)), brush.room)
    return text if len(text) <= _FRAME else f"{text[:_FRAME]}… ({len(data):,} bytes; --full shows all)"


def _gist(data: bytes, text: str) -> str:
    """A message without what all of them have: what is asked and with what, or what came of it."""
    try:
        message = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        return text
    kind = next((name for name in ("params", "result", "error") if name in message), None)
    if kind is None:
        return text
    what = message.get("method", kind)
    body = message[kind]
    if is_object(body):
        body = {name: value for name, value in body.items() if name not in _COMMON}
    number = f" {message['id']}" if "id" in message else ""
    return f"{what}{number} {msgspec.json.encode(body).decode()}"


def _field(brush: Brush, label: str, *, text: str, style: str = "") -> None:
    """A label and its text, wrapped beside it on a terminal and on one line in a pipe."""
    name = brush("dim", label.ljust(LABEL))
    for number, line in enumerate(brush.wrapped(text, brush.room)):
        painted = brush(style, line) if style else line
        output.line(f"  {name}{painted}" if number == 0 else f"{_INDENT}{painted}")
