"""Whoever sits before `dragoman chat`: what they type, their yes and no, or the option that says it."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from dragoman.cli import output
from dragoman.cli.brush import Brush
from dragoman.client.options import ClientKeywords
from dragoman.client.terminal import Lines, terminal_form
from dragoman.host import Answer, Ask, Question, ServerConfig
from dragoman.host.masking import shown_table
from dragoman.host.options import SESSION
from dragoman.model import ElicitParams, ElicitResult, Tool
from dragoman.protocol.naming import Name
from dragoman.protocol.secrets import secret_setting
from dragoman.schema.escapes import harmless

Preset = Literal["yes", "no"]
_YES: Final = frozenset({"y", "yes"})
_SESSION: Final = frozenset({"s", "session"})
_MARGIN: Final = "  "
_WORD: Final = re.compile(r"[A-Za-z0-9_./:@=,+%-]+")
# What takes no room, or changes how what is beside it reads.
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff]"
)


class Person:
    """Asked on the terminal, one question at a time; where there is none, `preset` answers or nobody does."""

    def __init__(self, preset: Preset | None, brush: Brush) -> None:
        self._preset = preset
        self._brush = brush
        self._lines = Lines()
        self._turn = asyncio.Lock()
        # A yes for the session holds for questions that wait already.
        self._granted: list[tuple[Name, Tool, ServerConfig | None]] = []
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
            for line in starting(config):
                output.note(f"{_MARGIN}{line}")
            said = await self.line(f"{_MARGIN}Start it? [y]es, [N]o: ")
        return said is not None and said.strip().lower() in _YES

    async def _ask(self, question: Question) -> Answer:
        if self._preset is not None:
            return self._preset == "yes"
        meant = question.name, question.tool, question.config
        async with self._turn:
            if meant in self._granted and not question.decision.once:
                return SESSION
            for line in asking(question):
                output.note(f"{_MARGIN}{line}")
            choices = "[y]es, [N]o" if question.decision.once else "[y]es, yes for this [s]ession, [N]o"
            said = await self.line(f"{_MARGIN}Allow it? {choices}: ")
        word = "" if said is None else said.strip().lower()
        if word in _SESSION and not question.decision.once:
            self._granted.append(meant)
            return SESSION
        return word in _YES

    def _show(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def starting(config: ServerConfig) -> Iterator[str]:
    """An entry in lines, with all that says what is started or reached: what is not seen cannot be agreed to.

    Hidden are values of `env` and headers that are secrets by their names, and nothing else.
    """
    yield f"{output.flat(str(config.origin))} names the server {config.name!r}:"
    if config.url is not None:
        yield f"  {_plain(config.url)}"
    else:
        yield "  " + " ".join(map(_plain, (config.command or "", *config.args)))
    tables = (("env", config.env), ("header", config.headers))
    for label, table in tables:
        covered = shown_table(table, config.syntax)
        for name, value in table.items():
            said = covered[name] if secret_setting(name) else shown(value)
            yield f"  {label} {_plain(name)} = {said}"
    for label, names in (("env", config.env_names), ("header", tuple(config.header_env))):
        for name in names:
            yield f"  {label} {_plain(name)}, from the variable {_plain(config.header_env.get(name, name))}"
    if config.bearer_env is not None:
        yield f"  a token, from the variable {_plain(config.bearer_env)}"
    if config.env_file is not None:
        yield f"  env from the file {_plain(config.env_file)}"
    if config.cwd is not None:
        yield f"  in the folder {_plain(config.cwd)}"


def asking(question: Question) -> list[str]:
    """The question in lines, with every argument whole: what is not seen cannot be agreed to."""
    lines = [f"The model wants to call {_plain(question.name.tool)} on {_plain(question.name.server)}:"]
    lines += [f"  {_plain(name)} = {shown(value)}" for name, value in question.arguments.items()]
    if not question.arguments:
        lines.append("  without arguments")
    return [*lines, f"It is asked about because of this: {output.flat(question.decision.why)}."]


def shown(value: object) -> str:
    """A JSON value on one line, with nothing in it that passes for something else."""
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half of a pair, which JSON lets people write
        text = json.dumps(value)
    return _UNSEEN.sub(lambda found: _escape(found[0]), harmless(text))


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _plain(word: str) -> str:
    """A word as it is, or in quotes where it could be taken for several, or for another one."""
    return word if _WORD.fullmatch(word) else shown(word)
