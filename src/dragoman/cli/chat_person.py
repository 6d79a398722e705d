"""Whoever sits before `dragoman chat`: what they type, their yes and no, or the option that says it."""

from __future__ import annotations

import asyncio
import sys
from typing import Final, Literal

import msgspec

from dragoman.cli import output
from dragoman.cli.brush import Brush
from dragoman.client.options import ClientKeywords
from dragoman.client.terminal import Lines, terminal_form
from dragoman.host import Answer, Ask, Name, Question, ServerConfig
from dragoman.host.masking import what
from dragoman.host.options import SESSION
from dragoman.model import ElicitParams, ElicitResult

Preset = Literal["yes", "no"]
_YES: Final = frozenset({"y", "yes"})
_SESSION: Final = frozenset({"s", "session"})
_MARGIN: Final = "  "


class Person:
    """Asked on the terminal, one question at a time; where there is none, `preset` answers or nobody does."""

    def __init__(self, preset: Preset | None, brush: Brush) -> None:
        self._preset = preset
        self._brush = brush
        self._lines = Lines()
        self._turn = asyncio.Lock()
        self._granted: set[Name] = set()  # a yes for the session holds for questions that wait already
        self.terminal = sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def ask(self) -> Ask | None:
        """What the host asks; None where nobody is there."""
        return None if self._preset is None and not self.terminal else self._ask

    def client(self) -> ClientKeywords:
        """The options of servers' clients by which a server can ask too, where somebody is there."""
        if not self.terminal:
            return {}
        return {"elicitation_handler": self._elicit, "elicitation_modes": ("form", "url")}

    async def _elicit(self, params: ElicitParams) -> ElicitResult:
        async with self._turn:
            return await terminal_form(params)

    async def line(self, prompt: str) -> str | None:
        """What the person types next; None at the end of it."""
        self._show(prompt)
        try:
            line = await self._lines.next(sys.stdin.fileno())
        except asyncio.CancelledError:
            self._show("\n")
            raise
        if line is None:
            self._show("\n")
        return line

    async def approve(self, config: ServerConfig) -> bool:
        """Whether a server that a project's own file names may be started."""
        if not self.terminal:
            return False
        async with self._turn:
            output.note(f"{_MARGIN}{config.origin} names the server {config.name!r}:")
            output.note(f"{_MARGIN}  {what(config)}")
            said = await self.line(f"{_MARGIN}Start it? [y]es, [N]o: ")
        return said is not None and said.strip().lower() in _YES

    async def _ask(self, question: Question) -> Answer:
        if self._preset is not None:
            return self._preset == "yes"
        async with self._turn:
            if question.name in self._granted and not question.decision.once:
                return SESSION
            for line in asking(question):
                output.note(f"{_MARGIN}{line}")
            choices = "[y]es, [N]o" if question.decision.once else "[y]es, yes for this [s]ession, [N]o"
            said = await self.line(f"{_MARGIN}Allow it? {choices}: ")
        word = "" if said is None else said.strip().lower()
        if word in _SESSION and not question.decision.once:
            self._granted.add(question.name)
            return SESSION
        return word in _YES

    def _show(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def asking(question: Question) -> list[str]:
    """The question in lines, with every argument whole: what is not seen cannot be agreed to."""
    lines = [f"The model wants to call {question.name.tool} on {question.name.server}:"]
    lines += [f"  {name} = {shown(value)}" for name, value in question.arguments.items()]
    if not question.arguments:
        lines.append("  without arguments")
    return [*lines, f"It is asked about because of this: {question.decision.why}."]


def shown(value: object) -> str:
    """A JSON value on one line, with nothing in it that passes for something else."""
    return output.harmless(msgspec.json.encode(value).decode())
