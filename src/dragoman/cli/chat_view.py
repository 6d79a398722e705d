"""How a run of the loop looks: text as it comes, each call with its arguments and its end, the costs last."""

from __future__ import annotations

import sys
from typing import Any, Final, Protocol

import msgspec

from dragoman.cli import output
from dragoman.cli.brush import LABEL, Brush
from dragoman.cli.chat_person import shown
from dragoman.host.loop.events import Asking, CallEnded, CallStarted, Ended, Event, Message, RunResult
from dragoman.host.models.base import ArgumentsDelta, TextDelta, ThoughtDelta, ToolUse, UseStarted
from dragoman.host.outcome import Outcome
from dragoman.host.provider.talk import Heard, Waiting

_INDENT: Final = " " * (2 + LABEL)
_UNSENT: Final = frozenset({"schema", "lock", "permission"})


class View(Protocol):
    """Shows events."""

    def show(self, event: Event) -> None:
        """Show one."""
        ...


class Talk:
    """For a person: on a terminal all of it; in a pipe stdout has the text alone, and stderr the calls."""

    def __init__(self, brush: Brush) -> None:
        self._brush = brush
        self._open = False  # the cursor stands behind text

    def show(self, event: Event) -> None:
        """Show one event."""
        match event:
            case TextDelta(text=text):
                self._text(text)
            case Message():
                self._close()
            case CallStarted(use=use):
                self._line("call", f"{use.name} {shown(use.arguments)}", style="blue")
            case CallEnded(use=use, outcome=outcome, seconds=seconds):
                self._ended(use, outcome, seconds=seconds)
            case Waiting(attempt=attempt, seconds=seconds, why=why):
                self._line("waiting", f"{seconds:.1f} s, then attempt {attempt + 1}: {why}", style="yellow")
            case Ended(result=result):
                self._result(result)
            case _:
                pass

    def _text(self, text: str) -> None:
        output.piece(text)
        self._open = not text.endswith("\n")

    def _close(self) -> None:
        if self._open:
            output.line("")
            self._open = False

    def _ended(self, use: ToolUse, outcome: Outcome, *, seconds: float) -> None:
        style = "red" if outcome.is_error else "green"
        how = "error" if outcome.is_error else "ok"
        by = ", nothing was sent" if outcome.by in _UNSENT else ""
        said = output.flat(told(outcome))
        self._line(how, f"{use.name} {seconds * 1000:.0f} ms{by}: {said}", style=style, brief=True)

    def _result(self, result: RunResult) -> None:
        self._close()
        usage = result.usage
        parts = [
            output.counted(result.rounds, "request"),
            f"{usage.input:,} tokens read",
            f"{usage.output:,} written",
        ]
        if usage.cached:
            parts.insert(2, f"{usage.cached:,} of them cached")
        if result.cost is not None:
            parts.append(f"cost {result.cost:.4f}")
        if self._brush.terminal:
            self._line("used", ", ".join(parts), style="dim")
        if not result.done:
            self._line("ended", result.why, style="yellow")

    def _line(self, label: str, text: str, *, style: str, brief: bool = False) -> None:
        self._close()
        plain = output.flat(text)
        if not self._brush.terminal:
            output.note(f"  {label.ljust(LABEL)}{plain}")
            return
        lines = [output.cut(plain, self._brush.room)] if brief else []
        lines = lines or output.wrapped(plain, self._brush.room)
        name = self._brush("dim", label.ljust(LABEL))
        for number, line in enumerate(lines):
            output.line(
                f"  {name}{self._brush(style, line)}" if number == 0 else _INDENT + self._brush(style, line)
            )


class Records:
    """For programs: each event as a line of JSON."""

    def show(self, event: Event) -> None:
        """Print one event."""
        found = record(event)
        if found is not None:
            output.line(msgspec.json.encode(found).decode())
            sys.stdout.flush()


def told(outcome: Outcome) -> str:
    """What the model is told, as text."""
    if outcome.result is None:
        return outcome.text
    if outcome.result.text or not outcome.result.has_structured:
        return outcome.result.text
    return msgspec.json.encode(outcome.result.structured).decode()


def record(event: Event) -> dict[str, Any] | None:
    """An event as JSON; None for the end, which the envelope tells."""
    match event:
        case Asking(round=number):
            return {"event": "asking", "round": number}
        case Message(round=number, text=text, uses=uses):
            return {"event": "message", "round": number, "text": text, "uses": [_use(use) for use in uses]}
        case CallStarted(use=use):
            return {"event": "call", **_use(use)}
        case CallEnded(use=use, outcome=outcome, seconds=seconds):
            how = {"by": outcome.by, "is_error": outcome.is_error, "text": told(outcome)}
            return {"event": "result", "id": use.id, **how, "seconds": round(seconds, 4)}
        case Ended():
            return None
        case _:
            return _heard(event)


def _heard(event: Heard) -> dict[str, Any]:
    match event:
        case TextDelta(text=text):
            return {"event": "text", "text": text}
        case ThoughtDelta(text=text):
            return {"event": "thought", "text": text}
        case UseStarted(id=id_, name=name):
            return {"event": "use", "id": id_, "name": name}
        case ArgumentsDelta(id=id_, text=text):
            return {"event": "arguments", "id": id_, "text": text}
        case Waiting(attempt=attempt, seconds=seconds, why=why):
            return {"event": "waiting", "attempt": attempt, "seconds": seconds, "why": why}


def _use(use: ToolUse) -> dict[str, Any]:
    return {"id": use.id, "name": use.name, "arguments": dict(use.arguments)}


def summary(result: RunResult) -> dict[str, Any]:
    """The end of a run as JSON."""
    usage = result.usage
    return {
        "text": result.text,
        "stop": result.stop,
        "why": result.why,
        "rounds": result.rounds,
        "usage": {"input": usage.input, "output": usage.output, "cached": usage.cached},
        "cost": result.cost,
        "calls": len(result.outcomes),
    }
