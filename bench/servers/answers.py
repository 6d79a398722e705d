"""The least that can be called an MCP server: read the envelope, look at the method, write an answer.

The floor that every figure stands beside. Its answers are valid; its checks are none.
"""

from __future__ import annotations

import sys

import msgspec

NUMBER, TEXT = {"type": "integer"}, {"type": "string"}
INFO = {"name": "floor", "version": "1"}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {"listChanged": True}},
    "ttlMs": 0,
    "cacheScope": "public",
    "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
}


class Params(msgspec.Struct):
    name: str = ""
    arguments: dict[str, object] = {}


class Request(msgspec.Struct):
    jsonrpc: str
    method: str
    id: int | str | None = None
    params: Params | None = None


decode = msgspec.json.Decoder(Request).decode
encode = msgspec.json.Encoder().encode


def option(name: str, default: int) -> int:
    """The number behind `--name` on the command line; reading it loads no module."""
    words = sys.argv
    return int(words[words.index(name) + 1]) if name in words else default


def entry(name: str, description: str, *, properties: dict, required: list[str], output: dict) -> dict:
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "outputSchema": {"type": "object", "properties": {"result": output}, "required": ["result"]},
    }


def listing(count: int) -> dict:
    """The result of `tools/list` for `count` tools, two of which work."""
    pair = {"a": NUMBER, "b": NUMBER}
    tools = [
        entry("add", "Add two integers.", properties=pair, required=["a", "b"], output=NUMBER),
        entry("echo", "Return the text.", properties={"text": TEXT}, required=["text"], output=TEXT),
    ]
    more = {"a": NUMBER, "b": {"type": "string", "default": "x"}}
    for index in range(count - 2):
        text = f"Generated tool number {index}: does something with a and b."
        tools.append(entry(f"tool_{index}", text, properties=more, required=["a"], output=TEXT))
    return {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


TOOLS = option("--tools", 2)
listed: list[dict] = []


def answer(frame: bytes) -> bytes | None:
    """The answer to one request, without a line end; None for a notification."""
    request = decode(frame)
    if request.id is None:
        return None
    method = request.method
    if method == "tools/call":
        arguments = request.params.arguments
        value = arguments["text"] if request.params.name == "echo" else arguments["a"] + arguments["b"]
        text = value if type(value) is str else str(value)
        result = {
            "content": [{"type": "text", "text": text}],
            "structuredContent": {"result": value},
            "resultType": "complete",
        }
    elif method == "tools/list":
        if not listed:
            listed.append(listing(TOOLS))
        result = listed[0]
    elif method == "server/discover":
        result = DISCOVERED
    elif method == "initialize":
        result = INITIALIZED
    else:
        error = {"code": -32601, "message": "Method not found"}
        return encode({"jsonrpc": "2.0", "id": request.id, "error": error})
    return encode({"jsonrpc": "2.0", "id": request.id, "result": result})
