"""The everything server: one handler for each thing that a server can do, each as short as it can be.

    python examples/everything/server.py                                # http://127.0.0.1:8000/mcp
    dragoman list http://127.0.0.1:8000/mcp
    dragoman call http://127.0.0.1:8000/mcp test_tool_with_progress

The names of most and what they do are those that the official MCP conformance suite asks of a
server under test: `tests/conformance` runs the suite against this very file.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import asking  # type: ignore[import-not-found]  # it lies beside this file
import prompts  # type: ignore[import-not-found]  # so does this
import resources  # type: ignore[import-not-found]  # so does this
import tasks  # type: ignore[import-not-found]  # so does this
from msgspec import Meta

from dragoman import Audio, Context, EmbeddedResource, Image, Server, TextContent, ToolError
from dragoman.extensions.skills import Skills
from dragoman.extensions.tasks import Tasks
from dragoman.model import TextResourceContents
from dragoman.stores import MemoryStore

server = Server(
    "everything",
    version="1.0.0",
    title="Everything",
    description="One handler for each thing that a server can do",
    extensions=[Tasks(MemoryStore(), poll=0.2), Skills(Path(__file__).with_name("skills"))],
    instructions="Everything says what it shows; nothing touches anything outside this process.",
)

# One red pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
# A hundredth of a second of silence: 80 samples of 8 bits, 8 kHz, mono.
WAV = (
    b"RIFF\x74\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00"
    b"\x01\x00\x08\x00data\x50\x00\x00\x00" + b"\x80" * 80
)


# What a result can hold ------------------------------------------------------------------------------


@server.tool
def test_simple_text() -> str:
    """Answers with text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> Image:
    """Answers with a picture."""
    return Image(PNG, format="png")


@server.tool
def test_audio_content() -> Audio:
    """Answers with a sound."""
    return Audio(WAV, format="wav")


@server.tool
def test_embedded_resource() -> EmbeddedResource:
    """Answers with a resource that is part of the answer."""
    return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")


@server.tool
def test_multiple_content_types() -> list[TextContent | Image | EmbeddedResource]:
    """Answers with text, a picture and a resource, in this order."""
    return [
        TextContent(text="Multiple content types test:"),
        Image(PNG, format="png"),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ]


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


@server.tool
def test_error_handling() -> str:
    """Fails, and says why in words that a model can act on."""
    raise ToolError("This tool intentionally returns an error for testing")


# What a call can send while it runs ------------------------------------------------------------------


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Logs three lines while it works."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(line)
        await asyncio.sleep(0.05)
    return "Tool with logging executed successfully"


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports progress at the start, half-way and at the end."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(0.05)
    return "Tool with progress executed successfully"


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Logs at every level from `info` up; a client that did not ask for logs gets none of it."""
    await ctx.info("This is for clients that asked for it")
    await ctx.warning("So is this", logger="everything")
    await ctx.error({"and": ["this", "too"]})
    return "Logged three entries, for whoever asked for them"


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Closes the connection in its middle; the client comes back for the answer half a second later."""
    await ctx.close_sse_stream(retry_ms=500)
    await asyncio.sleep(0.1)
    return "The answer came over another connection than the question"


# What a call can ask of the client -------------------------------------------------------------------

asking.add_to(server)


# What a call can become ------------------------------------------------------------------------------

tasks.add_to(server)


# What can be read, and what can be prompted ----------------------------------------------------------

resources.add_to(server, PNG)
prompts.add_to(server, PNG)


# What a list can say ---------------------------------------------------------------------------------


@server.tool
def test_x_mcp_header(region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]) -> str:
    """Takes an argument that HTTP clients repeat in a header, for whoever routes by it."""
    return f"Running in {region}"


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool(input_schema=SCHEMA)
def json_schema_2020_12_tool(**contact: Any) -> str:
    """Takes what a hand-written schema says, to the last keyword of JSON Schema 2020-12."""
    return f"Received {', '.join(sorted(contact))}"


# What can change while people listen -----------------------------------------------------------------


@server.tool
async def test_trigger_tool_change() -> str:
    """Adds a tool and takes it away; whoever listens is told of both."""

    def test_passing_tool() -> str:
        """Is gone again before anybody can call it."""
        return "Nobody reads this"

    server.add_tool(test_passing_tool)
    server.remove_tool("test_passing_tool")
    return "Added a tool and removed it"


if __name__ == "__main__":
    server.run("http", port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
