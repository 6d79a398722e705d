"""`Client`: what people call servers with: how it begins and ends, and what is known of the other end.

Nothing of it is tied to the task that made it: it may be entered in one task and left in another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, Unpack

import msgspec
from msgspec import UNSET

from dragoman.client.connection import Connection
from dragoman.client.inputs import Inputs
from dragoman.client.opening import Opening
from dragoman.client.options import ClientKeywords, ClientOptions
from dragoman.client.session import Session
from dragoman.client.skills import SkillVerbs
from dragoman.client.target import TargetLike, resolve
from dragoman.errors import ClosedError, UsageError
from dragoman.model import (
    SERVER_INFO_KEY,
    DiscoverResult,
    Implementation,
    InitializeResult,
    ServerCapabilities,
)
from dragoman.revisions import Revision

_BEGINNING: Final = "`async with Client(...) as client:`"


class Client(SkillVerbs):
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

    _first: ClassVar[str] = f"{_BEGINNING}, or `await client.connect()` first"

    def __init__(self, target: TargetLike, **options: Unpack[ClientKeywords]) -> None:
        self._options = ClientOptions.of(options)
        self._target = resolve(target, self._options)
        self._inputs = Inputs(self._options, self._target.name)
        self._connecting = asyncio.Lock()
        self._connection: Connection | None = None  # being opened, open, or closed
        self._session: Session | None = None
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

    async def _open(self) -> Session:
        connection = Connection(self._target, options=self._options, inputs=self._inputs)
        self._connection = connection
        try:
            opening = Opening(connection, options=self._options, inputs=self._inputs)
            ready = await opening.run()
            connection.recovery.renew = opening.renew
            hello = _neutral(ready.hello, ready.revision)
            session = Session(connection, hello, options=self._options, inputs=self._inputs)
            await session.ask_for_logs()
        except BaseException:
            await connection.close()
            raise
        return session

    async def close(self) -> None:
        """End the connection, and the process if it was started from here.

        From any task, at any time, any number of times. What is still awaited ends with `ClosedError`.
        """
        self._closed = True
        if self._session is not None:
            self._session.listeners.stop()
        if self._connection is not None:
            await self._connection.close()
        if self._session is not None:
            await self._session.listeners.ended()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    if not TYPE_CHECKING:  # a type checker says it of itself, as there is no such method for it

        def __enter__(self) -> Self:
            """Say what was meant."""
            hint = f"{_BEGINNING}, or SyncClient where nothing is awaited"
            raise UsageError("a Client is entered with `async with`, not `with`", hint=hint)

        def __exit__(self, *exc: object) -> None:
            """Never reached; Python looks for it before it enters."""

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

    # To the verbs ------------------------------------------------------------------------------------

    def _ready(self) -> Session:
        session = self._session
        if session is None or self._closed:
            raise self._gone()
        return session

    def _gone(self) -> UsageError | ClosedError:
        if self._closed:
            return ClosedError("this client was closed", server=self.name, stage="call")
        return UsageError("not connected yet", server=self.name, stage="call", hint=self._first)


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
