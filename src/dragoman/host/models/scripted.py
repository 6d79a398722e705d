"""A model that says what it was told to say: the same every time, for tests, for the demo, and offline.

It speaks the form of Anthropic's Messages API, has no tool search of its own, and asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, cast

import msgspec

from dragoman.errors import UsageError
from dragoman.host.models.anthropic import MESSAGES, Messages
from dragoman.host.models.base import Definitions, Item, Shown, TextDelta, UseStarted
from dragoman.host.provider.talk import Heard, ModelRequest, Prices, Speaker

_PIECE: Final = 16  # characters of text that come at once
_CHARACTERS: Final = 4  # of a token, as this model counts


@dataclass(frozen=True, slots=True)
class Says:
    """One message: some text, and calls as pairs of a tool's name and its arguments."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to one call, as the model gets it. `text` is all text of it."""

    id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What a function sees before it says something.

    `turn` counts the model's messages from 0, `prompt` is what the person said last, `results` are answers
    to the calls of the message before, `tools` the names that can be called, `history` all that was said.
    """

    turn: int
    prompt: str
    results: tuple[Told, ...]
    tools: tuple[str, ...]
    history: Sequence[Item] = field(repr=False, default=())


Line: TypeAlias = Says | str
Script: TypeAlias = Iterable[Line] | Callable[[View], Line]


class ScriptedApi(Messages):
    """The API as `Api` has it."""

    name: str = "scripted"
    searches: bool = False

    def definitions(self, tools: Iterable[Shown], *, strict: bool = False) -> Definitions:
        """As in the Messages API, but deferred tools are left to whoever searches."""
        told = list(tools)
        made = MESSAGES.definitions((tool for tool in told if not tool.deferred), strict=strict)
        return replace(made, deferred=[tool.name for tool in told if tool.deferred])


API: Final = ScriptedApi()


class ScriptedModel:
    """A model for the loop, from a list of messages or a function that gives the next one::

        ScriptedModel([Says("One moment.", [("mcp__orders__lookup_order", {"order_id": "A-1042"})]), "Done."])
        ScriptedModel(lambda view: view.results[0].text if view.results else Says(calls=[("add", {"a": 1})]))

    Which message of a list comes next is told by the history alone, so that a run goes on where it stood.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        prices: Prices | None = None,
        limit: int | None = None,
    ) -> None:
        self.name = name
        self.speaks = API
        self.prices = prices
        self.limit = limit
        self._script: Callable[[View], Line] = script if callable(script) else _List(tuple(script))

    @classmethod
    def from_file(cls, path: Path | str, *, prices: Prices | None = None) -> Self:
        """A model from a file: a JSON list of texts and of `{"text": ..., "calls": [{"name", "arguments"}]}`.

        Raises:
            UsageError: there is no such list in it.
        """
        try:
            lines = msgspec.json.decode(Path(path).read_bytes(), type=list[str | _Line])
        except OSError as exc:
            raise UsageError(f"{path}: {exc.strerror}") from None
        except (msgspec.DecodeError, RecursionError) as exc:
            raise UsageError(f"{path}: no script: {exc}") from None
        return cls([line if isinstance(line, str) else line.says() for line in lines], prices=prices)

    def open(self) -> AbstractAsyncContextManager[Speaker]:
        """Nothing has to be got ready."""
        return nullcontext(self)

    async def answer(self, request: ModelRequest, hear: Callable[[Heard], None]) -> Mapping[str, Any]:
        """The next message, its text in pieces.

        Raises:
            UsageError: the list has come to its end.
        """
        view = _view(request)
        line = self._script(view)
        says = Says(line) if isinstance(line, str) else line
        for start in range(0, len(says.text), _PIECE):
            hear(TextDelta(says.text[start : start + _PIECE]))
        content: list[dict[str, Any]] = [{"type": "text", "text": says.text}] if says.text else []
        for number, (name, arguments) in enumerate(says.calls, 1):
            id_ = f"call_{view.turn + 1}_{number}"
            hear(UseStarted(id_, name))
            content.append({"type": "tool_use", "id": id_, "name": name, "input": dict(arguments)})
        return {
            "id": f"msg_{view.turn + 1}",
            "type": "message",
            "role": "assistant",
            "model": self.name,
            "content": content,
            "stop_reason": "tool_use" if says.calls else "end_turn",
            "usage": {"input_tokens": _tokens(list(request.history)), "output_tokens": _tokens(content)},
        }


class _List:
    def __init__(self, lines: tuple[Line, ...]) -> None:
        self._lines = lines

    def __call__(self, view: View) -> Line:
        if view.turn >= len(self._lines):
            raise UsageError(f"the script has {len(self._lines)} messages, and another one is asked for")
        return self._lines[view.turn]


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    calls: list[_Call] = []

    def says(self) -> Says:
        return Says(self.text, [(call.name, call.arguments) for call in self.calls])


def _view(request: ModelRequest) -> View:
    history = request.history
    turn = sum(item["role"] == "assistant" for item in history)
    prompts = [item["content"] for item in history if isinstance(item["content"], str)]
    last: object = history[-1]["content"] if history else ""
    blocks = cast("list[dict[str, Any]]", last) if isinstance(last, list) else []
    results = tuple(_told(block) for block in blocks if block.get("type") == "tool_result")
    tools = tuple(str(block["name"]) for block in request.tools.blocks)
    return View(turn, prompts[-1] if prompts else "", results, tools, history)


def _told(block: Mapping[str, Any]) -> Told:
    content: str | list[dict[str, Any]] = block["content"]
    text = content if isinstance(content, str) else "\n".join(_text(piece) for piece in content)
    return Told(str(block["tool_use_id"]), text, bool(block.get("is_error", False)))


def _text(piece: Mapping[str, Any]) -> str:
    if piece["type"] == "document":
        return str(piece["source"]["data"])
    return str(piece.get("text", f"[{piece['type']}]"))


def _tokens(value: object) -> int:
    return len(msgspec.json.encode(value)) // _CHARACTERS
