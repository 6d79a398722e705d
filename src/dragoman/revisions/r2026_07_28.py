"""2026-07-28: no session. Each request says who calls; each result says what it is and who answers."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import Refusal
from dragoman.model import (
    CLIENT_CAPABILITIES_KEY,
    COMPLETE,
    HEADER_MISMATCH,
    INPUT_REQUIRED,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PROTOCOL_VERSION_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolParams,
    CompleteParams,
    DiscoverParams,
    GetPromptParams,
    InputRequiredResult,
    PaginatedParams,
    ReadResourceParams,
    RequestMeta,
    Result,
    SubscriptionsListenParams,
)
from dragoman.revisions.base import Addition, Caller, HttpRules, Method, Revision, table
from dragoman.revisions.questions import as_it_is


def identify(session: Caller | None, method: Method, *, meta: RequestMeta) -> Caller:
    """Who calls is what `_meta` of this very request says (basic: `_meta`); a session counts for nothing.

    Raises:
        Refusal: -32602 naming the required member that is missing.
    """
    del session, method  # the same rule for every method
    capabilities = meta.client_capabilities
    if meta.protocol_version is UNSET:
        raise _lacking(PROTOCOL_VERSION_KEY)
    if capabilities is UNSET:
        raise _lacking(CLIENT_CAPABILITIES_KEY)
    return Caller(meta.client_info, capabilities, meta.log_level)


def _lacking(key: str) -> Refusal:
    return Refusal(
        -32602, f"Invalid params: `_meta` lacks `{key}`, which every request carries", {"missing": key}
    )


def seal(result: Result, method: Method, *, extra: Addition) -> Result:
    """A copy with `resultType` and the server's name in `_meta`: the handler may keep what it returned."""
    meta = {**extra.members, **result.meta} if result.meta else extra.encoded
    kind = result.result_type
    if kind is UNSET:
        kind = INPUT_REQUIRED if type(result) is InputRequiredResult else COMPLETE
    if method.cacheable and kind != INPUT_REQUIRED and getattr(result, "ttl_ms", 0) is UNSET:
        return replace(result, result_type=kind, meta=meta, ttl_ms=0, cache_scope="private")
    return replace(result, result_type=kind, meta=meta)


REVISION = Revision(
    version="2026-07-28",
    methods=table(
        Method("server/discover", DiscoverParams, cacheable=True),
        Method("tools/list", PaginatedParams, cacheable=True),
        Method("tools/call", CallToolParams, subject="name"),
        Method("resources/list", PaginatedParams, cacheable=True),
        Method("resources/templates/list", PaginatedParams, cacheable=True),
        Method("resources/read", ReadResourceParams, subject="uri", cacheable=True),
        Method("prompts/list", PaginatedParams, cacheable=True),
        Method("prompts/get", GetPromptParams, subject="name"),
        Method("completion/complete", CompleteParams),
        Method("subscriptions/listen", SubscriptionsListenParams),
    ),
    notifications=frozenset({"notifications/cancelled"}),
    identify=identify,
    seal=seal,
    ask=as_it_is,
    http=HttpRules(
        sessions=False,
        routing_headers=True,
        disconnect_cancels=True,
        status={
            -32700: 400,
            -32600: 400,
            -32602: 400,
            -32601: 404,
            HEADER_MISMATCH: 400,
            MISSING_REQUIRED_CLIENT_CAPABILITY: 400,
            UNSUPPORTED_PROTOCOL_VERSION: 400,
        },
        polling=False,
    ),
    handshake=False,
    asks_inline=False,
    batches=False,
    client_methods=frozenset({"sampling/createMessage", "roots/list", "elicitation/create"}),
    elicitation_modes=True,
    elicitation_ids=False,
    progress_messages=True,
    missing_resource=-32602,
)
