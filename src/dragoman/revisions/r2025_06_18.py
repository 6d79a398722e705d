"""2025-06-18: structured tool results, titles and resource links; no icons yet."""

from __future__ import annotations

from dragoman.model import CallToolResult, GetPromptResult, InitializeResult, ListToolsResult
from dragoman.revisions.base import HttpRules, Revision
from dragoman.revisions.handshake import (
    bare_server,
    chain,
    contents,
    identify,
    link_without_icons,
    lists,
    object_structured,
    prompt_messages,
    sealer,
    tools,
)
from dragoman.revisions.questions import asker
from dragoman.revisions.r2025_11_25 import METHODS, NOTIFICATIONS

REVISION = Revision(
    version="2025-06-18",
    methods=METHODS,
    notifications=NOTIFICATIONS,
    identify=identify,
    seal=sealer(
        {
            ListToolsResult: tools("icons", "execution"),
            CallToolResult: chain(object_structured, contents(link_without_icons)),
            GetPromptResult: prompt_messages(link_without_icons),
            InitializeResult: bare_server("icons", "description", "website_url"),
            **lists("icons"),
        }
    ),
    ask=asker("2025-06-18"),
    http=HttpRules(sessions=True, routing_headers=False, disconnect_cancels=False, status={}, polling=False),
    handshake=True,
    asks_inline=True,
    batches=False,
    client_methods=frozenset({"sampling/createMessage", "roots/list", "elicitation/create"}),
    elicitation_modes=False,
    elicitation_ids=False,
    progress_messages=True,
    missing_resource=-32002,
)
