"""Letting a request in: which revision it speaks, whether that revision has the method, who calls.

The one place where a revision is resolved. Knows no transport: HTTP passes the revision that its
header names as `carrier`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal
from dragoman.jsonrpc.message import ABSENT, Id, Request
from dragoman.model import UNSUPPORTED_PROTOCOL_VERSION, Params, RequestMeta
from dragoman.protocol.call import Call, Channel
from dragoman.protocol.link import Link
from dragoman.protocol.reading import READING
from dragoman.revisions import BY_VERSION, HANDSHAKE, LATEST, STATELESS
from dragoman.revisions.base import Caller, Method, Revision

EMPTY_META = RequestMeta()
_meta = msgspec.json.Decoder(RequestMeta).decode
NO_METHODS: Mapping[str, Method] = MappingProxyType({})

_KEPT: Final = 64
_KEPT_BYTES: Final = 2048  # of one


class _Said:
    """What a `_meta` says, for all requests that say it in the same bytes, which are `raw`.

    `revision` and `caller` are there where it names a revision that has no handshake: of such a
    request nothing else decides who calls. They are shared, and not to be changed.
    """

    __slots__ = ("caller", "meta", "raw", "revision")

    def __init__(self, raw: msgspec.Raw, meta: RequestMeta, *, revision: Revision | None = None) -> None:
        self.raw = raw
        self.meta = meta
        self.revision = revision
        self.caller: Caller | None = None


class _Memory:
    """What clients said that say the same with each request: the last one, and some more."""

    __slots__ = ("last", "said")

    def __init__(self, last: _Said) -> None:
        self.last = last
        self.said: dict[bytes, _Said] = {}


_NOTHING = _Said(ABSENT, EMPTY_META)
_heard = _Memory(_NOTHING)


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
    name = request.method
    params: Any = request.params
    if type(params) is msgspec.Raw:
        if type(request.id) is not int and type(request.id) is not str:
            raise _wrong_id(request.id)
        try:
            params = READING.read(request, extra)
        except msgspec.ValidationError as exc:
            # What is wrong with the revision or the method outranks it.
            rest = Request(name, request.id, _salvage(request))
            admit(rest, link, channel=channel, carrier=carrier, principal=principal, extra=extra)
            raise _invalid(exc) from None
    if params.meta is UNSET:
        said = _NOTHING
    elif (said := _heard.last).raw != params.meta:
        said = _hear(params.meta)
    revision = said.revision or _resolve(name, said.meta, link=link, carrier=carrier)
    method = revision.methods.get(name) or _added(name, revision, extra=extra)
    if method is None:
        raise _unknown(name, revision)
    caller = said.caller or _identify(method, said, revision=revision, link=link)
    return Call(request.id, method, params, said.meta, caller, revision, link, channel, principal)


def _identify(method: Method, said: _Said, *, revision: Revision, link: Link) -> Caller:
    session = link.session
    caller = revision.identify(None if session is None else session.caller, method, meta=said.meta)
    if said.revision is not None:
        said.caller = caller
    return caller


def _added(name: str, revision: Revision, *, extra: Mapping[str, Method]) -> Method | None:
    """The method as an extension adds it to this revision."""
    method = extra.get(name)
    return None if method is not None and revision.handshake and not method.everywhere else method


def _wrong_id(id_: Id) -> Refusal:
    got = "null" if id_ is None else f"the number {id_!r}"
    return Refusal(-32600, f"Invalid request: id must be a string or an integer, received {got}")


def _salvage(request: Request) -> Any:
    """The params as far as they say which revision they speak, for a request that is refused anyway."""
    try:
        return msgspec.json.decode(request.params or b"{}", type=Params)
    except msgspec.ValidationError as exc:
        raise _invalid(exc) from None


def _hear(raw: msgspec.Raw) -> _Said:
    """What a `_meta` says that is not what was heard last. Raises Refusal."""
    text = bytes(raw)
    said = _heard.said.get(text)
    if said is None:
        said = _read_meta(text)
        # What belongs to one request alone will not come again.
        meta = said.meta
        if said.revision is None or meta.progress_token is not UNSET or meta.traceparent is not UNSET:
            return said
        if len(text) > _KEPT_BYTES:
            return said
        if len(_heard.said) >= _KEPT:
            _heard.said.clear()
        _heard.said[text] = said
    _heard.last = said
    return said


def _read_meta(text: bytes) -> _Said:
    try:
        meta = _meta(text)
    except msgspec.ValidationError as exc:
        raise Refusal(-32602, f"Invalid params: {_place(str(exc), '_meta')}") from None
    named = meta.protocol_version
    if named is UNSET:
        return _Said(ABSENT, meta)
    revision = BY_VERSION.get(named)
    if revision is None or revision.handshake:
        raise unsupported(named)
    return _Said(msgspec.Raw(text), meta, revision=revision)


def _invalid(exc: msgspec.ValidationError) -> Refusal:
    return Refusal(-32602, f"Invalid params: {_place(str(exc), 'params')}")


def _place(message: str, root: str) -> str:
    """The text of msgspec with its `$` path said as a member of `root`."""
    if " - at `$" not in message:
        message += " - at `$`"
    return message.replace("`$.", f"`{root}.").replace("`$[", f"`{root}[").replace("`$`", f"`{root}`")


def _resolve(method: str, meta: RequestMeta, *, link: Link, carrier: Revision | None) -> Revision:
    """The revision of a request that does not name one."""
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
