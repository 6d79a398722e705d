"""What every model's API comes to: tools it is shown, calls it wants, results, deltas, and one face for all.

Knows no API and no server. Items of a history are always the API's own, so that nothing of them is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from dragoman.client import ToolResult
from dragoman.host.models.schemas import without_nulls
from dragoman.model import Tool

Block: TypeAlias = dict[str, Any]
"""A piece of a request or an answer, in the form of the API."""

Item: TypeAlias = dict[str, Any]
"""A member of the history, in the form of the API: a message, or an item of the Responses API."""

Stop: TypeAlias = Literal["end", "tools", "length", "refused", "paused", "other"]
"""Why a model stopped: done, wants calls answered, met a limit, would not, or is to be asked to go on."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A model's wish: `id` links the answer to it, `name` is a name the model was shown.

    `fault` says why the arguments cannot be read; `arguments` are then empty, and `raw` is their text.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    raw: str | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool under the name by which the model is to see it.

    A `deferred` one is not in the prompt until the model has searched for it. `group` is what it belongs
    to (its server), for an API that shows groups of deferred tools.
    """

    name: str
    tool: Tool
    deferred: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that this API would refuse, and with it the whole request."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """What a tool's schema lost on its way to an API. `path` is a JSON Pointer into the tool's schema."""

    name: str
    path: str
    keyword: str
    why: str


@dataclass(frozen=True, slots=True)
class Definitions:
    """Tools as an API takes them.

    `names` has the name on the wire for each tool whose name the API does not take, and leads back to the
    one it was shown under. `nulled` are the schemas of tools whose optional properties take null on the
    wire, by that name. `deferred` are those that are not in `blocks` because the API cannot search:
    whoever searches for it shows them again when they are found.
    """

    blocks: list[Block] = field(default_factory=list[Block])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    dropped: list[Dropped] = field(default_factory=list[Dropped])
    names: dict[str, str] = field(default_factory=dict[str, str])
    nulled: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    deferred: list[str] = field(default_factory=list[str])

    def shown(self, name: str) -> str:
        """The name that a tool was shown under, for the one that the model used."""
        return self.names.get(name, name)

    def meant(self, use: ToolUse) -> ToolUse:
        """The call as the tool itself knows it: by the name it was shown under, with its own arguments.

        The answer is made for the call as the model wrote it, not for this one.
        """
        schema = self.nulled.get(use.name)
        arguments = use.arguments if schema is None else without_nulls(use.arguments, schema, root=schema)
        return replace(use, name=self.shown(use.name), arguments=arguments)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer: `input` is all that was read, `cached` the part of it that came from a cache."""

    input: int = 0
    output: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API is served, as data for a transport.

    `path` and `streamed` are added to the base URL, `{model}` replaced. The key goes into the header
    `key_header` behind `key_prefix`; `key_env` is the variable in which its own SDK looks for it.
    """

    url: str
    path: str
    streamed: str
    key_env: str
    key_header: str = "authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


# Streams --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """More of what the model thinks, where the API shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class UseStarted:
    """The model began a call. Its arguments are whole only in the message."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """More of the JSON text of a call's arguments. `id` is that of `UseStarted`."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The API broke off with an error of its own: `code` as it names it."""

    code: str
    text: str


Delta: TypeAlias = TextDelta | ThoughtDelta | UseStarted | ArgumentsDelta | Failed


class Reader(Protocol):
    """Reads the events of one streamed answer, each as its JSON object."""

    @property
    def done(self) -> bool:
        """Whether the API said that the answer is whole. A stream that ends before was cut."""
        ...

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the next event. Events of unknown kinds are passed over."""
        ...

    def message(self) -> dict[str, Any]:
        """What came so far, in the form of an answer that is not streamed."""
        ...


class Api(Protocol):
    """One API of models. A `message` is the body of an answer, as it came or as `Reader.message` has it."""

    @property
    def name(self) -> str:
        """Its name in `APIS`."""
        ...

    @property
    def endpoint(self) -> Endpoint:
        """Where it is served."""
        ...

    @property
    def searches(self) -> bool:
        """Whether it has a search for deferred tools of its own."""
        ...

    # What goes out

    def definitions(self, tools: Iterable[Shown], *, strict: bool = False) -> Definitions:
        """Tools as the API takes them, in order. `strict`: the API holds the model to them where it can."""
        ...

    def user(self, text: str) -> list[Item]:
        """What a person says, for the history."""
        ...

    def result(self, use: ToolUse, result: ToolResult) -> Block:
        """What a tool answered. Becomes part of the history by `answered`."""
        ...

    def failure(self, use: ToolUse, text: str) -> Block:
        """The answer to a call that did not take place, or came to nothing."""
        ...

    def answered(self, blocks: Sequence[Block]) -> list[Item]:
        """All answers to the calls of one message, for the history."""
        ...

    def request(
        self,
        *,
        model: str,
        history: Sequence[Item],
        tools: Definitions | None = None,
        system: str | None = None,
        limit: int | None = None,
        stream: bool = False,
        more: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The body of a request. `limit` is in tokens of the answer; `more` are members that win.

        Raises:
            UsageError: the API would refuse it; the error says which item, and why.
        """
        ...

    # What comes back

    def said(self, message: Mapping[str, Any]) -> list[Item]:
        """The items by which the answer goes on in the history, unchanged."""
        ...

    def uses(self, message: Mapping[str, Any]) -> list[ToolUse]:
        """The calls that it wants, in order."""
        ...

    def text(self, message: Mapping[str, Any]) -> str:
        """Its text for a person, without thoughts. A refusal's text counts."""
        ...

    def stop(self, message: Mapping[str, Any]) -> Stop:
        """Why it ended."""
        ...

    def usage(self, message: Mapping[str, Any]) -> Usage:
        """What it cost, in tokens. Zeros where the API did not say."""
        ...

    def error(self, body: Mapping[str, Any]) -> Failed | None:
        """The error that a body tells of, if it does."""
        ...

    def reader(self) -> Reader:
        """A reader for one streamed answer."""
        ...
