"""The client under test of the conformance suite: `client.py URL`, the scenario in the environment.

The suite starts one mock server a scenario, runs this program against it and looks at what the server
saw. Nothing here says which revision to speak: finding that out is part of what is tested.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman import Client, DragomanError, RemoteError
from dragoman.client.options import ClientKeywords
from dragoman.client.skills import SkillFault

Scenario = Callable[[Client], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}
# What a scenario's client offers to the server.
OFFERS: dict[str, ClientKeywords] = {}


def scenario(name: str, **offers: Any) -> Callable[[Scenario], Scenario]:
    def add(function: Scenario) -> Scenario:
        SCENARIOS[name] = function
        OFFERS[name] = ClientKeywords(**offers)
        return function

    return add


def context() -> dict[str, Any]:
    """What the suite tells about the scenario."""
    return json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))


@scenario("initialize")
@scenario("json-schema-ref-no-deref")
async def look(client: Client) -> None:
    await client.list_tools()


@scenario("tools_call")
async def add_numbers(client: Client) -> None:
    await client.list_tools()
    result = await client.call_tool("add_numbers", {"a": 5, "b": 3})
    assert not result.is_error


@scenario("request-metadata", elicitation_handler=lambda _: {}, roots=["file:///tmp"])
async def several_requests(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name)
    await client.discover()


@scenario("elicitation-sep1034-client-defaults", elicitation_handler=lambda _: {})
async def untouched_form(client: Client) -> None:
    # The person presses "accept" and nothing else.
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults")


@scenario("sse-retry")
async def reconnect(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("test_reconnection")


@scenario("http-standard-headers")
async def every_named_request(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name)
    for method in ("resources/list", "prompts/list"):
        await client.request(method)
    for uri in ("file:///path/to/file%20name.txt", "https://example.com/resource?id=123"):
        await client.request("resources/read", {"uri": uri})
    await client.request("prompts/get", {"name": "test_prompt"})


@scenario("http-custom-headers")
async def given_calls(client: Client) -> None:
    await client.list_tools()
    for call in context()["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


@scenario("http-invalid-tool-headers")
async def every_tool_on_offer(client: Client) -> None:
    arguments = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "object": {}, "array": []}
    for tool in await client.list_tools():
        properties: dict[str, Any] = tool.input_schema.get("properties", {})
        call = {name: arguments.get(schema.get("type")) for name, schema in properties.items()}
        await client.call_tool(tool.name, call)


@scenario("sep-2322-client-request-state", elicitation_handler=lambda _: {"confirmed": True})
async def ask_again(client: Client) -> None:
    await client.list_tools()
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}")


@scenario("json-schema-2020-12-preservation")
async def echo_schema(client: Client) -> None:
    schemas = {tool.name: tool.input_schema for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


@scenario("sep-2640-client-no-prefetch")
async def list_skills(client: Client) -> None:
    assert [skill.uri for skill in await client.list_skills()] == ["skill://pdf-processing/SKILL.md"]


@scenario("sep-2640-client-verify-digest")
@scenario("sep-2640-client-verify-size")
@scenario("sep-2640-client-verify-frontmatter")
async def load_a_skill_that_is_another(client: Client) -> None:
    (skill,) = await client.list_skills()
    try:
        loaded = await client.load_skill(skill)
    except SkillFault as exc:
        print(f"as it has to be: {exc}", file=sys.stderr)
    else:
        await client.read_skill(loaded, "references/FORMS.md")


async def use_tools(client: Client) -> None:
    """What scenarios of authorisation need: two requests that go through."""
    await client.list_tools()
    await client.call_tool("test-tool")


async def main() -> int:
    name = os.environ["MCP_CONFORMANCE_SCENARIO"]
    try:
        async with Client(sys.argv[-1], timeout=20, **OFFERS.get(name, {})) as client:
            await SCENARIOS.get(name, use_tools)(client)
    except (DragomanError, RemoteError) as exc:
        print(f"{name}: {type(exc).__name__}: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
