"""2025-03-26: Streamable HTTP, audio, tool annotations, and the only revision with batches."""

from __future__ import annotations

from dragoman.model import CallToolResult, GetPromptResult, InitializeResult, ListToolsResult
from dragoman.revisions.base import HttpRules, Revision
from dragoman.revisions.handshake import (
    bare_server,
    chain,
    contents,
    first_lists,
    identify,
    link_as_text,
    prompt_messages,
    sealer,
    tools,
    without_structured,
)
from dragoman.revisions.r2025_11_25 import METHODS, NOTIFICATIONS

REVISION = Revision(
    version="2025-03-26",
    methods=METHODS,
    notifications=NOTIFICATIONS,
    identify=identify,
    seal=sealer(
        {
            ListToolsResult: tools("icons", "execution", "title", "output_schema", "meta"),
            CallToolResult: chain(without_structured, contents(link_as_text)),
            GetPromptResult: prompt_messages(link_as_text),
            InitializeResult: bare_server("icons", "description", "website_url", "title"),
            **first_lists(),
        }
    ),
    http=HttpRules(sessions=True, routing_headers=False, disconnect_cancels=False, status={}, polling=False),
    handshake=True,
    asks_inline=True,
    batches=True,
    client_methods=frozenset({"sampling/createMessage", "roots/list"}),
    elicitation_ids=False,
    missing_resource=-32002,
)
