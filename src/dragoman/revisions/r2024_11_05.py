"""2024-11-05: the first revision. Text, images and resources; no audio, no annotations of tools."""

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
    audio_as_text,
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
    without_completions,
    without_structured,
)
from dragoman.revisions.questions import asker
from dragoman.revisions.r2025_11_25 import METHODS, NOTIFICATIONS


def _first(block: ContentBlock) -> ContentBlock:
    return plain(audio_as_text(link_as_text(block)))


REVISION = Revision(
    version="2024-11-05",
    methods=METHODS,
    notifications=NOTIFICATIONS,
    identify=identify,
    seal=sealer(
        {
            ListToolsResult: tools("icons", "execution", "title", "output_schema", "meta", "annotations"),
            CallToolResult: chain(without_structured, contents(_first)),
            GetPromptResult: prompt_messages(_first),
            ReadResourceResult: plain_resources,
            InitializeResult: chain(
                bare_server("icons", "description", "website_url", "title"), without_completions
            ),
            **first_lists(),
        }
    ),
    ask=asker("2024-11-05", _first),
    http=HttpRules(sessions=True, routing_headers=False, disconnect_cancels=False, status={}, polling=False),
    handshake=True,
    asks_inline=True,
    batches=False,
    client_methods=frozenset({"sampling/createMessage", "roots/list"}),
    elicitation_modes=False,
    elicitation_ids=False,
    progress_messages=False,
    missing_resource=-32002,
)
