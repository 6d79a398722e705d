"""What a client can ask of a server: lists, calls, resources, prompts, completion, changes.

Each verb is one request, or as many as one list has pages; the face that has them says over which session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Unpack

import msgspec
from msgspec import UNSET, Raw

from dragoman.client.connection import Extras
from dragoman.client.feed import Wish
from dragoman.client.inputs import ROOTS_CHANGED
from dragoman.client.listening import Listening
from dragoman.client.lists import PROMPTS, RESOURCES, TEMPLATES, TOOLS, ListKind
from dragoman.client.reading import read_completion, read_contents, read_discover, read_prompt, read_tool
from dragoman.client.result import ToolResult, check_type
from dragoman.client.session import READ, CallKeywords, RequestKeywords, Session
from dragoman.client.tasks import SUBJECTS, Following, is_task
from dragoman.errors import PeerFault, RemoteError, UsageError
from dragoman.model import (
    HEADER_MISMATCH,
    CompleteArgument,
    CompleteContext,
    CompleteParams,
    Completion,
    DiscoverResult,
    GetPromptParams,
    GetPromptResult,
    InputResponseParams,
    LoggingLevel,
    Params,
    Prompt,
    PromptReference,
    ReadResourceParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    SetLevelParams,
    Tool,
)
from dragoman.model.tasks_extension import RESULT_TYPE
from dragoman.protocol.negotiation import DISCOVER
from dragoman.schema.shapes import is_object

_decode_any: Final = msgspec.json.Decoder().decode


class _CallParams(InputResponseParams, kw_only=True):
    name: str
    arguments: Mapping[str, Any]


class Verbs:
    """The verbs of `Client`. Each raises as `Client` says."""

    def _ready(self) -> Session:
        """The session to speak over."""
        raise UsageError("not connected yet", stage="call")

    # Lists -------------------------------------------------------------------------------------------

    async def list_tools(self, *, refresh: bool = False) -> list[Tool]:
        """All tools, of all pages. While the server's word is that a page is fresh, as it was read last;
        with `refresh`, read anew in any case.

        Over HTTP, tools whose `x-mcp-header` annotations break the rules are left out, with a warning.
        """
        session = self._ready()
        return session.tools.update(await session.lists.pages(TOOLS, refresh=refresh))

    async def list_resources(self, *, refresh: bool = False) -> list[Resource]:
        """All resources that the server lists; as `list_tools`."""
        return await self._list(RESOURCES, refresh=refresh)

    async def list_resource_templates(self, *, refresh: bool = False) -> list[ResourceTemplate]:
        """All families of resources; as `list_tools`."""
        return await self._list(TEMPLATES, refresh=refresh)

    async def list_prompts(self, *, refresh: bool = False) -> list[Prompt]:
        """All prompts; as `list_tools`."""
        return await self._list(PROMPTS, refresh=refresh)

    async def _list(self, kind: ListKind, *, refresh: bool) -> list[Any]:
        return await self._ready().lists.entries(kind, refresh=refresh)

    # Tools, resources, prompts -----------------------------------------------------------------------

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        check: bool = False,
        **keywords: Unpack[CallKeywords],
    ) -> ToolResult:
        """Call a tool. A tool that failed is a result too, with `is_error`; with `check` it is raised.

        `progress(progress, total, message)` is called for what the server reports. `timeout` and
        `idle_timeout` replace the client's limits, in seconds; `math.inf` lifts one. `meta` goes into
        the request's `_meta`. With `idempotent` the call may be made again where the connection broke; see
        `CallKeywords`. A result that does not fit the tool's `outputSchema`, as far as tools were listed,
        is returned with `invalid` saying how.

        Raises:
            ToolFailure: the tool failed, and `check` was asked for.
            RemoteError: the server refused the call (an unknown tool is -32602).
            UsageError: the server asks for input that no handler was given for, or the arguments cannot
                be sent as JSON.
        """
        session = self._ready()
        params = _CallParams(name=name, arguments={} if arguments is None else arguments)
        if keywords.get("idempotent") is None:
            keywords["idempotent"] = session.tools.safe(name)
        extras = session.extras(name, **keywords)
        extras.mirrored = session.tools.mirrored(name, params.arguments)
        patience = (extras.limits or session.connection.limits).overall

        async def send() -> Raw:
            raw = await self._call(params, extras)
            if session.options.tasks and is_task(raw):
                following = Following(session.connection, raw, fulfil=session.rounds.fulfil)
                raw = await following.result(patience)
            return raw

        result = await session.rounds.run(params, send=send, read=read_tool, patience=patience)
        result = session.tools.check(name, result)
        return result.raise_for_error() if check else result

    async def _call(self, params: _CallParams, extras: Extras) -> Raw:
        session = self._ready()
        connection = session.connection
        try:
            return await connection.request("tools/call", params, extras=extras)
        except RemoteError as exc:
            if exc.code != HEADER_MISMATCH or connection.transport.shared:
                raise
        # What the headers have to repeat may have changed since the list was read, or it never was.
        await self.list_tools(refresh=True)
        extras.mirrored = session.tools.mirrored(params.name, params.arguments)
        return await connection.request("tools/call", params, extras=extras)

    async def read_resource(self, uri: str, **keywords: Unpack[RequestKeywords]) -> ReadResourceResult:
        """What stands at `uri`: its `contents`, one or more. While the server's word is that they are fresh,
        as they were read last, unless keywords (`RequestKeywords`) are given.

        Raises:
            RemoteError: there is nothing there, or it was refused.
        """
        session = self._ready()
        shelf = session.shelf
        fresh: ReadResourceResult | None = None if keywords else shelf.fresh(READ, uri, now=session.clock())
        if fresh is not None:
            return fresh
        mark = shelf.mark(READ)
        params = ReadResourceParams(uri=uri)
        extras = session.extras(uri, **keywords)
        try:
            result = await session.asked(READ, params, read=read_contents, extras=extras)
        except Exception as exc:
            stale: ReadResourceResult | None = shelf.stale(READ, uri, fault=exc)
            if stale is None:
                raise
            return stale
        if params.input_responses is UNSET and params.request_state is UNSET:
            hints = (result.ttl_ms, result.cache_scope)
            shelf.keep(READ, uri, value=result, hints=hints, now=session.clock(), mark=mark)
        return result

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **keywords: Unpack[RequestKeywords],
    ) -> GetPromptResult:
        """A prompt with its arguments filled in: its `messages`. `keywords`: see `RequestKeywords`.

        Arguments that are no texts are sent as their JSON.

        Raises:
            RemoteError: there is no such prompt, or an argument is missing (-32602).
        """
        session = self._ready()
        params = GetPromptParams(name=name)
        if arguments is not None:
            params.arguments = {key: _text(value) for key, value in arguments.items()}
        extras = session.extras(name, **keywords)
        return await session.asked("prompts/get", params, read=read_prompt, extras=extras)

    async def complete(
        self,
        ref: PromptReference | ResourceTemplateReference | str,
        argument: str | Mapping[str, str],
        *,
        value: str = "",
        context: Mapping[str, str] | None = None,
    ) -> Completion:
        """What an argument may become, from the `value` that stands there so far.

        `ref` is what the argument belongs to: a prompt by its name, or a template of resources by its URI
        template. `argument` is its name, or the object of the wire with `name` and `value`. `context` are
        the arguments that are settled already.
        """
        if isinstance(argument, Mapping):
            typed = CompleteArgument(name=argument["name"], value=argument.get("value", value))
        else:
            typed = CompleteArgument(name=argument, value=value)
        params = CompleteParams(ref=_reference(ref), argument=typed)
        if context:
            params.context = CompleteContext(arguments=dict(context))
        session = self._ready()
        raw = await session.connection.request("completion/complete", params)
        return session.read(raw, read_completion).completion

    # Changes and the log -----------------------------------------------------------------------------

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool | Sequence[str] = False,
        resource_list: bool = False,
    ) -> Listening:
        """The server's changes, as they come: `async for change in client.listen(tools=True)`.

        `resources` are URIs whose contents are watched, or True for the list of resources, which beside
        URIs is `resource_list`. With nothing named, all lists. Works on every revision; goes on after a
        broken stream or a restarted server, whose next changes then say that some may have been `missed`.
        """
        wish = Wish.of(tools=tools, prompts=prompts, resources=resources, resource_list=resource_list)
        return self._ready().listeners.listen(wish)

    async def subscribe(self, uri: str) -> None:
        """Have the session tell when a resource changes: the `notification_handler` hears it.

        Raises:
            UsageError: the revision has no sessions; `listen` is there on every one.
        """
        await self._watches("resources/subscribe", uri).watches.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        """End what `subscribe` began. Raises as that."""
        await self._watches("resources/unsubscribe", uri).watches.drop(uri)

    def _watches(self, method: str, uri: str) -> Any:
        session = self._ready()
        self._have(session, method, hint=f"client.listen(resources=[{uri!r}])")
        return session.listeners

    async def set_logging_level(self, level: LoggingLevel) -> None:
        """Have the server send entries of its log from `level` up, to the `log_handler`.

        A session is told once; where there is none, each request says it from now on.
        """
        session = self._ready()
        method = "logging/setLevel"
        if method in session.revision.methods:
            await session.connection.request(method, SetLevelParams(level=level))
        session.connection.set_log_level(level)

    async def roots_changed(self) -> None:
        """Tell the server that `roots` are others now, where the revision has a word for it."""
        session = self._ready()
        if ROOTS_CHANGED in session.revision.notifications:
            await session.connection.notify(ROOTS_CHANGED)

    def _have(self, session: Session, method: str, *, hint: str) -> None:
        if method not in session.revision.methods:
            text = f"revision {session.revision.version} has no {method}"
            raise UsageError(text, server=session.connection.target.name, stage="call", hint=hint)

    # The rest ----------------------------------------------------------------------------------------

    async def ping(self) -> None:
        """Ask the server for a sign of life: `ping`, or `server/discover` where there is no `ping`."""
        session = self._ready()
        await session.connection.request("ping" if "ping" in session.revision.methods else DISCOVER, Params())

    async def discover(self) -> DiscoverResult:
        """What the server says of itself; from a server with a handshake, what it said there."""
        session = self._ready()
        if DISCOVER in session.revision.methods:
            session.hello = session.read(await session.connection.request(DISCOVER, Params()), read_discover)
        return session.hello

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send any request of the agreed revision, `_meta` added, and return its result as plain values.

        With `tasks` a call may come back as a task, which is then the caller's to look after.

        Raises:
            PeerFault: the result has a `resultType` that is not known here.
        """
        session = self._ready()
        body = {} if params is None else dict(params)
        extras = Extras(meta=body.pop("_meta", None))
        known = session.revision.methods.get(method)
        subject = SUBJECTS.get(method) if known is None else known.subject
        if subject is not None and isinstance(body.get(subject), str):
            extras.subject = body[subject]
        if known is not None and method == "tools/call":
            extras.mirrored = session.tools.mirrored(str(extras.subject), body.get("arguments") or {})
        result = _decode_any(await session.connection.request(method, body, extras=extras))
        task = session.options.tasks and is_object(result) and result.get("resultType") == RESULT_TYPE
        if is_object(result) and not task:
            try:
                check_type(result.get("resultType", UNSET))
            except PeerFault as exc:
                raise session.fault(exc.message) from None
        return result


def _text(value: Any) -> str:
    """A prompt's argument, which is always a text (prompts: Getting a Prompt)."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _reference(
    ref: PromptReference | ResourceTemplateReference | str,
) -> PromptReference | ResourceTemplateReference:
    if not isinstance(ref, str):
        return ref
    # Only templates have variables, and prompts have no scheme.
    return ResourceTemplateReference(uri=ref) if "{" in ref or "://" in ref else PromptReference(name=ref)
