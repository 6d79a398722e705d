"""The Streamable HTTP server as a plain ASGI app, both shapes of the transport on one endpoint.

It carries out what `protocol.http` decides: reads bodies, lets the kernel handle calls, keeps the
sessions. It needs no lifespan, so it can be mounted anywhere: everything starts with the first
request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from typing import Any, Final

import msgspec

from dragoman.errors import Refusal
from dragoman.jsonrpc.message import (
    DEFAULT,
    INTERNAL_ERROR,
    Limits,
    decode,
    encode_result,
)
from dragoman.model import CancelledParams
from dragoman.protocol.call import Call, Kernel
from dragoman.protocol.head import (
    Head,
    Say,
    check_post,
    cors,
    denial,
    fault,
    preflight,
    read_head,
    too_large,
)
from dragoman.protocol.http import SESSION, End, Serve, Take, other_verb, post
from dragoman.protocol.origin import Address
from dragoman.protocol.sealing import Keys
from dragoman.transports.asgi_batch import own_end
from dragoman.transports.asgi_exchange import CLOSING, Exchange, Receive, Scope, Send, Stopped
from dragoman.transports.asgi_lookout import Lookout
from dragoman.transports.asgi_options import HttpOptions
from dragoman.transports.asgi_principal import identify
from dragoman.transports.asgi_resume import SessionExchange
from dragoman.transports.asgi_seated import Seated
from dragoman.transports.asgi_sessions import Sessions
from dragoman.transports.connection import failed, refusal
from dragoman.transports.sse_server import SseServer

log = logging.getLogger("dragoman.http")

REMEMBERED: Final = 512
LONG: Final = 1024  # bytes of a head that are not worth being remembered
_read_cancelled = msgspec.json.Decoder(CancelledParams).decode


class HttpApp:
    """An ASGI app that serves one MCP server on one path.

    Alone, or mounted. `path` and the same with a slash behind it are served, with no redirect.
    Routers of the Starlette family redirect to a mount's slash themselves, before an app is asked:
    mount at the root, last, as in `app.mount("/", server.asgi(path="/mcp"))`, and nothing redirects.
    Mounted below a path of its own, the mount point itself is the endpoint too. `keys` seal the ids of
    sessions: every process that is to know them needs the same ones.

    Raises:
        ValueError: an allowed host, an origin or a proxy is none, or both transports are at one path.
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        path: str = "/mcp",
        options: HttpOptions | None = None,
        name: str = "server",
        keys: Callable[[], Keys] | None = None,
    ) -> None:
        self.kernel = kernel
        self.name = name
        self.options = HttpOptions() if options is None else options
        self.path = "/" + path.strip("/") if path.strip("/") else ""
        self.rules = self.options.rules()
        self.sessions = Sessions(kernel, self.options, name=name, keys=keys or _own_keys())
        self._limits = Limits(max_bytes=self.options.max_body, max_depth=DEFAULT.max_depth)
        interval = min(self.options.keep_alive / 2, self.options.session_idle / 4)
        self.lookout = Lookout(interval, housekeeping=self._keep_sessions)
        self.seated = Seated(kernel, self.sessions, handled=self._handled, on_session=self.lookout.keep_house)
        self.max_queue = self.options.max_queue
        self.old: SseServer | None = None
        if self.options.sse_path is not None:
            most = self.options.max_sessions
            self.old = SseServer(kernel, self.options.sse_path, limits=self._limits, most=most)
            if self.old.serves(self.path):
                raise ValueError(f"sse_path: {self.path} is where Streamable HTTP is served; choose another")
        self._known: set[tuple[Any, ...]] = set()
        self._digits = len(str(self.options.max_body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._no_http(scope, receive, send)
            return
        head = read_head(scope["method"], scope["headers"], limit=self.options.max_header)
        kind = SessionExchange if SESSION in head.fields else Exchange
        exchange = kind(head, scope=scope, receive=receive, send=send, home=self)
        said = self._refused(head, scope) or await self._at_the_door(exchange)
        if said is not None:
            await exchange.say(said)
        elif self.old is not None and self.old.serves(_below_root(scope)):
            await self._serve_old(self.old, exchange, scope=scope, receive=receive)
        elif head.verb == "POST":
            await self._post(exchange, receive)
        else:
            await self._other(exchange)

    async def _at_the_door(self, exchange: Exchange) -> Say | None:
        """Who sent it, and from which page; what to say where that is all there is to it."""
        head = exchange.head
        if b"origin" in head.fields:
            exchange.extra = cors(head)
        if head.verb == "OPTIONS":  # a browser asks beforehand, without saying who it asks for
            return Say(204, headers=preflight(head))
        if self.options.authenticate is not None:
            refused = await identify(exchange, self.options.authenticate)
            if refused is not None:
                return refused
        return await self.seated.arrive(exchange) if isinstance(exchange, SessionExchange) else None

    def _refused(self, head: Head, scope: Scope) -> Say | None:
        if head.fault is not None:
            return head.fault
        fields = head.fields
        server: Address | None = scope.get("server")
        if server is not None and type(server) is not tuple:
            server = (server[0], server[1])
        # What the checks of a plain POST's head look at, but for its length: a client's heads are alike.
        looks = (fields.get(b"host"), fields.get(b"content-type"), fields.get(b"accept"), server)
        plain = (
            scope["path"] == self.path
            and head.verb == "POST"
            and b"origin" not in fields
            and b"content-encoding" not in fields
            and len(fields.get(b"content-length", b"")) < self._digits
        )
        if plain and looks in self._known:
            return None
        refused = self._examined(head, scope, server=server)
        long = sum(len(value) for value in looks[:3] if value is not None) > LONG
        if plain and refused is None and not long and not self.rules.behind_proxies:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known.add(looks)
        return refused

    def _examined(self, head: Head, scope: Scope, *, server: Address | None) -> Say | None:
        rest, root = _below_root(scope), scope.get("root_path", "")
        old = self.old is not None and self.old.serves(rest)
        if scope["path"] != self.path and rest != self.path and not (rest == "" and root) and not old:
            place = f"{root}{self.path or '/'}"
            text = f"No MCP endpoint at {scope['path']}; it is at {place}"
            return fault(404, text, data={"endpoint": place})
        denied = self.rules.check(head.fields, server=server, peer=scope.get("client"))
        if denied is not None:
            names = ", ".join(denied.allowed)
            log.warning("%s %r refused; allowed: %s", denied.header, denied.received, names)
            return denial(denied)
        return check_post(head, self.options.max_body) if head.verb == "POST" and not old else None

    # POST ----------------------------------------------------------------------------------------

    async def _post(self, exchange: Exchange, receive: Receive) -> None:
        limit = self.options.max_body
        message = await receive()
        body: bytes = message.get("body", b"")
        if not body or len(body) > limit or message.get("more_body"):
            whole = await _read_body(receive, limit=limit, first=message)
            if isinstance(whole, Say):
                await exchange.say(whole)
            if not isinstance(whole, bytes):
                return
            body = whole
        plan = post(
            exchange.head,
            decode(body, self._limits),
            sessions=self.sessions.of(exchange.principal),
            channel=exchange,
            kernel=self.kernel,
        )
        if isinstance(plan, Serve):
            if plan.seat is None and not plan.opens:
                exchange.link = plan.call.link
                exchange.cancels = plan.call.revision.http.disconnect_cancels
                frame, status = await self._handled(exchange, plan.call)
                await exchange.answer(frame, status=status)
            else:
                await self.seated.serve(exchange, plan)
        elif isinstance(plan, Say):
            await exchange.say(plan)
        elif isinstance(plan, Take):
            await exchange.say(await self.seated.take(plan.seat, plan.message))
        else:
            await self.seated.serve_batch(exchange, plan)

    async def _handled(self, exchange: Exchange, call: Call) -> tuple[bytes, int]:
        call.principal = exchange.principal
        try:
            return encode_result(call.id, await exchange.work(self.kernel.handle(call))), 200
        except Stopped:
            return b"", 202
        except Refusal as exc:
            return refusal(call.id, exc), call.revision.http.status.get(exc.code, 200)
        except BaseException as exc:  # whatever it is, the request is owed an answer
            if own_end(exc):
                raise
            return failed(call.id, call.method.name, exc=exc), call.revision.http.status.get(
                INTERNAL_ERROR, 200
            )

    async def _serve_old(self, old: SseServer, exchange: Exchange, *, scope: Scope, receive: Receive) -> None:
        async def read() -> bytes | Say | None:
            return await _read_body(receive, limit=self.options.max_body, first=await receive())

        path, root, query = _below_root(scope), scope.get("root_path", ""), scope.get("query_string", b"")
        await old.serve(exchange, path, root=root, query=query, read=read)

    # GET, DELETE ---------------------------------------------------------------------------------

    async def _other(self, exchange: Exchange) -> None:
        plan = other_verb(exchange.head, self.sessions.of(exchange.principal))
        if isinstance(plan, Say):
            await exchange.say(plan)
        elif isinstance(plan, End):
            await self.seated.end(exchange, plan)
        elif isinstance(exchange, SessionExchange):  # it is: the request named a session
            await self.seated.hear(exchange, plan)

    # Life ----------------------------------------------------------------------------------------

    @property
    def open_exchanges(self) -> list[Exchange]:
        """The requests that are being worked on."""
        return [one for one in (*self.lookout.fresh, *self.lookout.long) if isinstance(one, Exchange)]

    def _keep_sessions(self, now: float) -> bool:
        self.sessions.expire(now)
        if self.sessions.shared is not None:
            self.sessions.shared.keep_house()
        return bool(self.sessions)

    def wind_down(self) -> None:
        """Let streams end that would stay open: subscriptions (with their result) and the sessions' own."""
        for exchange in self.open_exchanges:
            if exchange.cancels and exchange.link is not None:
                self.kernel.unlinked(exchange.link)
        for session in self.sessions.values():
            for connection in list(session.connections):
                connection.stop(CLOSING)
        if self.old is not None:
            self.old.wind_down()

    def close(self) -> None:
        """End every stream, and forget every session. Requests that come later are served all the same."""
        self.wind_down()
        self.sessions.close(CLOSING)

    async def _no_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "lifespan":
            while True:
                message = await receive()
                if message["type"] == "lifespan.startup":
                    self.kernel.attach()
                elif message["type"] == "lifespan.shutdown":
                    self.close()
                    await self.kernel.detach()
                await send({"type": message["type"] + ".complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        elif kind == "websocket":
            await receive()
            await send(
                {"type": "websocket.close", "code": 1003, "reason": "MCP is served over plain HTTP here"}
            )


def _below_root(scope: Scope) -> str:
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return (path.removeprefix(root) if root else path).rstrip("/")


async def _read_body(receive: Receive, *, limit: int, first: MutableMapping[str, Any]) -> bytes | Say | None:
    """The whole body from its first message on; what to say if it is too large; None if it breaks off."""
    parts: list[bytes] = []
    size = 0
    message = first
    while message["type"] != "http.disconnect":
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            return too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()
    return None


def _own_keys() -> Callable[[], Keys]:
    keys = Keys.random()
    return lambda: keys


__all__ = ["HttpApp", "HttpOptions"]
