"""An admitted call goes in, a result in the shape of its revision comes out.

Routes by method, with the middleware folded around. No bytes, no HTTP, and no question of which
revision it is beyond the facts that the revision's record states.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import Refusal, UsageError
from dragoman.model import (
    SERVER_INFO_KEY,
    CacheScope,
    DiscoverResult,
    EmptyResult,
    Implementation,
    InitializeParams,
    InitializeResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedResult,
    ResourceContents,
    Result,
    ServerCapabilities,
)
from dragoman.protocol.call import Call
from dragoman.protocol.link import Link, Session
from dragoman.revisions import BY_VERSION, HANDSHAKE, STATELESS
from dragoman.revisions.base import Addition, Caller, Method
from dragoman.schema.parameters import HeaderParameter
from dragoman.server.asking import Suspend
from dragoman.server.extension import Extension
from dragoman.server.home import Home
from dragoman.server.middleware import Handler, Middleware, fold
from dragoman.server.registry import Paging, Registry
from dragoman.server.subscriptions import Hub, Kind
from dragoman.server.tool import NameRule, Tool

if TYPE_CHECKING:
    from dragoman.server.catalog import Catalog
    from dragoman.server.context import Context
    from dragoman.server.lifespan import Lifespan
    from dragoman.server.rounds import Rounds
    from dragoman.server.sight import Sight

log = logging.getLogger("dragoman.server")


class Identity(msgspec.Struct, frozen=True):
    """What a server says of itself."""

    info: Implementation
    instructions: str | None = None
    ttl_ms: int = 0
    cache_scope: CacheScope = "public"


class _Kept(msgspec.Struct, frozen=True):
    """A list result and its encoding for one revision; good as long as it is the same object."""

    result: Result
    encoded: Raw


class Kernel:
    """The server behind its face (`protocol.call.Kernel`)."""

    def __init__(self, identity: Identity, paging: Paging, *, rounds: Callable[[], Rounds]) -> None:
        self.identity = identity
        self.tools = Registry[Tool](
            "tool", member="tools", result=ListToolsResult, paging=paging.of("tools/list")
        )
        self._tool = self.tools.get
        self.home = Home(self.tools.get)
        self.sight: Sight | None = None  # who sees what, where not everybody sees all
        self.hub = Hub()
        self.extra_methods: dict[str, Method] = {}
        self._extensions: dict[str, Extension] = {}
        self._lives: list[Lifespan] = []  # of extensions
        self.run_task: Callable[[Tool, Call], Awaitable[Result]] | None = None  # for tools with `task`
        self._rounds = rounds
        self.layers: list[Middleware] = []
        self._folded: Handler | None = None  # none as long as there are no layers
        self._reader = self._read
        self._kept: dict[tuple[str, str, str | None], _Kept] = {}
        info = Raw(msgspec.json.encode(identity.info))
        self._seal_meta = Addition({SERVER_INFO_KEY: info})
        self._routes: dict[str, Handler] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "subscriptions/listen": self.hub.listen,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }
        self.tools.on_change = self.tools_changed
        self.tools.watchers.append(NameRule())
        self._paging = paging
        self._catalog: Catalog | None = None

    # The protocol.call.Kernel face ---------------------------------------------------------------

    async def handle(self, call: Call) -> Result:
        """The sealed result of one call. Raises Refusal."""
        run = self._folded or self._routes.get(call.method.name) or self._route
        home = call.home = self.home
        if home.life is not None:
            call.lifespan = await home.life.value()
        result = await run(call)
        if call.progress is not None:
            call.progress.flush()
        if call.method.cacheable:
            return self._sealed_list(call, result)
        seal = call.revision.seal  # as in `Tool.run`
        return seal(result, call.method, extra=self._seal_meta)

    def notified(self, link: Link, method: str, *, params: bytes) -> None:
        """A notification came in; unknown ones are passed over, as JSON-RPC 2.0 has it."""
        del params
        if method == "notifications/initialized" and link.session is not None:
            link.session.initialized = True
            self.hub.links.add(link)

    def header_parameters(self, tool: str) -> tuple[HeaderParameter, ...]:
        """The parameters that HTTP mirrors into headers; empty for an unknown tool."""
        found = self.tools.get(tool)
        return () if found is None else found.headers

    def attach(self) -> None:
        """Somebody begins to serve: the lifespan starts."""
        self.home.attach()
        for life in self._lives:
            life.hold()

    async def detach(self) -> None:
        """They are done: the lifespan ends with the last of them."""
        for life in reversed(self._lives):
            await life.release()
        await self.home.detach()

    def linked(self, link: Link) -> None:
        """A connection opened. It is told of changes once its handshake is complete."""

    def unlinked(self, link: Link) -> None:
        """A connection is over: its subscriptions end gracefully."""
        self.hub.links.discard(link)
        self.hub.end(link)

    # Change --------------------------------------------------------------------------------------

    def use(self, layer: Middleware) -> None:
        """Add a middleware inside those that are there."""
        self.layers.append(layer)
        self._folded = fold(self.layers, self._route)

    def extend(self, extension: Extension) -> None:
        """Add what an extension brings. Raises UsageError if it is there already."""
        if extension.name in self._extensions:
            raise UsageError(f"the extension {extension.name} is there twice")
        self._extensions[extension.name] = extension
        self.extra_methods |= extension.methods
        self._routes |= extension.routes
        self.hub.granted |= extension.listens
        if extension.layer is not None:
            self.use(extension.layer)
        if extension.life is not None:
            self._lives.append(extension.life)
        if extension.run_tool is not None:
            self.run_task = extension.run_tool

    def tools_changed(self) -> None:
        """Tell everybody who listens that the tools changed."""
        self.changed("tools")

    def changed(self, kind: Kind) -> None:
        """Tell everybody who listens that a list changed; from the first time on there is such a list."""
        self._kept.clear()
        if kind not in self.hub.kinds:
            self.hub.kinds = frozenset([*self.hub.kinds, kind])
            self._routes |= self.catalog.routes(kind, self.in_rounds)
        self.hub.publish(kind)

    @property
    def catalog(self) -> Catalog:
        """The prompts, resources and templates; made when one is first asked for."""
        if self._catalog is None:
            from dragoman.server.catalog import Catalog

            self._catalog = Catalog(self._paging, seen=self.seen, changed=self.changed)
            self.hub.hidden = self._catalog.hidden
        return self._catalog

    async def _read(self, call: Call, context: Context, *, uri: str) -> list[ResourceContents]:
        return await self.catalog.reading.within(call, context, uri=uri)

    def seen(self, principal: str | None) -> Callable[[Any], bool] | None:
        """What picks the things that a principal sees; None where everybody sees all."""
        return None if self.sight is None else self.sight.of(principal)

    # Routes --------------------------------------------------------------------------------------

    def _route(self, call: Call) -> Awaitable[Result]:
        handler = self._routes.get(call.method.name)
        if handler is None:
            raise Refusal(-32601, f"Method not found: {call.method.name}", {"method": call.method.name})
        return handler(call)

    def _sealed_list(self, call: Call, result: Result) -> Result:
        """A list as encoded before, if it is the very object that was encoded before."""
        cursor = getattr(call.params, "cursor", UNSET) or None
        key = call.method.name, call.revision.version, cursor
        kept = self._kept.get(key)
        if kept is not None and kept.result is result:
            return cast("Result", kept.encoded)  # an encoding stands for what it encodes
        sealed = call.revision.seal(result, call.method, extra=self._seal_meta)
        if not isinstance(result, PaginatedResult):
            return sealed
        encoded = Raw(msgspec.json.encode(sealed))
        self._kept[key] = _Kept(result, encoded)
        return cast("Result", encoded)

    def capabilities(self, *, handshake: bool = False) -> ServerCapabilities:
        """What this server offers right now, by revisions with a `handshake` or by those without."""
        extensions = {
            name: dict(extension.settings)
            for name, extension in self._extensions.items()
            if extension.everywhere or not handshake
        }
        capabilities = ServerCapabilities(
            tools={"listChanged": True}, logging={}, extensions=extensions or UNSET
        )
        if self._catalog is not None:
            self._catalog.declare(capabilities, self.hub.kinds)
        return capabilities

    async def _initialize(self, call: Call) -> InitializeResult:
        params: InitializeParams = call.params
        asked = BY_VERSION.get(params.protocol_version)
        # A revision that needs no handshake, or that is unknown, is answered with the newest that
        # has one (2025-11-25, lifecycle: Version Negotiation).
        revision = asked if asked is not None and asked.handshake else HANDSHAKE
        call.link.session = Session(revision, Caller(params.client_info, params.capabilities))
        call.revision = revision
        return InitializeResult(
            protocol_version=revision.version,
            capabilities=self.capabilities(handshake=True),
            server_info=self.identity.info,
            instructions=UNSET if self.identity.instructions is None else self.identity.instructions,
        )

    async def _discover(self, call: Call) -> DiscoverResult:
        del call
        return DiscoverResult(
            supported_versions=list(STATELESS),
            capabilities=self.capabilities(),
            instructions=UNSET if self.identity.instructions is None else self.identity.instructions,
            ttl_ms=self.identity.ttl_ms,
            cache_scope=self.identity.cache_scope,
        )

    async def _ping(self, call: Call) -> EmptyResult:
        del call
        return EmptyResult()

    async def _set_level(self, call: Call) -> EmptyResult:
        if call.link.session is not None:
            call.link.session.log_level = call.params.level
        return EmptyResult()

    async def _list_tools(self, call: Call) -> Result:
        cursor = call.params.cursor
        return self.tools.page(None if cursor is UNSET else cursor, self.seen(call.principal))

    def _call_tool(self, call: Call) -> Awaitable[Result]:
        params = call.params
        tool = self._tool(params.name)
        if tool is None or (self.sight is not None and not self.sight.sees(tool, call.principal)):
            raise Refusal(-32602, f"Unknown tool: {params.name}", {"name": params.name})
        if tool.task and self.run_task is not None:
            return self.in_rounds(call, partial(self.run_task, tool))
        return self.in_rounds(call, tool.run)

    async def prepare(self, call: Call) -> None:
        """Give a call that came by no transport what handlers find on all others. Raises Refusal."""
        call.home = self.home
        call.reader = self._read
        if self.home.life is not None:
            call.lifespan = await self.home.life.value()

    async def in_rounds(self, call: Call, handle: Handler) -> Result:
        """Answer a call whose handler may ask the client."""
        params = call.params
        call.reader = self._reader
        came_back = params.request_state is not UNSET or params.input_responses is not UNSET
        if came_back and not call.revision.asks_inline:
            self._rounds().open(call)
        try:
            result = await handle(call)
        except Suspend as suspend:
            result = suspend.result()
        if type(result) is InputRequiredResult:
            return await self._rounds().finish(call, result, handle=handle)
        return result
