"""The Streamable HTTP server as a plain ASGI app, both shapes of the transport on one endpoint.

It carries out what `protocol.http` decides: reads bodies, lets the kernel handle calls, keeps the
sessions. It needs no lifespan, so it can be mounted anywhere: everything starts with the first
request.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from functools import partial
from typing import Any, Final

import msgspec

from dragoman.errors import Refusal
from dragoman.jsonrpc.message import (
    DEFAULT,
    INTERNAL_ERROR,
    Limits,
    Notification,
    Response,
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
from dragoman.protocol.http import SESSION, End, Hear, Serve, ServeBatch, Take, other_verb, post
from dragoman.protocol.link import Link
from dragoman.protocol.origin import Address
from dragoman.transports.asgi_batch import HttpBatch, failed, in_use, refusal
from dragoman.transports.asgi_exchange import CANCELLED, CLOSING, Exchange, Receive, Scope, Send, Stopped
from dragoman.transports.asgi_lookout import Lookout
from dragoman.transports.asgi_options import HttpOptions
from dragoman.transports.asgi_principal import identify
from dragoman.transports.asgi_sessions import HttpSession, Sessions

log = logging.getLogger("dragoman.http")

REMEMBERED: Final = 512
_read_cancelled = msgspec.json.Decoder(CancelledParams).decode


class HttpApp:
    """An ASGI app that serves one MCP server on one path.

    Alone, or mounted. `path` and the same with a slash behind it are served, with no redirect.
    Routers of the Starlette family redirect to a mount's slash themselves, before an app is asked:
    mount at the root, last, as in `app.mount("/", server.asgi(path="/mcp"))`, and nothing redirects.
    Mounted below a path of its own, the mount point itself is the endpoint too.

    Raises:
        ValueError: an allowed host, an origin or a proxy is none.
    """

    def __init__(
        self, kernel: Kernel, *, path: str = "/mcp", options: HttpOptions | None = None, name: str = "server"
    ) -> None:
        self.kernel = kernel
        self.name = name
        self.options = HttpOptions() if options is None else options
        self.path = "/" + path.strip("/") if path.strip("/") else ""
        self.rules = self.options.rules()
        self.sessions = Sessions(kernel, limit=self.options.max_sessions, idle=self.options.session_idle)
        self._limits = Limits(max_bytes=self.options.max_body, max_depth=DEFAULT.max_depth)
        self.lookout = Lookout(self.options.keep_alive / 2, housekeeping=self._keep_sessions)
        self.max_queue = self.options.max_queue
        self._known: set[tuple[Any, ...]] = set()
        self._digits = len(str(self.options.max_body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._no_http(scope, receive, send)
            return
        head = read_head(scope["method"], scope["headers"], limit=self.options.max_header)
        refused = self._refused(head, scope)
        exchange = Exchange(head, scope=scope, receive=receive, send=send, home=self)
        if refused is not None:
            await exchange.say(refused)
            return
        if b"origin" in head.fields:
            exchange.extra = cors(head)
        if self.options.authenticate is not None and head.verb != "OPTIONS":
            refused = await identify(exchange, self.options.authenticate)
            if refused is not None:
                await exchange.say(refused)
                return
        if head.verb == "POST":
            await self._post(exchange, receive)
        elif head.verb == "OPTIONS":
            await exchange.say(Say(204, headers=preflight(head)))
        else:
            await self._other(exchange)

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
        if plain and refused is None and not self.rules.behind_proxies:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known.add(looks)
        return refused

    def _examined(self, head: Head, scope: Scope, *, server: Address | None) -> Say | None:
        path, root = scope["path"], scope.get("root_path", "")
        if path != self.path and not self._is_here(path, root):
            return fault(404, f"No MCP endpoint at {path}; it is at {root}{self.path or '/'}")
        denied = self.rules.check(head.fields, server=server, peer=scope.get("client"))
        if denied is not None:
            names = ", ".join(denied.allowed)
            log.warning("%s %r refused; allowed: %s", denied.header, denied.received, names)
            return denial(denied)
        return check_post(head, self.options.max_body) if head.verb == "POST" else None

    def _is_here(self, path: str, root: str) -> bool:
        rest = (path.removeprefix(root) if root else path).rstrip("/")
        return rest == self.path or (rest == "" and bool(root))

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
            sessions=self.sessions,
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
                await self._serve(exchange, plan)
        elif isinstance(plan, Say):
            await exchange.say(plan)
        elif isinstance(plan, Take):
            await exchange.say(self._take(plan.seat, plan.message))
        else:
            await self._serve_batch(exchange, plan)

    async def _serve(self, exchange: Exchange, plan: Serve[HttpSession]) -> None:
        """Handle a call of a session, or the one that opens it."""
        call, seat = plan.call, plan.seat
        if plan.opens and not self.sessions.room():
            text = f"No room for another session (at most {self.options.max_sessions}, all in use)"
            await exchange.say(fault(503, text, headers=((b"retry-after", b"30"),)))
            return
        if seat is not None and call.id in seat.calls:
            await exchange.answer(in_use(call.id), status=400)
            return
        exchange.link = call.link
        exchange.cancels = call.revision.http.disconnect_cancels
        if seat is not None:
            exchange.asks = call.revision.asks_inline
            self.sessions.touch(seat)
            seat.calls[call.id] = partial(exchange.stop, CANCELLED)
        try:
            frame, status = await self._handled(exchange, call)
        finally:
            if seat is not None:
                seat.calls.pop(call.id, None)
                self.sessions.touch(seat)
        if plan.opens and call.link.session is not None and status == 200:
            session = self.sessions.begin(call.link)
            self.lookout.keep_house()
            exchange.extra = [*exchange.extra, (SESSION, session.id.encode())]
        await exchange.answer(frame, status=status)

    async def _handled(self, exchange: Exchange, call: Call) -> tuple[bytes, int]:
        call.principal = exchange.principal
        try:
            return encode_result(call.id, await exchange.work(self.kernel.handle(call))), 200
        except Stopped:
            return b"", 202
        except Refusal as exc:
            return refusal(call.id, exc), call.revision.http.status.get(exc.code, 200)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the request is owed an answer
            return failed(call, exc), call.revision.http.status.get(INTERNAL_ERROR, 200)

    def _take(self, seat: HttpSession | None, message: Notification | Response) -> Say:
        """Pass on a message that is owed no answer."""
        if seat is not None:
            self.sessions.touch(seat)
        if isinstance(message, Response):
            if seat is None or not seat.link.answered(message.id, result=message.result, error=message.error):
                return fault(
                    400, f"Nobody awaits an answer with id {message.id!r}: it was given, or given up on"
                )
        elif message.method != "notifications/cancelled":
            self.kernel.notified(Link() if seat is None else seat.link, message.method, params=message.params)
        elif seat is not None:
            _cancel(seat, message.params)
        return Say(202)

    async def _serve_batch(self, exchange: Exchange, plan: ServeBatch[HttpSession]) -> None:
        for message in plan.incoming:
            self._take(plan.seat, message)
        batch = HttpBatch(self.kernel, plan.seat, exchange=exchange)
        await batch.answer(plan.items)
        self.sessions.touch(plan.seat)

    # GET, DELETE ---------------------------------------------------------------------------------

    async def _other(self, exchange: Exchange) -> None:
        plan = other_verb(exchange.head, self.sessions)
        if isinstance(plan, Hear):
            await self._hear(exchange, plan.seat)
        elif isinstance(plan, End):
            self.sessions.end(plan.seat, "the client ended the session")
            await exchange.say(Say(204))
        else:
            await exchange.say(plan)

    async def _hear(self, exchange: Exchange, seat: HttpSession) -> None:
        exchange.open = True
        seat.attach(exchange)
        try:
            await exchange.listen()
        except Stopped:
            if not exchange.broken:
                await exchange.end_stream()
        finally:
            seat.detach(exchange)
            self.sessions.touch(seat)

    # Life ----------------------------------------------------------------------------------------

    @property
    def open_exchanges(self) -> list[Exchange]:
        """The requests that are being worked on."""
        return [one for one in (*self.lookout.fresh, *self.lookout.long) if isinstance(one, Exchange)]

    def _keep_sessions(self, now: float) -> bool:
        self.sessions.expire(now)
        return bool(self.sessions)

    def wind_down(self) -> None:
        """Let streams end that would stay open: subscriptions (with their result) and the sessions' own."""
        for exchange in self.open_exchanges:
            if exchange.cancels and exchange.link is not None:
                self.kernel.unlinked(exchange.link)
        for session in self.sessions.values():
            for stream in list(session.streams):
                stream.stop(CLOSING)

    def close(self) -> None:
        """End every stream and session. Requests that come later are served all the same."""
        self.wind_down()
        for session in list(self.sessions.values()):
            self.sessions.end(session, CLOSING)

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


def _cancel(seat: HttpSession, params: bytes) -> None:
    # Malformed, unknown and late cancellations are passed over (cancellation: Error Handling).
    try:
        wanted = _read_cancelled(params or b"{}").request_id
    except msgspec.ValidationError:
        log.warning("a malformed notifications/cancelled was ignored")
        return
    stop = seat.calls.get(wanted)  # type: ignore[arg-type]  # UNSET is no key of the table
    if stop is not None:
        stop()


__all__ = ["HttpApp", "HttpOptions"]
