"""2025-03-26: Streamable HTTP, audio, tool annotations, and the only revision with batches."""

from __future__ import annotations

from dragoman.model import (
    CallToolResult,
    ContentBlock,
    GetPromptResult,
    InitializeResult,
    ListToolsResult,
    ReadResourceResult,
)
from dragoman.revisions.base import HttpRules, Revision
from dragoman.revisions.handshake import (
    bare_server,
    chain,
    contents,
    first_lists,
    identify,
    link_as_text,
    plain,
    plain_resources,
    prompt_messages,
    sealer,
    tools,
    without_structured,
)
from dragoman.revisions.questions import asker
from dragoman.revisions.r2025_11_25 import METHODS, NOTIFICATIONS


def _second(block: ContentBlock) -> ContentBlock:
    return plain(link_as_text(block))


REVISION = Revision(
    version="2025-03-26",
    methods=METHODS,
    notifications=NOTIFICATIONS,
    identify=identify,
    seal=sealer(
        {
            ListToolsResult: tools("icons", "execution", "title", "output_schema", "meta"),
            CallToolResult: chain(without_structured, contents(_second)),
            GetPromptResult: prompt_messages(_second),
            ReadResourceResult: plain_resources,
            InitializeResult: bare_server("icons", "description", "website_url", "title"),
            **first_lists(),
        }
    ),
    ask=asker("2025-03-26", _second),
    http=HttpRules(sessions=True, routing_headers=False, disconnect_cancels=False, status={}, polling=False),
    handshake=True,
    asks_inline=True,
    batches=True,
    client_methods=frozenset({"sampling/createMessage", "roots/list"}),
    elicitation_modes=False,
    elicitation_ids=False,
    progress_messages=True,
    missing_resource=-32002,
)
