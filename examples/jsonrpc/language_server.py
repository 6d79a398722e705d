"""A language server that knows words: JSON-RPC 2.0 over Content-Length on stdio.

    python examples/jsonrpc/language_server.py

It answers `initialize`, `textDocument/hover` and `shutdown`, keeps the documents that the editor
opens, and asks the editor for its configuration *while* it answers a hover: both directions at once
on one connection. `$/cancelRequest` calls a request off, which is then answered with -32800.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from dragoman.errors import RemoteError
from dragoman.jsonrpc import Cancellation, ContentLength, Exchange, RpcError, Service
from dragoman.transports import Options, serve_stdio

INVALID_PARAMS = -32602

service = Service()
documents: dict[str, str] = {}


class TextDocument(msgspec.Struct):
    uri: str
    text: str = ""


class Position(msgspec.Struct):
    line: int
    character: int


@service.method
def initialize(**_capabilities: Any) -> dict[str, Any]:
    return {
        "capabilities": {"hoverProvider": True, "textDocumentSync": 1, "positionEncoding": "utf-16"},
        "serverInfo": {"name": "words", "version": "1.0"},
    }


@service.method
def initialized() -> None:
    """The editor is ready; there is nothing to do."""


@service.method("textDocument/didOpen")
def opened(textDocument: TextDocument) -> None:  # noqa: N803 - the protocol's name
    documents[textDocument.uri] = textDocument.text


@service.method("textDocument/hover")
async def hover(
    textDocument: TextDocument,  # noqa: N803 - the protocol's name
    position: Position,
    exchange: Exchange,
) -> dict[str, Any] | None:
    text = documents.get(textDocument.uri)
    if text is None:
        raise RpcError(INVALID_PARAMS, f"document {textDocument.uri} is not open")
    word = word_at(text, position)
    if word is None:
        return None
    try:
        answers = await exchange.request(
            "workspace/configuration",
            {"items": [{"scopeUri": textDocument.uri, "section": "words.greeting"}]},
        )
    except RemoteError:
        answers = []  # an editor without configuration
    greeting = next(iter(answers), None) or "word"
    return {"contents": {"kind": "plaintext", "value": f"{greeting}: {word} ({len(word)} characters)"}}


@service.method
async def shutdown() -> None:
    """Nothing is open that would have to be closed."""


def word_at(text: str, position: Position) -> str | None:
    """The word under the cursor. A character of a position is a UTF-16 code unit."""
    lines = text.splitlines()
    if position.line >= len(lines):
        return None
    before = lines[position.line].encode("utf-16-le")[: 2 * position.character].decode("utf-16-le", "ignore")
    after = lines[position.line][len(before) :]
    word = (before.split(" ")[-1] if not before.endswith(" ") else "") + after.split(" ")[0]
    return word or None


if __name__ == "__main__":
    options = Options(cancellation=Cancellation(method="$/cancelRequest", code=-32800))
    asyncio.run(serve_stdio(service, framing=ContentLength, options=options))
