"""`Player`: a cassette as a server. It answers what was asked when it was recorded, as it was answered then.

Stands behind any transport, as the kernel of a server does. It refuses to make anything up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal, RemoteError
from dragoman.model import Params, Result
from dragoman.protocol.call import Call
from dragoman.protocol.link import Link, Session
from dragoman.protocol.negotiation import DISCOVER, INITIALIZE
from dragoman.revisions import BY_VERSION
from dragoman.revisions.base import Caller, Method
from dragoman.schema.difference import differences
from dragoman.schema.shapes import is_object
from dragoman.testing.cassette import Cassette, Exchange, raw, without_meta
from dragoman.testing.redaction import Redaction

LISTEN: Final = "subscriptions/listen"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

# Who connects and how is not what a recording is about: these are found by their method alone.
_BY_METHOD: Final = frozenset({INITIALIZE, DISCOVER, "ping", "logging/setLevel"})
_HELLO: Final = frozenset({INITIALIZE, DISCOVER})
_EMPTY: Final = frozenset({"ping", "logging/setLevel"})  # answered also where nothing was recorded
_SHOWN: Final = 3  # differences from the nearest request that an error tells

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class Player:
    """A cassette as a server: a target for `Client`, and what `dragoman replay` serves.

    A request is answered if the same one, but for ids and `_meta`, was recorded: with the notifications and
    the questions of the server that came before its answer, and then with that. Recorded several times, it
    is answered with each of the answers in turn, and with the last one from then on. `redaction` has to
    be what the recording was made with. `misses` are the requests for which there was nothing.
    """

    def __init__(self, cassette: Cassette, *, redaction: Redaction | None = None) -> None:
        self.cassette = cassette
        self.misses: list[str] = []
        self._redact = Redaction() if redaction is None else redaction
        self._recorded: dict[bytes, list[Exchange]] = {}
        self._turn: dict[bytes, int] = {}
        self._exchanges = cassette.exchanges()
        for exchange in self._exchanges:
            key = _key(exchange.method, _normal(exchange.method, exchange.arguments))
            self._recorded.setdefault(key, []).append(exchange)
        self._extra = _extra_methods(self._exchanges)

    @property
    def name(self) -> str:
        """The name of the cassette."""
        return self.cassette.name

    @property
    def kernel(self) -> Player:
        """What answers admitted calls: itself."""
        return self

    def __repr__(self) -> str:
        return f"<Player of {self.name!r}, {len(self._exchanges)} requests>"

    # The protocol.call.Kernel face -------------------------------------------------------------------

    @property
    def extra_methods(self) -> Mapping[str, Method]:
        """Methods of extensions are answered too, where some were recorded."""
        return self._extra

    async def handle(self, call: Call) -> Result:
        """What was recorded for this call. Raises Refusal, also where nothing was."""
        exchange = self._find(call)
        response = exchange.response
        if exchange.method == INITIALIZE and response is not None and "result" in response:
            _open_session(call, response["result"])
        for message in exchange.meanwhile:
            await _repeat(message, exchange, call=call)
        if response is None:
            if exchange.method == DISCOVER:  # it was met by silence, which would only be waited for
                raise Refusal(-32601, f"Method not found: {DISCOVER}")
            await asyncio.Event().wait()  # it was cancelled, or was still open at the end
        assert response is not None
        error = response.get("error")
        if is_object(error):
            raise Refusal(
                int(error.get("code", -32603)), str(error.get("message", "")), error.get("data", UNSET)
            )
        return cast("Result", raw(response.get("result")))  # an encoding stands for what it encodes

    def _find(self, call: Call) -> Exchange:
        method = call.method.name
        params = self._redact(without_meta(_decode(_encode(call.params))))
        key = _key(method, params)
        found = self._recorded.get(key)
        if found is None:
            if method in _EMPTY:
                return Exchange(method, None, {}, {"result": {}})
            raise self._missed(method, params)
        turn = self._turn.get(key, 0)
        self._turn[key] = turn + 1
        return found[min(turn, len(found) - 1)]

    def _missed(self, method: str, params: dict[str, Any]) -> Refusal:
        same = [exchange for exchange in self._exchanges if exchange.method == method]
        text = f"{self.name}: nothing was recorded for this {method}"
        if not same:
            known = ", ".join(dict.fromkeys(exchange.method for exchange in self._exchanges)) or "nothing"
            text += f"; recorded: {known}"
            if method not in _HELLO:
                self.misses.append(text)
            # As a server without the method has it: a client that tries one goes on with another.
            return Refusal(-32601, text, {"method": method})
        near = min((differences(_normal(method, one.arguments), params) for one in same), key=len)
        told = [str(difference) for difference in near]
        more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        self.misses.append(f"{text}; the nearest differs by: {'; '.join(told[:_SHOWN])}{more}")
        return Refusal(-32602, self.misses[-1], {"method": method, "differences": told})

    def notified(self, link: Link, method: str, *, params: bytes) -> None:
        """Nothing follows from a notification: what came of it is in the recording."""

    def header_parameters(self, tool: str) -> tuple[Any, ...]:
        """Headers are no part of a recording."""
        return ()

    def attach(self) -> None:
        """Nothing has to start."""

    async def detach(self) -> None:
        """Nothing has to end."""

    def linked(self, link: Link) -> None:
        """Nothing is sent unasked."""

    def unlinked(self, link: Link) -> None:
        """Nothing is kept of a connection."""


def _extra_methods(exchanges: list[Exchange]) -> Mapping[str, Method]:
    """Methods that no revision has, with the members of params that were recorded of them."""
    members: dict[str, dict[str, None]] = {}
    for exchange in exchanges:
        if not any(exchange.method in revision.methods for revision in BY_VERSION.values()):
            members.setdefault(exchange.method, {}).update(dict.fromkeys(exchange.arguments))
    return {method: Method(method, _shape(names), everywhere=True) for method, names in members.items()}


def _shape(names: Iterable[str]) -> type[Params]:
    fields = [(f"f{at}", Any, msgspec.field(name=name, default=UNSET)) for at, name in enumerate(names)]
    return cast("type[Params]", msgspec.defstruct("Recorded", fields, bases=(Params,), kw_only=True))


def _key(method: str, params: dict[str, Any]) -> bytes:
    what = b"" if method in _BY_METHOD else msgspec.json.encode(params, order="sorted")
    return method.encode() + b"\0" + what


def _normal(method: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Recorded params as they would be once they were read and written here."""
    shape = next((r.methods[method].params for r in BY_VERSION.values() if method in r.methods), None)
    if shape is None:
        return arguments
    try:
        read = msgspec.json.decode(_encode(arguments), type=shape)
    except msgspec.ValidationError:
        return arguments
    return without_meta(_decode(_encode(read)))


def _open_session(call: Call, result: Any) -> None:
    revision = BY_VERSION.get(str(result.get("protocolVersion"))) if is_object(result) else None
    if revision is not None:
        call.link.session = Session(revision, Caller(call.params.client_info, call.params.capabilities))
        call.revision = revision


async def _repeat(message: dict[str, Any], exchange: Exchange, *, call: Call) -> None:
    """Send what the server sent, with the ids of now in the place of those of then."""
    method = message["method"]
    given = message.get("params")
    params: dict[str, Any] = dict(given) if is_object(given) else {}
    if "id" in message:
        # The answer changes nothing: what the server made of the one it got then is recorded.
        with contextlib.suppress(RemoteError):
            await call.channel.ask(method, params)
        return
    if "progressToken" in params:
        if call.meta.progress_token is UNSET:
            return
        params["progressToken"] = call.meta.progress_token
    meta = params.get("_meta")
    if is_object(meta) and meta.get(SUBSCRIPTION_ID) == exchange.id:
        params["_meta"] = {**meta, SUBSCRIPTION_ID: call.id}
    call.channel.notify(method, params)
