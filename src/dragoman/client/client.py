"""`Client`: what people call servers with. A face over the connection, the list of tools and the inputs.

Nothing of it is tied to the task that made it: it may be entered in one task and left in another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, Unpack

import msgspec
from msgspec import UNSET, Raw

from dragoman.client.connection import Connection, Extras
from dragoman.client.inputs import Inputs
from dragoman.client.opening import Opening
from dragoman.client.options import ClientKeywords, ClientOptions, ProgressHandler
from dragoman.client.result import Answer, ToolResult, check_type, read
from dragoman.client.target import TargetLike, resolve
from dragoman.client.tasks import Following, is_task
from dragoman.client.tools import ToolList
from dragoman.errors import ClosedError, PeerFault, Refusal, RemoteError, UsageError
from dragoman.model import (
    HEADER_MISMATCH,
    INPUT_REQUIRED,
    SERVER_INFO_KEY,
    DiscoverResult,
    Implementation,
    InitializeResult,
    InputRequest,
    InputResponseParams,
    PaginatedParams,
    Params,
    ServerCapabilities,
    SetLevelParams,
    Tool,
)
from dragoman.protocol.lenient import reader
from dragoman.protocol.negotiation import DISCOVER
from dragoman.revisions import Revision
from dragoman.schema.shapes import is_object

MAX_ROUNDS: Final = 32  # times one call may ask for input
_PAUSE_MAX: Final = 1.0

_read_discover: Final = reader(DiscoverResult)
_decode_any: Final = msgspec.json.Decoder().decode


class _CallParams(InputResponseParams, kw_only=True):
    name: str
    arguments: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class _Session:
    """What a client has while it is connected."""

    connection: Connection
    hello: DiscoverResult
    tools: ToolList

    @property
    def revision(self) -> Revision:
        """The revision agreed on."""
        revision = self.connection.revision
        assert revision is not None  # agreed on before there is a session
        return revision


class Client:
    """A client of one server.

    `target` is a URL, a command line (list or str), a path to a .py file, a server object of this
    process, an entry of a configuration file, or a transport. The keywords are those of
    `ClientOptions`::

        async with Client("https://example.com/mcp") as client:
            result = await client.call_tool("lookup_order", {"order_id": "A-1042"})

    Every verb raises `RemoteError` for an error that the server answered, and a `LocalError` for what
    happened here: `ClosedError`, `DeadlineError` (which limit, how long), `PeerFault` (the server broke
    the protocol), `UsageError`. Cancelling the task that awaits a verb cancels that request at the server
    and nothing else.
    """

    def __init__(self, target: TargetLike, **options: Unpack[ClientKeywords]) -> None:
        self._options = ClientOptions.of(options)
        self._target = resolve(target, self._options)
        self._inputs = Inputs(self._options)
        self._connecting = asyncio.Lock()
        self._connection: Connection | None = None  # being opened, open, or closed
        self._session: _Session | None = None
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else "connected" if self._session else "not connected"
        return f"<Client of {self.name!r}, {state}>"

    # Life --------------------------------------------------------------------------------------------

    async def connect(self) -> Self:
        """Start or reach the server and agree on a revision; nothing when that is done already.

        Raises:
            ConnectError: the program did not start, the address did not answer.
            NegotiationError: nothing is common with the server.
            DeadlineError: `connect_timeout` ran out.
        """
        async with self._connecting:
            if self._closed:
                raise self._gone()
            if self._session is None:
                self._session = await self._open()
        return self

    async def _open(self) -> _Session:
        connection = Connection(self._target, options=self._options, inputs=self._inputs)
        self._connection = connection
        try:
            opening = Opening(connection, options=self._options, inputs=self._inputs)
            ready = await opening.run()
            connection.on_session_ended = opening.renew
            mirrors = ready.revision.http.routing_headers and not connection.transport.shared
            tools = ToolList(self.name, mirrors=mirrors, cache=self._options.cache)
            connection.on_notice = lambda method, _: (
                tools.changed() if method == "notifications/tools/list_changed" else None
            )
            session = _Session(connection, _neutral(ready.hello, ready.revision), tools)
            await self._ask_for_logs(session)
        except BaseException:
            await connection.close()
            raise
        return session

    async def _ask_for_logs(self, session: _Session) -> None:
        offered = session.hello.capabilities.logging is not UNSET
        if self._options.log_handler is not None and offered and session.revision.handshake:
            await session.connection.request(
                "logging/setLevel", SetLevelParams(level=self._options.log_level)
            )

    async def close(self) -> None:
        """End the connection, and the process if it was started from here.

        From any task, at any time, any number of times. What is still awaited ends with `ClosedError`.
        """
        self._closed = True
        if self._connection is not None:
            await self._connection.close()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Facts -------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What errors and logs call the server."""
        return self._target.name

    @property
    def connected(self) -> bool:
        """Whether requests can be sent."""
        return self._session is not None and not self._closed

    @property
    def revision(self) -> Revision:
        """The revision agreed on. Raises UsageError before that, as do the other facts."""
        return self._ready().revision

    @property
    def server_info(self) -> Implementation | None:
        """Who the server says it is; never a basis for trust."""
        meta = self._ready().hello.meta
        said = None if meta is UNSET else meta.get(SERVER_INFO_KEY)
        try:
            return None if said is None else msgspec.convert(said, Implementation)
        except msgspec.ValidationError:
            return None

    @property
    def capabilities(self) -> ServerCapabilities:
        """What the server offers."""
        return self._ready().hello.capabilities

    @property
    def instructions(self) -> str | None:
        """How the server says a model should use it."""
        said = self._ready().hello.instructions
        return None if said is UNSET else said

    def facts(self) -> Mapping[str, Any]:
        """What is known of the other end, for diagnosis: process id, exit status, noise, URL."""
        return {} if self._connection is None else self._connection.transport.facts()

    # Verbs -------------------------------------------------------------------------------------------

    async def list_tools(self, *, refresh: bool = False) -> list[Tool]:
        """All tools, of all pages. While the server's word is that its list is fresh, as it was read last;
        with `refresh`, read anew in any case.

        Over HTTP, tools whose `x-mcp-header` annotations break the rules are left out, with a warning.
        """
        session = self._ready()
        clock = asyncio.get_running_loop().time
        fresh = None if refresh else session.tools.fresh(clock())
        if fresh is not None:
            return fresh

        async def page(params: PaginatedParams) -> Raw:
            return await session.connection.request("tools/list", params)

        return await session.tools.fetch(page, clock)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: ProgressHandler | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool. A tool that failed is a result too, with `is_error`; it is not raised.

        `progress(progress, total, message)` is called for what the server reports. `timeout` and
        `idle_timeout` replace the client's limits, in seconds; `math.inf` lifts one. `meta` goes into
        the request's `_meta`. A result that does not fit the tool's `outputSchema`, as far as tools were
        listed, is returned with `invalid` saying how.

        Raises:
            RemoteError: the server refused the call (an unknown tool is -32602).
            UsageError: the server asks for input that no handler was given for, or the arguments cannot
                be sent as JSON.
        """
        session = self._ready()
        connection = session.connection
        params = _CallParams(name=name, arguments={} if arguments is None else arguments)
        extras = Extras(name, session.tools.mirrored(name, params.arguments), meta, watched=True)
        extras.progress = progress or self._options.progress_handler
        extras.limits = connection.limits.override(idle=idle_timeout, overall=timeout)
        try:
            raw = await connection.request("tools/call", params, extras=extras)
        except RemoteError as exc:
            if exc.code != HEADER_MISMATCH or connection.transport.shared:
                raise
            # What the headers have to repeat may have changed since the list was read, or it never was.
            await self.list_tools(refresh=True)
            extras.mirrored = session.tools.mirrored(name, params.arguments)
            raw = await connection.request("tools/call", params, extras=extras)
        return session.tools.check(name, await self._final(raw, params, extras=extras))

    async def _final(self, raw: Raw, params: _CallParams, *, extras: Extras) -> ToolResult:
        """What a call comes to, from its first answer."""
        if self._options.tasks and is_task(raw):
            connection = self._ready().connection
            following = Following(connection, raw, fulfil=self._fulfil)
            raw = await following.result((extras.limits or connection.limits).overall)
        answer, result = self._read(raw)
        return (
            result
            if answer.result_type != INPUT_REQUIRED
            else await self._rounds(answer, params, extras=extras)
        )

    async def _rounds(self, answer: Answer, params: _CallParams, *, extras: Extras) -> ToolResult:
        """Send the call again with what the server asked for, until it asks no more (basic: MRTR)."""
        for turn in range(MAX_ROUNDS):
            if answer.input_requests is UNSET and answer.request_state is UNSET:
                raise self._fault("input_required with neither inputRequests nor requestState")
            if answer.input_requests is UNSET:
                # It only wants to be asked again; more slowly each time.
                await asyncio.sleep(min(_PAUSE_MAX, 0.01 * 2**turn) if turn else 0)
                params.input_responses = UNSET
            else:
                params.input_responses = await self._fulfil(answer.input_requests)
            params.request_state = answer.request_state
            raw = await self._ready().connection.request("tools/call", params, extras=extras)
            if self._options.tasks and is_task(raw):
                return await self._final(raw, params, extras=extras)
            answer, result = self._read(raw)
            if answer.result_type != INPUT_REQUIRED:
                return result
        raise self._fault(f"{params.name} asked for input {MAX_ROUNDS} times")

    async def _fulfil(self, asked: Mapping[str, InputRequest]) -> dict[str, Any]:
        try:
            return await self._inputs.fulfil(asked)
        except Refusal as exc:
            hint = "an elicitation_handler=, a sampling_handler= or roots= for the client"
            text = f"the call needs input, and {exc.message}"
            raise UsageError(text, server=self.name, stage="call", hint=hint) from None

    def _read(self, raw: Raw) -> tuple[Answer, ToolResult]:
        try:
            return read(raw)
        except PeerFault as exc:
            raise self._fault(exc.message) from None

    async def ping(self) -> None:
        """Ask the server for a sign of life: `ping`, or `server/discover` where there is no `ping`."""
        session = self._ready()
        await session.connection.request("ping" if "ping" in session.revision.methods else DISCOVER, Params())

    async def discover(self) -> DiscoverResult:
        """What the server says of itself; from a server with a handshake, what it said there."""
        session = self._ready()
        if DISCOVER in session.revision.methods:
            raw = await session.connection.request(DISCOVER, Params())
            try:
                session.hello = _read_discover(raw)
            except msgspec.ValidationError as exc:
                raise self._fault(f"malformed result of {DISCOVER}: {exc}") from None
        return session.hello

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send any request of the agreed revision, `_meta` added, and return its result as plain values.

        Raises:
            PeerFault: the result has a `resultType` that is not known here.
        """
        session = self._ready()
        body = {} if params is None else dict(params)
        extras = Extras(meta=body.pop("_meta", None))
        known = session.revision.methods.get(method)
        if known is not None and known.subject is not None:
            extras.subject = body.get(known.subject)
        if known is not None and method == "tools/call":
            extras.mirrored = session.tools.mirrored(str(extras.subject), body.get("arguments") or {})
        result = _decode_any(await session.connection.request(method, body, extras=extras))
        if is_object(result):
            self._check_type(result.get("resultType", UNSET))
        return result

    def _check_type(self, result_type: Any) -> None:
        try:
            check_type(result_type)
        except PeerFault as exc:
            raise self._fault(exc.message) from None

    def _ready(self) -> _Session:
        session = self._session
        if session is None or self._closed:
            raise self._gone()
        return session

    def _gone(self) -> UsageError | ClosedError:
        if self._closed:
            return ClosedError("this client was closed", server=self.name, stage="call")
        hint = "`async with Client(...) as client:`, or `await client.connect()` first"
        return UsageError("not connected yet", server=self.name, stage="call", hint=hint)

    def _fault(self, message: str) -> PeerFault:
        return PeerFault(message, server=self.name, stage="call")


def _neutral(hello: DiscoverResult | InitializeResult | None, revision: Revision) -> DiscoverResult:
    """What a server said of itself, in the newest shape, whichever way it said it."""
    if isinstance(hello, DiscoverResult):
        return hello
    if hello is None:
        return DiscoverResult(supported_versions=[revision.version], capabilities=ServerCapabilities())
    return DiscoverResult(
        supported_versions=[hello.protocol_version],
        capabilities=hello.capabilities,
        instructions=hello.instructions,
        meta={SERVER_INFO_KEY: msgspec.to_builtins(hello.server_info)},
    )
