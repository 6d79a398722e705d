"""2024-11-05: the first revision. Text, images and resources; no audio, no annotations of tools."""

from __future__ import annotations

from dragoman.model import CallToolResult, InitializeResult, ListToolsResult
from dragoman.revisions.base import HttpRules, Revision
from dragoman.revisions.handshake import (
    bare_server,
    chain,
    identify,
    lists,
    sealer,
    tools,
    without_audio,
    without_links,
    without_structured,
)
from dragoman.revisions.r2025_11_25 import METHODS, NOTIFICATIONS

REVISION = Revision(
    version="2024-11-05",
    methods=METHODS,
    notifications=NOTIFICATIONS,
    identify=identify,
    seal=sealer(
        {
            ListToolsResult: tools("icons", "execution", "title", "output_schema", "meta", "annotations"),
            CallToolResult: chain(without_structured, without_links, without_audio),
            InitializeResult: bare_server("icons", "description", "website_url", "title"),
            **lists("icons", "title", "meta"),
        }
    ),
    http=HttpRules(sessions=True, routing_headers=False, disconnect_cancels=False, status={}, polling=False),
    handshake=True,
    asks_inline=True,
    batches=False,
    client_methods=frozenset({"sampling/createMessage", "roots/list"}),
    elicitation_ids=False,
    missing_resource=-32002,
)
