"""A conversation about one question of a server: what to show next, what a line means, what comes of it.

Pure: texts in and out, one step at a time. Who writes and reads them is not known here.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, UnsetType

from dragoman.client.fields import Field, fields
from dragoman.model import ElicitParams, ElicitResult, ElicitValue
from dragoman.schema.escapes import harmless

BACK: Final = "<"
DECLINE: Final = "!"
EMPTY: Final = "-"
HELP: Final = "?"

_HELP: Final = (
    f"  {BACK} goes back, {EMPTY} leaves an optional field empty, {DECLINE} declines the whole question,\n"
    "  the end of input (Ctrl-D) cancels it; a text that begins with one of these goes after a backslash\n"
)
_YES: Final = frozenset({"", "y", "yes"})
_NO: Final = frozenset({"n", "no", DECLINE})


class Dialog:
    """One question. Show `prompt`, give each line to `answer` (None at the end of input), until `result`."""

    def __init__(self, params: ElicitParams, server: str) -> None:
        self.result: ElicitResult | None = None
        self._params = params
        self._fields: list[Field] = []
        self._values: dict[str, ElicitValue] = {}
        self._skipped: set[str] = set()
        self._place = 0
        self._note = f"{harmless(server or 'the server')} asks: {harmless(params.message)}\n"
        if params.mode == "url":
            self._note += (
                f"  to open this page yourself: {harmless('' if params.url is UNSET else params.url)}\n"
            )
            return
        try:
            self._fields = fields(params.requested_schema)
        except ValueError as exc:
            self._note += f"  this form cannot be shown, and is cancelled: {harmless(str(exc))}\n"
            self.result = ElicitResult(action="cancel")
        else:
            if self._fields:
                self._note += f"  ({BACK} back, {DECLINE} decline, {HELP} help)\n"

    @property
    def prompt(self) -> str:
        """What to show before the next line is read; after the end, what is left to say."""
        note, self._note = self._note, ""
        if self.result is not None:
            return note
        if self._place < len(self._fields):
            return note + self._question(self._fields[self._place])
        return note + self._review()

    def answer(self, line: str | None) -> None:
        """Take in a line."""
        if line is None:
            self.result = ElicitResult(action="cancel")
        elif self._place < len(self._fields):
            self._filled(line.strip(), self._fields[self._place])
        else:
            self._reviewed(line.strip().lower())

    # One field -----------------------------------------------------------------------------------

    def _question(self, field: Field) -> str:
        text = f"{harmless(field.title)}"
        if field.description:
            text += f": {harmless(field.description)}"
        lines = [text]
        lines += [
            f"  {number}  {harmless(title)}" for number, (_, title) in enumerate(field.choices, start=1)
        ]
        optional = "" if field.required else ", may be left empty"
        standing = self._standing(field)
        default = "" if standing is UNSET else f" [{harmless(field.show(standing))}]"
        return "\n".join(lines) + f"\n  {field.expects}{optional}{default}> "

    def _standing(self, field: Field) -> ElicitValue | UnsetType:
        if field.name in self._skipped:
            return UNSET
        return self._values.get(field.name, field.default)

    def _filled(self, line: str, field: Field) -> None:
        if line == HELP:
            self._note = _HELP
        elif line == DECLINE:
            self.result = ElicitResult(action="decline")
        elif line == BACK:
            self._back()
        elif line == EMPTY or (not line and self._standing(field) is UNSET):
            self._leave_empty(field)
        else:
            self._take(line, field)

    def _take(self, line: str, field: Field) -> None:
        standing = self._standing(field)
        try:
            if not line and standing is not UNSET:
                value = standing
            else:
                value = field.read(line.removeprefix("\\"))
        except ValueError as exc:
            self._note = f"  {harmless(str(exc))}\n"
            return
        self._values[field.name] = value
        self._skipped.discard(field.name)
        self._place += 1

    def _leave_empty(self, field: Field) -> None:
        if field.required:
            self._note = f"  this one is needed: {field.expects}\n"
            return
        self._values.pop(field.name, None)
        self._skipped.add(field.name)
        self._place += 1

    def _back(self) -> None:
        if self._place == 0:
            self._note = "  this is the first one\n"
        else:
            self._place -= 1

    # The whole -----------------------------------------------------------------------------------

    def _review(self) -> str:
        if self._params.mode == "url":
            return "  open it, then go on? [Y/n]> "
        lines = [
            f"  {harmless(field.title)}: {harmless(field.show(self._values[field.name]))}"
            for field in self._fields
            if field.name in self._values
        ]
        change = f", {BACK} to change" if self._fields else ""
        return "\n".join([*lines, f"  send this? [Y/n{change}]> "])

    def _reviewed(self, word: str) -> None:
        if word == BACK and self._fields:
            self._back()
        elif word in _NO:
            self.result = ElicitResult(action="decline")
        elif word in _YES:
            form = self._params.mode != "url"
            self.result = ElicitResult(action="accept", content=self._values if form else UNSET)
        else:
            self._note = f"  expected yes or no, received {harmless(word)!r}\n"
