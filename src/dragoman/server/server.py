"""`Server`: what people write servers with. A face over the registry and the kernel."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Unpack, overload

from msgspec import UNSET

from dragoman.errors import UsageError
from dragoman.model import CacheScope, Icon, Implementation
from dragoman.schema.options import check_options
from dragoman.server.composing import Composes, LifeOptions
from dragoman.server.extension import Extending, Services
from dragoman.server.features import Features
from dragoman.server.kernel import Identity, Kernel
from dragoman.server.middleware import Middleware, only
from dragoman.server.registry import Caching, Paging
from dragoman.server.tool import Tool, ToolOptions, build
from dragoman.transports.stdio import run_stdio, serve_stdio

if TYPE_CHECKING:
    from dragoman.protocol.sealing import Keys
    from dragoman.server.rounds import Rounds
    from dragoman.transports.asgi import HttpApp

F = TypeVar("F", bound=Callable[..., Any])

# The protocol asks for a version of each server. Of one that was given none nothing is known.
UNVERSIONED: Final = "0.0.0"


class ServerOptions(LifeOptions, total=False):
    """What `Server(...)` takes beside its name, version and instructions, all optional.

    `title`, `description`, `website_url`, `icons`: how the server presents itself. `page_size`: entries
    on one page of a list; all on one without it. `ttl_ms`, `cache_scope`: how long and by whom
    lists may be cached (server/utilities/caching); `caching`: the same for single methods, as in
    `{"prompts/list": {"ttl_ms": 60_000}}`. `argument_errors`: `"result"` answers arguments
    that do not fit with `isError`, `"protocol"` with -32602. `middleware`: outermost first.
    `secret`: what seals the state that clients keep between rounds; at least 16 bytes, or several,
    the newest first. Every process of one service needs the same; without it the environment
    variable DRAGOMAN_SECRET counts, and without that a random one that dies with the process.
    `state_lifetime`: seconds that a client has for each round (3600). `extensions`: such as `Tasks()`.
    `lifespan`, `visible`, `progress_rate`: see `LifeOptions`.
    """

    title: str
    description: str
    website_url: str
    icons: Sequence[Icon]
    page_size: int
    ttl_ms: int
    cache_scope: CacheScope
    caching: Mapping[str, Caching]
    argument_errors: Literal["result", "protocol"]
    middleware: Iterable[Middleware]
    secret: str | bytes | Sequence[str | bytes]
    state_lifetime: float
    extensions: Iterable[Extending]


class Server(Features, Composes):
    """An MCP server. `version` is the server's own; clients are told 0.0.0 where none is given.

    Handlers are written once and work on every revision and every transport::

        server = Server("orders", version="1.0.0")

        @server.tool
        async def lookup_order(order_id: str) -> Order: ...

        server.run()
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = UNVERSIONED,
        instructions: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        if not name:
            raise UsageError("a server needs a name")
        check_options(options, {"version", "instructions", *ServerOptions.__optional_keys__}, of="Server()")
        errors = options.get("argument_errors", "result")
        if errors not in ("result", "protocol"):
            raise UsageError(f'argument_errors: expected "result" or "protocol", received {errors!r}')
        info = Implementation(
            name=name,
            version=version,
            title=options.get("title", UNSET),
            description=options.get("description", UNSET),
            website_url=options.get("website_url", UNSET),
            icons=list(options["icons"]) if "icons" in options else UNSET,
        )
        self._secrets = _secrets(options.get("secret"))
        self._keys: Keys | None = None
        self._rounds: Rounds | None = None
        self._state_lifetime = options.get("state_lifetime", 3600.0)
        ttl_ms, scope = options.get("ttl_ms", 0), options.get("cache_scope", "public")
        paging = Paging(options.get("page_size"), ttl_ms, scope, self._sign, options.get("caching", {}))
        hello = paging.of("server/discover")
        identity = Identity(info, instructions, hello.ttl_ms, hello.cache_scope)
        self.kernel = Kernel(identity, paging, rounds=self._in_rounds)
        self._settle(options)
        self._protocol_errors = errors == "protocol"
        for layer in options.get("middleware", ()):
            self.kernel.use(layer)
        kernel = self.kernel
        for extending in options.get("extensions", ()):
            kernel.extend(extending.extension(self._services(paging)))

    def _services(self, paging: Paging) -> Services:
        kernel = self.kernel
        return Services(
            name=self.name,
            secrets=tuple(self._secrets),
            tool=kernel.tools.get,
            prepare=kernel.prepare,
            paging=paging,
            resources=lambda: kernel.catalog.resources,
            templates=lambda: kernel.catalog.templates,
            seen=kernel.seen,
            changed=kernel.changed,
            updated=kernel.hub.updated,
        )

    @property
    def keys(self) -> Keys:
        """The key ring that seals what clients keep for this server."""
        if self._keys is None:
            from dragoman.protocol.sealing import Keys

            self._keys = Keys(*self._secrets) if self._secrets else Keys.random()
        return self._keys

    def _in_rounds(self) -> Rounds:
        if self._rounds is None:
            from dragoman.server.rounds import Rounds

            self._rounds = Rounds(self.keys, self._state_lifetime)
        return self._rounds

    def _sign(self, plain: bytes) -> bytes:
        # Without a common secret a cursor still has to be good in every process of the service: then
        # the signature only tells the server's own cursors from all other text.
        if self._secrets:
            return self.keys.sign(plain, purpose="cursor")
        from dragoman.protocol.sealing import Keys

        return Keys(self.name.encode().ljust(32, b"\0")).sign(plain, purpose="cursor")

    @property
    def name(self) -> str:
        """The name it was made with."""
        return self.kernel.identity.info.name

    def __repr__(self) -> str:
        return f"<Server {self.name!r}, {len(self.kernel.tools)} tools>"

    # Tools ---------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, function: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Make a tool of a function: `@server.tool`, or `@server.tool(name=..., ...)`.

        The function stays as it is. Its signature becomes the input schema, its return annotation
        the output schema, its docstring the description. A plain `def` runs in a worker thread.

        Raises:
            UsageError: the signature cannot be called with a JSON object, or the name is taken.
        """
        if isinstance(function, str):
            options["name"] = function
            function = None
        if function is None:

            def add(target: F) -> F:
                return self.add_tool(target, **options)

            return add
        return self.add_tool(function, **options)

    def add_tool(self, function: F, **options: Unpack[ToolOptions]) -> F:
        """As `tool`, for a function that is not decorated. Listeners are told at once."""
        tool = build(function, options, protocol_errors=self._protocol_errors)
        if tool.task and self.kernel.run_task is None:
            raise UsageError(
                f"the tool {tool.name!r} is to run as a task, and this server has none",
                hint=f"Server({self.name!r}, extensions=[Tasks()])",
            )
        self.kernel.tools.add(tool)
        return function

    def remove_tool(self, name: str) -> None:
        """Take a tool away. Listeners are told at once. Raises UsageError if there is none."""
        self.kernel.tools.remove(name)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools in the order in which a list shows them."""
        return tuple(self.kernel.tools)

    def notify_tools_changed(self) -> None:
        """Tell everybody who listens to read the list again. Not needed after `tool` and `remove_tool`."""
        self.kernel.tools_changed()

    # Middleware ----------------------------------------------------------------------------------

    def middleware(self, layer: Middleware | str) -> Any:
        """Put a function around every call, or around those of one method.

        `@server.middleware` or `@server.middleware("tools/call")` on
        `async def layer(call, proceed) -> Result`. Those added first are the outermost.
        """
        if isinstance(layer, str):
            method = layer

            def add(function: Middleware) -> Middleware:
                self.kernel.use(only(method, function))
                return function

            return add
        self.kernel.use(layer)
        return layer

    # Serving -------------------------------------------------------------------------------------

    def run(
        self,
        transport: Literal["stdio", "http"] = "stdio",
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        path: str = "/mcp",
        **options: Any,
    ) -> None:
        """Serve until the input ends (stdio) or a signal comes (HTTP), in an event loop of its own.

        `options` are those of `asgi()` for HTTP.

        Raises:
            UsageError: an unknown transport or option, or an event loop runs here already.
        """
        _check_transport(transport)
        if _in_loop():
            hint = f"await server.run_async({transport!r})"
            raise UsageError("run() starts an event loop, and one is running here", hint=hint)
        if transport == "stdio":
            # The streams are taken before there is a loop, and what cannot be stopped ends with the
            # process: neither is for `run_async` to do.
            run_stdio(self.kernel)
        else:
            from dragoman.transports.serve import run_http

            run_http(self.asgi(path=path, **options), host=host, port=port)

    async def run_async(
        self,
        transport: Literal["stdio", "http"] = "stdio",
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        path: str = "/mcp",
        bound: Callable[[int], None] | None = None,
        **options: Any,
    ) -> None:
        """As `run`, inside an event loop that runs already, beside whatever else it does.

        Ends with the input (stdio), with SIGINT or SIGTERM (HTTP), and when its task is cancelled. Over
        HTTP port 0 takes a free port, and `bound` is told which. Over stdio the standard streams
        are the protocol's from here on: what is printed goes to stderr, and signals are the program's own.

        Raises:
            UsageError: an unknown transport or option; a standard stream is closed.
            ConnectError: the address cannot be bound.
        """
        _check_transport(transport)
        if transport == "stdio":
            await serve_stdio(self.kernel)
        else:
            from dragoman.transports.serve import serve

            await serve(self.asgi(path=path, **options), host=host, port=port, bound=bound)

    def asgi(self, path: str = "/mcp", **options: Any) -> HttpApp:
        """The server as a plain ASGI app, to run alone or mount anywhere."""
        from dragoman.transports.asgi import HttpApp, HttpOptions

        check_options(options, HttpOptions.__dataclass_fields__, of="HTTP")
        return HttpApp(
            self.kernel, path=path, options=HttpOptions(**options), name=self.name, keys=lambda: self.keys
        )


def _check_transport(transport: str) -> None:
    if transport not in ("stdio", "http"):
        raise UsageError(f'transport: expected "stdio" or "http", received {transport!r}')


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _secrets(given: str | bytes | Sequence[str | bytes] | None) -> list[str | bytes]:
    if given is None:
        given = os.environ.get("DRAGOMAN_SECRET") or ()
    return [given] if isinstance(given, (str, bytes)) else list(given)
