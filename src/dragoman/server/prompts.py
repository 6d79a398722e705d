"""Prompts: functions that give messages, their arguments typed though the wire has only strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

from msgspec import UNSET, Struct

from dragoman.errors import UsageError
from dragoman.model import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    GetPromptResult,
    Icon,
    ImageContent,
    InputRequiredResult,
    PromptArgument,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Result,
    Role,
    TextContent,
)
from dragoman.model import Prompt as Entry
from dragoman.protocol.call import Call
from dragoman.schema.errors import ArgumentError, OutputError
from dragoman.schema.options import check_options
from dragoman.server.completion import Source, Suggest, completers
from dragoman.server.contents import sendable
from dragoman.server.context import Context
from dragoman.server.function import Function, refusal
from dragoman.server.media import Audio, File, Image
from dragoman.server.textual import PASSED, TextFunction, failure

_BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)


class Message(Struct, frozen=True):
    """A message of a prompt: text, a content block, what a resource holds, a picture, a sound or a file."""

    content: str | ContentBlock | ResourceContents | Image | Audio | File
    role: Role = "user"


class PromptOptions(TypedDict, total=False):
    """What `@server.prompt(...)` takes, all optional.

    `name`, `title`, `description`: instead of the function's own. `icons`, `meta`: as on the wire.
    `inline`: run a plain function on the event loop instead of in a thread. `complete`: where
    suggestions for arguments come from. `tags`: words by which the server says who sees what.
    """

    name: str
    title: str
    description: str
    icons: Sequence[Icon]
    meta: Mapping[str, Any]
    inline: bool
    complete: Mapping[str, Source]
    tags: Iterable[str]


class Prompt(Struct, eq=False):
    """A prompt of a server."""

    entry: Entry
    function: TextFunction
    tags: frozenset[str]
    completers: Mapping[str, Suggest]

    @property
    def name(self) -> str:
        """What it is called by."""
        return self.entry.name

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return tuple(argument.wire for argument in self.function.signature.arguments)

    async def get(self, call: Call) -> Result:
        """The messages, or what has to be asked before.

        Raises:
            Refusal: -32602 for arguments that do not fit, named; -32603 when the function failed.
        """
        given = call.params.arguments
        try:
            arguments = self.function.texts.read({} if given is UNSET else given)
        except ArgumentError as exc:
            raise refusal(exc) from None
        try:
            value = await self.function.call(call, Context(call), arguments=arguments)
            return self._result(value)
        except PASSED:
            raise
        except BaseException as exc:  # noqa: BLE001  # whatever a prompt raises is its answer
            raise failure(exc, self.name) from None

    def _result(self, value: Any) -> Result:
        if isinstance(value, (GetPromptResult, InputRequiredResult)):
            return value
        several = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
        messages = [_message(item) for item in several]
        return GetPromptResult(description=self.entry.description, messages=messages)


def _message(value: Any) -> PromptMessage:
    if isinstance(value, PromptMessage):
        return value
    role: Role = "user"
    if isinstance(value, Message):
        value, role = value.content, value.role
    return PromptMessage(role=role, content=_block(value))


def _block(value: Any) -> ContentBlock:
    if isinstance(value, str):
        return TextContent(text=sendable(value))
    if isinstance(value, _BLOCKS):
        return value
    if isinstance(value, (Image, Audio, File)):
        return value.content()
    if isinstance(value, ResourceContents):
        return EmbeddedResource(resource=value)
    raise OutputError(
        f"a prompt gives text, messages, content, or a list of these; it returned {type(value).__name__}"
    )


def build(function: Function, options: PromptOptions) -> Prompt:
    """Reflect on `function` once and make a prompt of it.

    Raises:
        UsageError: a signature, a name or an option that cannot be.
    """
    check_options(options, PromptOptions.__optional_keys__, of="a prompt")
    made = TextFunction.of(function, "prompt", name=options.get("name"), inline=options.get("inline", False))
    signature = made.signature
    if signature.input_schema["additionalProperties"] is not False:
        raise UsageError(
            f"{signature.name}() takes **keywords: a prompt's list of arguments says all it takes",
            hint="give each argument a parameter of its own",
        )
    arguments = [_argument(made, each.wire, required=each.required) for each in signature.arguments]
    entry = Entry(
        name=made.named("prompt", options.get("name")),
        title=options.get("title", UNSET),
        description=options.get("description", signature.description) or UNSET,
        arguments=arguments or UNSET,
        icons=list(options["icons"]) if "icons" in options else UNSET,
        meta=dict(options["meta"]) if "meta" in options else UNSET,
    )
    names = [argument.wire for argument in signature.arguments]
    return Prompt(
        entry=entry,
        function=made,
        tags=frozenset(options.get("tags", ())),
        completers=completers(signature, options.get("complete", {}), names=names),
    )


def _argument(function: TextFunction, wire: str, *, required: bool) -> PromptArgument:
    schema = function.signature.input_schema["properties"][wire]
    said = schema.get("description", "")
    expected = function.texts.expected(wire).removesuffix(" or null")  # none is sent by sending nothing
    if expected not in ("a string", "a value"):
        # The wire has no types: whoever fills this in reads it here or nowhere.
        said = f"{said} ({expected})" if said else expected
    return PromptArgument(
        name=wire,
        title=schema.get("title", UNSET),
        description=said or UNSET,
        required=required,
    )
