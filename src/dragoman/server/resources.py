"""Resources: what a list shows of them, and how they are read, by whatever revision it is asked.

Exact URIs first, then the templates in the order in which they were added. It knows no kernel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypedDict, TypeGuard, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dragoman.errors import Refusal, ResourceNotFound, ToolError, UsageError
from dragoman.model import (
    Annotations,
    CacheScope,
    EmptyResult,
    Icon,
    InputRequiredResult,
    ReadResourceResult,
    ResourceContents,
    Result,
)
from dragoman.model import Resource as Entry
from dragoman.protocol.call import Call
from dragoman.protocol.uritemplate import encoded, has_scheme
from dragoman.schema.options import check_options
from dragoman.server.completion import Source
from dragoman.server.contents import contents_of
from dragoman.server.context import Context
from dragoman.server.mime import BINARY, TEXT, of_name
from dragoman.server.registry import Registry
from dragoman.server.textual import PASSED, TextFunction, failure

MAX_WATCHED = 10_000  # resources that one session may watch

Static = str | bytes | PathLike[str]
Sees = Callable[[Any, str | None], bool]
_Source = Callable[[Call, Context], Awaitable[Any]]


class ResourceOptions(TypedDict, total=False):
    """What `@server.resource(uri, ...)` takes, all optional.

    `name`, `title`, `description`: instead of the function's own. `mime_type`: of its contents; it
    also says whether a file is text. `size`: in bytes, before any Base64. `annotations`: as
    `Annotations` or a mapping with the wire's names; `last_modified`, a time or ISO 8601, is one of
    them. `icons`, `meta`: as on the wire. `ttl_ms`, `cache_scope`: how long, and by whom, what was
    read may be kept (server/utilities/caching). `inline`: run a plain function on the event loop
    instead of in a thread. `complete`: for variables of a template, where suggestions come from.
    `tags`: words by which the server says who sees what.
    """

    name: str
    title: str
    description: str
    mime_type: str
    size: int
    annotations: Annotations | Mapping[str, Any]
    last_modified: datetime | str
    icons: Sequence[Icon]
    meta: Mapping[str, Any]
    ttl_ms: int
    cache_scope: CacheScope
    inline: bool
    complete: Mapping[str, Source]
    tags: Iterable[str]


class Hints(Struct, frozen=True):
    """How long, and by whom, something may be cached; UNSET for what was not said."""

    ttl_ms: int | UnsetType = UNSET
    cache_scope: CacheScope | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.ttl_ms is not UNSET and self.ttl_ms < 0:
            raise UsageError(f"ttl_ms: expected 0 or more milliseconds, received {self.ttl_ms}")
        if self.cache_scope not in (UNSET, "public", "private"):
            raise UsageError(f'cache_scope: expected "public" or "private", received {self.cache_scope!r}')

    @staticmethod
    def of(options: ResourceOptions) -> Hints:
        """Those among the options of a resource."""
        return Hints(options.get("ttl_ms", UNSET), options.get("cache_scope", UNSET))


class Readable(Protocol):
    """A resource or a template."""

    hints: Hints

    @property
    def mime_type(self) -> str | None:
        """Of its contents, if that was said."""
        ...

    async def produce(self, call: Call, context: Context, *, arguments: Mapping[str, Any]) -> Any:
        """The value that its contents are made of."""
        ...


class Resource(Struct, eq=False):
    """A resource of a server, under one URI."""

    entry: Entry
    source: _Source
    hints: Hints
    tags: frozenset[str]

    @property
    def name(self) -> str:
        """Its URI: what it is read by."""
        return self.entry.uri

    @property
    def mime_type(self) -> str | None:
        """Of its contents, if that was said."""
        return None if self.entry.mime_type is UNSET else self.entry.mime_type

    async def produce(self, call: Call, context: Context, *, arguments: Mapping[str, Any]) -> Any:
        """The value that its contents are made of."""
        del arguments  # its URI has no variables
        return await self.source(call, context)


class Templates(Protocol):
    """The templates, as far as reading needs them."""

    def find(self, uri: str, sees: Callable[[Any], bool]) -> tuple[Readable, dict[str, Any]]:
        """The first of those it `sees` that `uri` fits, with its arguments. Raises ResourceNotFound."""
        ...


class Reading:
    """How the resources of one server are read and watched.

    `sees` says whether a principal sees a resource or a template. `hints` are for those that say
    nothing of caching.
    """

    def __init__(self, resources: Registry[Resource], templates: Templates, *, sees: Sees) -> None:
        self._resources = resources
        self._templates = templates
        self._sees = sees
        self.hints = Hints()

    def find(self, uri: str, principal: str | None) -> tuple[Readable, dict[str, Any]]:
        """What is read for `uri`. Raises ResourceNotFound."""
        resource = self._resources.get(uri) or self._resources.get(encoded(uri))
        if resource is not None and self._sees(resource, principal):
            return resource, {}
        return self._templates.find(uri, lambda template: self._sees(template, principal))

    def exists(self, uri: str) -> bool:
        """Whether anybody at all could read what is at `uri`."""
        if self._resources.get(uri) or self._resources.get(encoded(uri)):
            return True
        try:
            self._templates.find(uri, lambda template: True)
        except ResourceNotFound:
            return False
        return True

    async def read(self, call: Call) -> Result:
        """Answer `resources/read`.

        Raises:
            Refusal: the revision's code with `data.uri` for what is not there, -32603 for what
                cannot be read.
        """
        uri = call.params.uri
        try:
            result = await self._read(call, Context(call), uri=uri)
        except ResourceNotFound as exc:
            raise self._refused(call, exc) from None
        except PASSED:
            raise
        except BaseException as exc:  # noqa: BLE001  # whatever a resource raises is its answer
            raise failure(exc, uri, data={"uri": uri}) from None
        if isinstance(result, ReadResourceResult) and call.journal is not None:
            # It came of answers that are no part of what a cache goes by (utilities/caching: Cache Key).
            return replace(result, ttl_ms=0, cache_scope="private")
        return result

    async def within(self, call: Call, context: Context, *, uri: str) -> list[ResourceContents]:
        """What a resource holds, for another handler in the same call.

        Raises:
            ResourceNotFound: there is none.
            DragomanError: it cannot be read.
        """
        result = await self._read(call, context, uri=uri)
        if isinstance(result, ReadResourceResult):
            return result.contents
        raise ToolError(f"{uri} asks for input in the raw form, which only its client can answer")

    async def _read(self, call: Call, context: Context, *, uri: str) -> Result:
        item, arguments = self.find(uri, call.principal)
        try:
            value = await item.produce(call, context, arguments=arguments)
            if isinstance(value, InputRequiredResult):
                return value
            if isinstance(value, ReadResourceResult):
                result = value
            else:
                result = ReadResourceResult(
                    contents=await contents_of(value, encoded(uri), mime_type=item.mime_type)
                )
        except (ResourceNotFound, FileNotFoundError) as exc:
            said = str(exc) if isinstance(exc, ResourceNotFound) else ""
            raise ResourceNotFound(said or _missing(uri)) from None
        return self._hinted(result, item.hints)

    def _hinted(self, result: ReadResourceResult, hints: Hints) -> ReadResourceResult:
        for said in (hints, self.hints):
            if result.ttl_ms is UNSET and said.ttl_ms is not UNSET:
                result = replace(result, ttl_ms=said.ttl_ms)
            if result.cache_scope is UNSET and said.cache_scope is not UNSET:
                result = replace(result, cache_scope=said.cache_scope)
        if (result.ttl_ms is UNSET) is (result.cache_scope is UNSET):
            return result
        return replace(result, ttl_ms=result.ttl_ms or 0, cache_scope=result.cache_scope or "private")

    async def subscribe(self, call: Call) -> EmptyResult:
        """Answer `resources/subscribe`.

        Raises:
            Refusal: the revision's code with `data.uri` for what is not there, -32602 for too many.
        """
        uri, watched = call.params.uri, call.link.subscriptions
        try:
            self.find(uri, call.principal)
        except ResourceNotFound as exc:
            raise self._refused(call, exc) from None
        if len(watched) >= MAX_WATCHED and uri not in watched:
            raise Refusal(-32602, f"A session watches at most {MAX_WATCHED} resources", {"uri": uri})
        watched.add(uri)
        return EmptyResult()

    async def unsubscribe(self, call: Call) -> EmptyResult:
        """Answer `resources/unsubscribe`; also for one that is not watched, or is gone since."""
        call.link.subscriptions.discard(call.params.uri)
        return EmptyResult()

    @staticmethod
    def _refused(call: Call, exc: ResourceNotFound) -> Refusal:
        uri = call.params.uri
        return Refusal(call.revision.missing_resource, str(exc) or _missing(uri), {"uri": uri})


def _missing(uri: str) -> str:
    return f"Resource not found: {uri}"


def build(uri: str, source: Any, *, options: ResourceOptions) -> Resource:
    """A resource made of a function, of text, of bytes, or of the path of a file.

    Raises:
        UsageError: a URI without a scheme, a signature that asks for something, or a bad option.
    """
    if not has_scheme(uri):
        raise UsageError(f"{uri!r} is no URI: it needs a scheme, as in notes://today")
    check_options(options, ResourceOptions.__optional_keys__, of="a resource")
    if "complete" in options:
        raise UsageError(f"complete: {uri} has no variables to complete")
    shown: dict[str, Any] = described(options)
    if callable(source):
        function = TextFunction.of(source, "resource", inline=options.get("inline", False))
        asked = [argument.wire for argument in function.signature.arguments if argument.required]
        if asked:
            raise UsageError(
                f"{function.signature.name}() asks for {', '.join(asked)}, which {uri} has no variables for"
            )
        give = _function(function)
        shown["name"] = function.named("resource", options.get("name"))
        if function.signature.description:
            shown.setdefault("description", function.signature.description)
    elif _is_static(source):
        give = _constant(source, shown)
        shown.setdefault("name", uri.rstrip("/").rpartition("/")[2] or uri)
    else:
        kind = type(source).__name__
        raise UsageError(f"{uri} is made of a function, text, bytes or the path of a file, received {kind}")
    entry = Entry(uri=encoded(uri), size=options.get("size", shown.pop("size", UNSET)), **shown)
    return Resource(entry, give, Hints.of(options), frozenset(options.get("tags", ())))


def _is_static(source: Any) -> TypeGuard[Static]:
    return isinstance(source, (str, bytes, PathLike))


def _function(function: TextFunction) -> _Source:
    return lambda call, context: function.call(call, context, arguments=function.texts.read({}))


def _constant(source: Static, shown: dict[str, Any]) -> _Source:
    value = Path(source) if isinstance(source, PathLike) else source
    if isinstance(value, Path):
        kind = of_name(value.name)
        if kind is not None:
            shown.setdefault("mime_type", kind)
    else:
        shown.setdefault("mime_type", TEXT if isinstance(value, str) else BINARY)
        shown["size"] = len(value.encode() if isinstance(value, str) else value)

    async def give(call: Call, context: Context) -> Static:
        del call, context  # it is the same for everybody
        return value

    return give


def described(options: ResourceOptions) -> dict[str, Any]:
    """What resources and templates show alike, by its name in the model. Raises UsageError."""
    shown: dict[str, Any] = {
        name: cast("Any", options)[name]
        for name in ("name", "title", "description", "mime_type")
        if name in options
    }
    if "icons" in options:
        shown["icons"] = list(options["icons"])
    if "meta" in options:
        shown["meta"] = dict(options["meta"])
    annotations = _annotations(options)
    if annotations is not None:
        shown["annotations"] = annotations
    return shown


def _annotations(options: ResourceOptions) -> Annotations | None:
    given = options.get("annotations", {})
    when = options.get("last_modified")
    if not given and when is None:
        return None
    try:
        said = given if isinstance(given, Annotations) else msgspec.convert(dict(given), Annotations)
    except msgspec.ValidationError as exc:
        raise UsageError(f"annotations: {exc}") from None
    if when is not None:
        said = replace(said, last_modified=when if isinstance(when, str) else when.isoformat())
    return said
