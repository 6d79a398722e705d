"""What a call is about and whose it is, as the shipped middleware counts calls, and how it refuses one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET

from dragoman.errors import Refusal, UsageError
from dragoman.model import CallToolResult, TextContent
from dragoman.protocol.call import Call

# Methods that do work of the author's. Handshakes, lists and subscriptions pass every limit.
WORK: Final = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})

# Codes of refusals, where there is no tool result to say it in. JSON-RPC 2.0 reserves -32768 to -32000,
# and within it MCP its own; these are outside, and read like the HTTP statuses of the same meaning.
RATE_LIMITED: Final = 429
RESPONSE_TOO_LARGE: Final = 413
TOO_BUSY: Final = 503

By: TypeAlias = Literal["principal", "client", "tool"]
Key: TypeAlias = Callable[[Call], Hashable]


def subject(call: Call) -> str | None:
    """The tool, prompt or resource that a call names; None for a call that names none."""
    params = call.params
    named = getattr(params, "name", None) or getattr(params, "uri", None)
    return named if isinstance(named, str) else None


def client(call: Call) -> str | None:
    """Where a call comes from: the address over HTTP, elsewhere the name that the client gave itself."""
    address: Any = getattr(call.channel, "client", None)
    if address:
        return str(address[0])
    info = call.caller.info
    return None if info is UNSET else info.name


def keyed(by: Sequence[By] | Key) -> Key:
    """What calls are counted together by.

    `"principal"` is who calls, and where nobody asked who that is, the client; `"client"` is where
    the call comes from; `"tool"` is what it names.

    Raises:
        UsageError: a part that there is not.
    """
    if callable(by):
        return by
    parts = (by,) if isinstance(by, str) else tuple(by)
    for part in parts:
        if part not in ("principal", "client", "tool"):
            raise UsageError(f'by: expected "principal", "client" or "tool", received {part!r}')
    return lambda call: tuple(_part(call, part) for part in parts)


def _part(call: Call, part: str) -> str | None:
    if part == "tool":
        return subject(call)
    if part == "principal" and call.principal is not None:
        return f"principal {call.principal}"
    return client(call)


def refused(call: Call, text: str, *, code: int, data: Any = UNSET) -> CallToolResult:
    """Refuse a call: by a tool result that a model can act on, or else with an error.

    Raises:
        Refusal: with `code`, for anything but a tool call.
    """
    if call.method.name != "tools/call":
        raise Refusal(code, text, data)
    return CallToolResult(content=[TextContent(text=text)], is_error=True)
