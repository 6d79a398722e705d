"""2025-11-25: a handshake opens a session; icons, URL elicitation, `resultType` not yet."""

from __future__ import annotations

from dragoman.model import (
    CallToolParams,
    CallToolResult,
    CompleteParams,
    GetPromptParams,
    InitializeParams,
    ListToolsResult,
    PaginatedParams,
    Params,
    ReadResourceParams,
    SetLevelParams,
    SubscribeParams,
)
from dragoman.revisions.base import HttpRules, Method, Revision, table
from dragoman.revisions.handshake import identify, object_structured, sealer, tools
from dragoman.revisions.questions import as_it_is

METHODS = table(
    Method("initialize", InitializeParams, open=True),
    Method("ping", Params, open=True),
    Method("tools/list", PaginatedParams, cacheable=True),
    Method("tools/call", CallToolParams, subject="name"),
    Method("resources/list", PaginatedParams, cacheable=True),
    Method("resources/templates/list", PaginatedParams, cacheable=True),
    Method("resources/read", ReadResourceParams, subject="uri", cacheable=True),
    Method("resources/subscribe", SubscribeParams),
    Method("resources/unsubscribe", SubscribeParams),
    Method("prompts/list", PaginatedParams, cacheable=True),
    Method("prompts/get", GetPromptParams, subject="name"),
    Method("completion/complete", CompleteParams),
    Method("logging/setLevel", SetLevelParams),
)

NOTIFICATIONS = frozenset(
    {
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
    }
)

REVISION = Revision(
    version="2025-11-25",
    methods=METHODS,
    notifications=NOTIFICATIONS,
    identify=identify,
    seal=sealer({ListToolsResult: tools(), CallToolResult: object_structured}),
    ask=as_it_is,
    http=HttpRules(sessions=True, routing_headers=False, disconnect_cancels=False, status={}, polling=True),
    handshake=True,
    asks_inline=True,
    batches=False,
    client_methods=frozenset({"sampling/createMessage", "roots/list", "elicitation/create"}),
    elicitation_modes=True,
    elicitation_ids=True,
    progress_messages=True,
    missing_resource=-32002,
)
