"""Letting a request in: which revision it speaks, whether that revision has the method, who calls.

The one place where a revision is resolved. Knows no transport: HTTP passes the revision that its
header names as `carrier`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal
from dragoman.jsonrpc.message import Id, Request
from dragoman.model import UNSUPPORTED_PROTOCOL_VERSION, Params, RequestMeta
from dragoman.protocol.call import Call, Channel
from dragoman.protocol.link import Link
from dragoman.revisions import BY_VERSION, HANDSHAKE, LATEST, STATELESS
from dragoman.revisions.base import Method, Revision

EMPTY_META = RequestMeta()
_meta = msgspec.json.Decoder(RequestMeta).decode
NO_METHODS: Mapping[str, Method] = MappingProxyType({})
_decoders: dict[type[Params], Callable[[bytes | msgspec.Raw], Any]] = {}
_shapes = {m.name: m.params for r in BY_VERSION.values() for m in r.methods.values()}


def admit(
    request: Request,
    link: Link,
    *,
    channel: Channel,
    carrier: Revision | None = None,
    principal: str | None = None,
    extra: Mapping[str, Method] = NO_METHODS,
) -> Call:
    """Let `request` in. `extra` are methods that extensions add.

    Raises:
        Refusal: -32600 for an id or an order of messages that MCP does not have, -32601 for a
            method that the revision does not have, -32602 for params or `_meta` of the wrong
            shape, -32022 for a revision that is not spoken here.
    """
    if type(request.id) is not int and type(request.id) is not str:
        raise _wrong_id(request.id)
    shape = _shapes.get(request.method)
    if shape is None:
        shape = extra[request.method].params if request.method in extra else Params
    fault: Refusal | None = None
    try:
        params = (_decoders.get(shape) or _decoder(shape))(request.params or b"{}")
    except msgspec.ValidationError as exc:
        params, fault = _salvage(request), _invalid(exc)
    meta = EMPTY_META if params.meta is UNSET else _read_meta(params.meta)
    revision = _resolve(request.method, meta, link=link, carrier=carrier)
    method = revision.methods.get(request.method) or _added(request.method, revision, extra=extra)
    if method is None:
        raise _unknown(request.method, revision)
    session = link.session
    caller = revision.identify(None if session is None else session.caller, method, meta=meta)
    if fault is not None:
        raise fault
    return Call(request.id, method, params, meta, caller, revision, link, channel, principal)


def _added(name: str, revision: Revision, *, extra: Mapping[str, Method]) -> Method | None:
    """The method as an extension adds it to this revision."""
    method = extra.get(name)
    return None if method is not None and revision.handshake and not method.everywhere else method


def _decoder(shape: type[Params]) -> Callable[[bytes | msgspec.Raw], Params]:
    # Made when the first request needs it: a server that starts needs none of them.
    decode = _decoders[shape] = msgspec.json.Decoder(shape).decode
    return decode


def _wrong_id(id_: Id) -> Refusal:
    got = "null" if id_ is None else f"the number {id_!r}"
    return Refusal(-32600, f"Invalid request: id must be a string or an integer, received {got}")


def _salvage(request: Request) -> Params:
    """The params as far as they say which revision they speak, for a request that is refused anyway."""
    try:
        return msgspec.json.decode(request.params or b"{}", type=Params)
    except msgspec.ValidationError as exc:
        raise _invalid(exc) from None


def _read_meta(raw: msgspec.Raw) -> RequestMeta:
    try:
        return _meta(raw)
    except msgspec.ValidationError as exc:
        raise Refusal(-32602, f"Invalid params: {_place(str(exc), '_meta')}") from None


def _invalid(exc: msgspec.ValidationError) -> Refusal:
    return Refusal(-32602, f"Invalid params: {_place(str(exc), 'params')}")


def _place(message: str, root: str) -> str:
    """The text of msgspec with its `$` path said as a member of `root`."""
    if " - at `$" not in message:
        message += " - at `$`"
    return message.replace("`$.", f"`{root}.").replace("`$[", f"`{root}[").replace("`$`", f"`{root}`")


def _resolve(method: str, meta: RequestMeta, *, link: Link, carrier: Revision | None) -> Revision:
    named = meta.protocol_version
    if named is not UNSET:
        revision = BY_VERSION.get(named)
        if revision is None or revision.handshake:
            raise unsupported(named)
        return revision
    if carrier is not None:
        return carrier
    spoken = link.session.revision if link.session is not None else HANDSHAKE
    half_said = meta.client_capabilities is not UNSET or meta.client_info is not UNSET
    if half_said or (method not in spoken.methods and method in LATEST.methods):
        return LATEST  # a stateless request that forgot to name its revision: it is told so
    return spoken


def unsupported(requested: str) -> Refusal:
    """The error for a revision that requests cannot name here (2026-07-28, versioning)."""
    return Refusal(
        UNSUPPORTED_PROTOCOL_VERSION,
        f"Unsupported protocol version: {requested}",
        {"supported": list(STATELESS), "requested": requested},
    )


def _unknown(method: str, revision: Revision) -> Refusal:
    message = f"Method not found: {method}"
    if method == "initialize":
        message += (
            f" (revision {revision.version} has no handshake; supported without one: {', '.join(STATELESS)})"
        )
    return Refusal(-32601, message, {"method": method, "protocolVersion": revision.version})
