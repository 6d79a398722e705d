"""What a client has while it is connected: the connection, what the server said of itself, who listens.

It brings them together and decides nothing of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict, TypeVar, Unpack

from msgspec import UNSET, Raw

from dragoman.client.cache import Shelf
from dragoman.client.connection import Connection, Extras
from dragoman.client.inputs import Inputs
from dragoman.client.listening import ACKNOWLEDGED, CHANGED, UPDATED, Listeners
from dragoman.client.lists import PROMPTS, RESOURCES, SKILLS, TEMPLATES, TOOLS, ListKind, Lists
from dragoman.client.options import ClientOptions, ProgressHandler
from dragoman.client.rounds import Rounds
from dragoman.client.tools import ToolList
from dragoman.errors import PeerFault
from dragoman.model import (
    DiscoverResult,
    InputRequiredResult,
    InputResponseParams,
    PaginatedParams,
    SetLevelParams,
)
from dragoman.revisions import Revision
from dragoman.schema.options import check_options

T = TypeVar("T")

READ: Final = "resources/read"
_REPEATABLE: Final = Extras(safe=True)  # no list changes anything
_PAGE_COMPLETE: Final = "notifications/elicitation/complete"
# What a change of a list makes stale.
_LISTS: Final[Mapping[str, tuple[ListKind, ...]]] = {
    "tools": (TOOLS,),
    "prompts": (PROMPTS,),
    "resources": (RESOURCES, TEMPLATES, SKILLS),  # a skill is made of resources, and has no notice of its own
}


class RequestKeywords(TypedDict, total=False):
    """What can be said for one request.

    `progress(progress, total, message)` is called for what the server reports. `timeout` and
    `idle_timeout` replace the client's limits, in seconds; `math.inf` lifts one. `meta` goes into the
    request's `_meta`.
    """

    progress: ProgressHandler | None
    timeout: float | None
    idle_timeout: float | None
    meta: Mapping[str, Any] | None


class CallKeywords(RequestKeywords, total=False):
    """What can be said for one call of a tool, beside `RequestKeywords`.

    `idempotent`: a second call with the same arguments has no further effect, so that the call may be made
    again where the connection broke before the answer. Else the tool's own `readOnlyHint` and
    `idempotentHint` say so, as far as tools were listed.
    """

    idempotent: bool | None


_KEYWORDS: Final = frozenset({*RequestKeywords.__annotations__, *CallKeywords.__annotations__})
_ONE_MAPPING: Final = "arguments of a tool or a prompt are one mapping, behind its name: {...}"


class Session:
    """One connected client."""

    def __init__(
        self, connection: Connection, hello: DiscoverResult, *, options: ClientOptions, inputs: Inputs
    ) -> None:
        self.connection = connection
        self.hello = hello
        self.options = options
        target = connection.target
        mirrors = self.revision.http.routing_headers and not connection.transport.shared
        self.tools = ToolList(target.name, mirrors=mirrors)
        server = object() if target.key is None else target.key
        self.shelf = Shelf.of(options.cache, server=server, context=target.context)
        self.clock = asyncio.get_running_loop().time
        self.lists = Lists(target.name, self.shelf, fetch=self._page, clock=self.clock)
        self.rounds = Rounds(target.name, inputs, limit=options.max_rounds)
        self.listeners = Listeners(connection, hello.capabilities)
        self.listeners.on_missed = self._missed
        connection.on_notice = self._notice
        connection.on_gap = self._gap
        connection.recovery.on_renewed = self._renewed

    @property
    def revision(self) -> Revision:
        """The revision agreed on."""
        revision = self.connection.revision
        assert revision is not None  # agreed on before there is a session
        return revision

    # Requests ----------------------------------------------------------------------------------------

    def extras(self, subject: str | None = None, **keywords: Unpack[CallKeywords]) -> Extras:
        """What goes with a request that can be watched. Raises UsageError for a keyword that there is not."""
        if keywords and not keywords.keys() <= _KEYWORDS:
            check_options(keywords, _KEYWORDS, of="a request", hint=_ONE_MAPPING)
        extras = Extras(subject, None, keywords.get("meta"), watched=True)
        extras.progress = keywords.get("progress") or self.options.progress_handler
        idle, overall = keywords.get("idle_timeout"), keywords.get("timeout")
        if idle is not None or overall is not None:
            extras.limits = self.connection.limits.override(idle=idle, overall=overall)
        extras.safe = keywords.get("idempotent") is True
        return extras

    async def asked(
        self,
        method: str,
        params: InputResponseParams,
        *,
        read: Callable[[Raw], T | InputRequiredResult],
        extras: Extras,
    ) -> T:
        """What a request comes to that may ask for input first."""

        async def send() -> Raw:
            return await self.connection.request(method, params, extras=extras)

        patience = (extras.limits or self.connection.limits).overall
        return await self.rounds.run(params, send=send, read=read, patience=patience)

    def read(self, raw: Raw, reading: Callable[[Raw], T]) -> T:
        """A result by that reading; its faults name the server."""
        try:
            return reading(raw)
        except PeerFault as exc:
            raise self.fault(exc.message) from None

    async def _page(self, method: str, params: PaginatedParams) -> Raw:
        return await self.connection.request(method, params, extras=_REPEATABLE)

    async def ask_for_logs(self) -> None:
        """Say from which level up the server should log to us, where that is said once a session."""
        level = self.connection.log_level
        offered = self.hello.capabilities.logging is not UNSET
        if level is not UNSET and offered and self.revision.handshake:
            await self.connection.request("logging/setLevel", SetLevelParams(level=level))

    def fault(self, message: str) -> PeerFault:
        """The server broke the protocol."""
        return PeerFault(message, server=self.connection.target.name, stage="call")

    # What the server says ------------------------------------------------------------------------------

    def _notice(self, method: str, params: Raw) -> None:
        kind = CHANGED.get(method)
        if kind is not None:
            self._stale(kind)
            self.listeners.notice(method, params)
        elif method == UPDATED:
            uri = self.listeners.notice(method, params)
            if uri is not None:
                self.shelf.changed(READ, uri)
        elif method == ACKNOWLEDGED:
            self.listeners.notice(method, params)
        elif method == _PAGE_COMPLETE:
            self.rounds.page_complete(params)

    def _stale(self, kind: str) -> None:
        for listed in _LISTS[kind]:
            self.shelf.changed(listed.method)

    def _missed(self) -> None:
        # Who counted on being told cannot be sure of anything any more.
        for kind in _LISTS:
            self._stale(kind)
        self.shelf.changed(READ)

    def _gap(self) -> None:
        self._missed()
        self.listeners.gap()

    async def _renewed(self) -> None:
        self._missed()
        self.listeners.renewed(self.ask_for_logs)
