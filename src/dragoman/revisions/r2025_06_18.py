"""2025-06-18: structured tool results, titles and resource links; no icons yet."""

from __future__ import annotations

from dragoman.model import CallToolResult, InitializeResult, ListToolsResult
from dragoman.revisions.base import HttpRules, Revision
from dragoman.revisions.handshake import bare_server, identify, lists, object_structured, sealer, tools
from dragoman.revisions.r2025_11_25 import METHODS, NOTIFICATIONS

REVISION = Revision(
    version="2025-06-18",
    methods=METHODS,
    notifications=NOTIFICATIONS,
    identify=identify,
    seal=sealer(
        {
            ListToolsResult: tools("icons", "execution"),
            CallToolResult: object_structured,
            InitializeResult: bare_server("icons", "description", "website_url"),
            **lists("icons"),
        }
    ),
    http=HttpRules(sessions=True, routing_headers=False, disconnect_cancels=False, status={}, polling=False),
    handshake=True,
    asks_inline=True,
    batches=False,
    client_methods=frozenset({"sampling/createMessage", "roots/list", "elicitation/create"}),
    elicitation_ids=False,
    missing_resource=-32002,
)
