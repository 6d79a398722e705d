"""Calls as OpenTelemetry spans: OTLP's JSON form, by the conventions for generative AI and for MCP.

Pure. A call is a span `execute_tool`, and what was sent a client's span `tools/call` in it. Ids come from
the call, so that the same trace gives the same spans; where a request carried a `traceparent`, its ids are
used, and the server's spans hang below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from dragoman.host.trace.calls import Call, after, moment
from dragoman.host.trace.reading import Line
from dragoman.schema.shapes import is_array, is_object
from dragoman.version import VERSION

_INTERNAL: Final = 1
_CLIENT: Final = 3
_ERROR: Final = 2  # STATUS_CODE_ERROR
_BATCH: Final = 256  # spans in a line
_PARENT: Final = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}\Z")
_TRANSPORTS: Final = {"stdio": "pipe", "http": "tcp", "sse": "tcp", "ws": "tcp"}
_PROTOCOLS: Final = {"http": "http", "sse": "http", "ws": "websocket"}
_KINDS: Final = {
    "denied": "permission_denied",
    "schema": "invalid_arguments",
    "lock": "tool_changed",
    "refused": "refused",
    "error": "tool_error",
}

Span = dict[str, Any]


def documents(found: Iterable[Call], *, content: bool = False) -> Iterator[bytes]:
    """Lines for a file as OpenTelemetry's file exporter writes it: a `TracesData` in each.

    Arguments and results, which may be sensitive, are in the spans only with `content`.
    """
    batch: list[Span] = []
    for call in found:
        batch += spans(call, content=content)
        if len(batch) >= _BATCH:
            yield _document(batch)
            batch = []
    if batch:
        yield _document(batch)


def _document(batch: list[Span]) -> bytes:
    resource = {"attributes": _attributes({"service.name": "dragoman"})}
    scope = {"name": "dragoman.host.trace", "version": VERSION}
    value = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": batch}]}]}
    return msgspec.json.encode(value) + b"\n"


def spans(call: Call, *, content: bool = False) -> list[Span]:
    """The spans of one call; none where no line of it has a time."""
    begun = call.begun
    if begun is None:
        return []
    use = {} if call.use is None else call.use.full()
    sent = {} if call.sent is None else call.sent.full()
    result = {} if call.result is None else call.result.full()
    trace, client = _ids(call, sent)
    ended = _ended(call, begun)
    outer = {
        "traceId": trace,
        "spanId": _hex(f"tool {call.id}", 16),
        "name": f"execute_tool {call.tool or call.name}",
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(begun),
        "endTimeUnixNano": _nanoseconds(ended),
        "attributes": _attributes(_outer(call, use, result=result, content=content)),
        "events": _events(call, use),
        "status": _status(call, result),
    }
    if call.sent is None:
        return [outer]
    start = after(begun, call.sent.facts.ms or 0)
    inner = {
        "traceId": trace,
        "spanId": client,
        "parentSpanId": outer["spanId"],
        "name": f"tools/call {call.tool}" if call.tool else "tools/call",
        "kind": _CLIENT,
        "startTimeUnixNano": _nanoseconds(start),
        "endTimeUnixNano": _nanoseconds(max(start, ended)),
        "attributes": _attributes(_inner(call, sent)),
        "status": outer["status"],
    }
    return [outer, inner]


def _outer(call: Call, use: dict[str, Any], *, result: dict[str, Any], content: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool or call.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.tool_use_id,
        "dragoman.call": call.id,
        "dragoman.server": call.server,
        "dragoman.outcome": call.outcome,
        "dragoman.config": use.get("config"),
        "dragoman.turn": use.get("turn"),
        "error.type": _KINDS.get(call.outcome),
    }
    if content:
        block, answer = use.get("block"), result.get("block")
        if is_object(block) and "input" in block:
            found["gen_ai.tool.call.arguments"] = _json(block["input"])
        if is_object(answer) and "content" in answer:
            found["gen_ai.tool.call.result"] = _json(answer["content"])
    return found


def _inner(call: Call, sent: dict[str, Any]) -> dict[str, Any]:
    request = sent.get("request")
    number = request.get("id") if is_object(request) else None
    return {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": sent.get("revision"),
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "jsonrpc.request.id": None if number is None else str(number),
        "network.transport": _TRANSPORTS.get(str(sent.get("transport"))),
        "network.protocol.name": _PROTOCOLS.get(str(sent.get("transport"))),
        "dragoman.server": call.server,
        "error.type": _KINDS.get(call.outcome),
    }


def _events(call: Call, use: dict[str, Any]) -> list[dict[str, Any]]:
    """The decision, at its time."""
    decision, at = use.get("decision"), _moment(call.use)
    if not is_object(decision) or at is None:
        return []
    told = {
        f"dragoman.decision.{name}": decision.get(name)
        for name in ("effect", "rule", "origin", "why", "answer")
    }
    return [{"timeUnixNano": _nanoseconds(at), "name": "dragoman.decision", "attributes": _attributes(told)}]


def _status(call: Call, result: dict[str, Any]) -> dict[str, Any]:
    if call.outcome not in _KINDS:
        return {}
    block = result.get("block")
    content: Any = block.get("content") if is_object(block) else None
    texts = [item.get("text") for item in content if is_object(item)] if is_array(content) else [content]
    # What a server says of its error may hold data; what was decided here does not.
    if call.outcome == "error" or not texts or not isinstance(texts[0], str):
        return {"code": _ERROR}
    return {"code": _ERROR, "message": texts[0][:500]}


# Forms ---------------------------------------------------------------------------------------------------


def _ids(call: Call, sent: dict[str, Any]) -> tuple[str, str]:
    """The trace and the client's span: those that the request carried, or our own."""
    inner: Any = sent.get("request")
    for name in ("params", "_meta"):
        inner = inner.get(name) if is_object(inner) else None
    parent = inner.get("traceparent") if is_object(inner) else None
    found = _PARENT.match(parent) if isinstance(parent, str) else None
    if found is not None:
        return found[1], found[2]
    turn = None if call.use is None else call.use.facts.turn
    return _hex(f"trace {turn or call.id}", 32), _hex(f"sent {call.id}", 16)


def _hex(text: str, digits: int) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def _moment(line: Line | None) -> datetime | None:
    return None if line is None else moment(line.facts.at)


def _ended(call: Call, begun: datetime) -> datetime:
    last = _moment(call.lines[-1])
    return after(begun, call.ms) if call.ms else max(begun, last or begun)


def _nanoseconds(at: datetime) -> str:
    """Nanoseconds since the epoch, as JSON has 64-bit numbers in OTLP: a text."""
    since = at - _EPOCH
    return str((since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000)


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes, without those that have no value."""
    return [{"key": key, "value": _any(value)} for key, value in values.items() if value is not None]


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
