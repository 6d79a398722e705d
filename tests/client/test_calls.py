"""Calls of a connected client over a scripted transport: frames, results, progress, inputs."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from dragoman import ClientGroup, Server
from dragoman.client import Client, OtherContent, ToolResult
from dragoman.errors import PeerFault, RemoteError, ToolError, ToolFailure, UsageError
from dragoman.model import CreateMessageResult, ElicitParams, ElicitResult, ImageContent, TextContent
from tests.client.scripted import (
    NEW,
    OLD,
    Fail,
    Heard,
    Scripted,
    handshake,
    stateless,
    text,
    tool,
)

VERSION = "io.modelcontextprotocol/protocolVersion"
INFO = "io.modelcontextprotocol/clientInfo"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


async def answer_text(transport: Scripted, heard: Heard) -> Any:
    return text()


async def answer(result: Any, *, script: Any = stateless, name: str = "t", **options: Any) -> ToolResult:
    """The result of one call of a tool that answers `result`."""

    async def calls(transport: Scripted, heard: Heard) -> Any:
        return result

    async with Client(Scripted(script(calls)), **options) as client:
        return await client.call_tool(name)


# What a request carries


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"timout": 3}, "a request has no option 'timout': did you mean 'timeout'"),
        ({"order_id": "A-1"}, r"no option 'order_id'; it has idempotent, .*\n.*one mapping, behind its name"),
    ],
)
async def test_a_keyword_that_there_is_not_is_told_and_nothing_is_sent(
    keywords: dict[str, Any], told: str
) -> None:
    calls: list[str] = []
    server = Server("s", version="1")

    @server.tool
    async def t() -> None:
        calls.append("t")

    async with Client(server) as client, ClientGroup({"s": server}) as group:
        for call in (client.call_tool("t", **keywords), group.call_tool("mcp__s__t", **keywords)):
            with pytest.raises(UsageError, match=told):
                await call
        for verb in (client.read_resource("a://b", **keywords), client.get_prompt("p", **keywords)):
            with pytest.raises(UsageError, match="a request has no option"):
                await verb
    assert calls == []


async def test_each_stateless_request_says_version_client_and_capabilities() -> None:
    transport = Scripted(stateless(answer_text))
    async with Client(transport) as client:
        assert client.revision.version == NEW
        await client.call_tool("t", {"a": 1})
        await client.request("tools/list")
    for heard in transport.heard:
        assert heard.meta[VERSION] == NEW
        assert heard.meta[INFO]["name"] == "dragoman"
        assert heard.meta[CAPABILITIES] == {}
        assert LOG_LEVEL not in heard.meta
    call = transport.of("tools/call")[0]
    assert call.params["name"] == "t"
    assert call.params["arguments"] == {"a": 1}
    assert call.outgoing.subject == "t"


async def test_a_request_after_a_handshake_says_none_of_that() -> None:
    transport = Scripted(handshake(answer_text))
    async with Client(transport) as client:
        assert client.revision.version == OLD
        await client.call_tool("t")
        await client.request("tools/list")
    assert set(transport.of("tools/call")[0].meta) == {"progressToken"}
    assert "_meta" not in transport.of("tools/list")[0].params
    opening = transport.of("initialize")[0].params
    assert opening["protocolVersion"] == OLD
    assert opening["clientInfo"]["name"] == "dragoman"
    assert opening["capabilities"] == {}


async def test_the_handshake_ends_with_initialized_and_before_it_the_transport_knows_the_revision() -> None:
    transport = Scripted(handshake())
    async with Client(transport):
        assert transport.agreed_on == [OLD]
        assert transport.notices == ["notifications/initialized"]


async def test_ids_are_never_used_twice() -> None:
    transport = Scripted(stateless(answer_text))
    async with Client(transport) as client:
        await asyncio.gather(*(client.call_tool("t") for _ in range(20)))
    ids = [heard.id for heard in transport.heard]
    assert len(set(ids)) == len(ids)


async def test_the_callers_meta_is_sent_beside_the_clients_own() -> None:
    transport = Scripted(stateless(answer_text))
    async with Client(transport) as client:
        await client.call_tool("t", meta={"traceparent": "00-1", VERSION: "1999-01-01"})
    meta = transport.of("tools/call")[0].meta
    assert meta["traceparent"] == "00-1"
    assert meta[VERSION] == NEW  # what the request is, is not for the caller to say


async def test_raw_requests_name_their_subject() -> None:
    transport = Scripted(stateless(answer_text))
    async with Client(transport) as client:
        await client.request("resources/read", {"uri": "file:///a"})
        await client.request("prompts/get", {"name": "p"})
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):  # SEP-2663, Streamable HTTP
            await client.request(method, {"taskId": "t-1"})
        await client.request("tasks/get", {"taskId": 7})  # nothing that a header can say
    subjects = [heard.outgoing.subject for heard in transport.heard[1:]]
    assert subjects == ["file:///a", "p", "t-1", "t-1", "t-1", None]


@pytest.mark.parametrize("value", [object(), {1j: 1}, [{object()}]])
async def test_arguments_that_are_no_json_are_refused_before_anything_is_sent(value: Any) -> None:
    transport = Scripted(stateless(answer_text))
    async with Client(transport) as client:
        with pytest.raises(UsageError, match="cannot be sent as JSON"):
            await client.call_tool("t", {"a": value})
    assert not transport.of("tools/call")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
async def test_numbers_without_a_form_in_json_do_not_become_null(value: float) -> None:
    transport = Scripted(stateless(answer_text))
    async with Client(transport) as client:
        for pair in ([None, value], (None, value)):
            with pytest.raises(UsageError, match=r"arguments\.a\[1\]"):
                await client.call_tool("t", {"a": pair})
        await client.call_tool("t", {"a": [None, "null", 1.5]})
    assert len(transport.of("tools/call")) == 1


async def test_before_connect_a_verb_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="async with Client"):
        await Client(Scripted(stateless())).list_tools()


# Results


async def test_a_result_has_blocks_text_and_structured_content() -> None:
    result = await answer(
        {
            "resultType": "complete",
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "AA==", "mimeType": "image/png"},
                {"type": "text", "text": "two"},
            ],
            "structuredContent": {"n": 1},
            "isError": False,
            "_meta": {"k": "v"},
        }
    )
    assert [type(block) for block in result.content] == [TextContent, ImageContent, TextContent]
    assert result.text == "one\ntwo"
    assert result.structured == {"n": 1}
    assert result.has_structured
    assert not result.is_error
    assert result.meta == {"k": "v"}
    assert result.invalid == ()


@pytest.mark.parametrize("script", [stateless, handshake])
async def test_a_result_without_a_result_type_is_complete(script: Any) -> None:
    assert (await answer({"content": [{"type": "text", "text": "x"}]}, script=script)).text == "x"


async def test_a_result_type_that_is_not_known_is_a_fault_of_the_server() -> None:
    with pytest.raises(PeerFault, match="'task'"):
        await answer({"resultType": "task", "content": []})


async def test_a_tool_that_failed_is_a_result() -> None:
    result = await answer(text("it broke", isError=True))
    assert result.is_error
    assert result.text == "it broke"


async def test_a_tool_that_failed_is_raised_where_that_is_asked_for() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        return text("it broke", isError=True) if heard.params["name"] == "bad" else text("done")

    async with Client(Scripted(stateless(calls))) as client:
        assert (await client.call_tool("good", check=True)).text == "done"
        with pytest.raises(ToolFailure, match=r"^it broke$") as caught:
            await client.call_tool("bad", check=True)
        assert caught.value.result == await client.call_tool("bad")
        # A tool that calls another one may let it pass.
        assert isinstance(caught.value, ToolError)


def test_a_result_is_raised_or_returned() -> None:
    good = ToolResult(content=[], invalid=("structuredContent is missing",))
    assert good.raise_for_error() is good
    with pytest.raises(ToolFailure, match="did not say why"):
        ToolResult(content=[], is_error=True).raise_for_error()


async def test_structured_null_is_not_the_same_as_none_at_all() -> None:
    assert (await answer(text(structuredContent=None))).has_structured
    assert not (await answer(text())).has_structured


async def test_structured_content_of_any_json_type() -> None:
    for value in ([1, 2], "x", 3, True, 1.5):
        assert (await answer(text(structuredContent=value))).structured == value


async def test_an_error_is_raised_with_code_message_and_data() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        raise Fail(-32602, "Unknown tool: t", {"tool": "t"})

    async with Client(Scripted(stateless(calls))) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("t")
    assert (caught.value.code, caught.value.message, caught.value.data) == (
        -32602,
        "Unknown tool: t",
        {"tool": "t"},
    )


async def test_a_content_block_of_an_unknown_kind_is_kept_and_marked() -> None:
    block = {"type": "hologram", "data": 1}
    result = await answer({"content": [{"type": "text", "text": "x"}, block], "structuredContent": {"a": 1}})
    assert result.content == [TextContent(text="x"), OtherContent("hologram", block)]
    assert result.structured == {"a": 1}
    assert len(result.invalid) == 1


@pytest.mark.parametrize("content", ["plain", {"type": "text", "text": "alone"}, 7])
async def test_content_that_is_no_list_is_kept_and_marked(content: Any) -> None:
    result = await answer({"content": content})
    assert result.invalid
    assert len(result.content) == 1


@pytest.mark.parametrize("content", [{}, {"content": None}])
async def test_a_result_without_content_is_kept_and_marked(content: Any) -> None:
    result = await answer({"structuredContent": {"n": 1}, **content})
    assert result.structured == {"n": 1}
    assert result.content == []
    assert result.invalid == ("malformed result: content is missing",)


@pytest.mark.parametrize("result", [[], "done", 7, None])
async def test_a_result_that_is_no_object_is_a_fault_of_the_server(result: Any) -> None:
    with pytest.raises(PeerFault, match="tools/call"):
        await answer(result)


async def test_members_that_are_null_are_taken_as_absent() -> None:
    nulls = {"annotations": None, "_meta": None}
    result = await answer(
        {
            "content": [{"type": "text", "text": "x", **nulls}],
            "isError": None,
            "_meta": None,
            "structuredContent": {"n": None},
        }
    )
    assert result == ToolResult(content=[TextContent(text="x")], structured={"n": None}, has_structured=True)


# Structured content against the tool's output schema

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def listed_answer(result: Any, schema: Any = SCHEMA) -> ToolResult:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "tools/list":
            return {"tools": [tool("t", outputSchema=schema)]}
        return result

    async with Client(Scripted(stateless(calls))) as client:
        await client.list_tools()
        return await client.call_tool("t")


async def test_structured_content_that_fits_is_not_marked() -> None:
    assert (await listed_answer(text(structuredContent={"n": 1}))).invalid == ()


async def test_structured_content_that_does_not_fit_is_kept_and_marked() -> None:
    result = await listed_answer(text("kept", structuredContent={"n": "one"}))
    assert result.structured == {"n": "one"}
    assert result.text == "kept"
    assert len(result.invalid) == 1
    assert "structuredContent: n: " in result.invalid[0]


async def test_structured_content_that_is_missing_is_marked() -> None:
    result = await listed_answer(text("kept"))
    assert result.text == "kept"
    assert "missing" in result.invalid[0]


@pytest.mark.parametrize("extra", [{}, {"structuredContent": {"wrong": True}}])
async def test_a_failed_tool_is_not_held_to_its_schema(extra: dict[str, Any]) -> None:
    result = await listed_answer(text("it broke", isError=True, **extra))
    assert result.invalid == ()
    assert result.text == "it broke"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"$schema": "https://example.com/dialect", "type": "object"},
        {"type": "no such type"},
    ],
)
async def test_a_schema_that_cannot_be_used_says_nothing_against_a_result(
    schema: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        result = await listed_answer(text(structuredContent={"n": 1}), schema)
    assert result.invalid == ()
    assert "outputSchema of tool 't' is not used" in caplog.text


async def test_without_a_list_nothing_is_fetched_to_check_a_result() -> None:
    transport = Scripted(stateless(answer_text))
    async with Client(transport) as client:
        await client.call_tool("t")
    assert [heard.method for heard in transport.heard] == ["server/discover", "tools/call"]


# Progress, logs, notifications


@pytest.mark.parametrize("script", [stateless, handshake])
async def test_progress_reaches_the_call_it_belongs_to(script: Any) -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        name = heard.params["name"]
        transport.progress(heard, 1)
        transport.progress(heard, 2.5, total=5, message=f"half of {name}")
        return text(name)

    seen: dict[str, list[Any]] = {"a": [], "b": []}
    async with Client(Scripted(script(calls))) as client:
        await asyncio.gather(
            *(client.call_tool(n, progress=lambda *args, n=n: seen[n].append(args)) for n in seen)
        )
    assert seen == {n: [(1, None, None), (2.5, 5, f"half of {n}")] for n in seen}


async def test_an_async_progress_handler_is_awaited() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        transport.progress(heard, 1)
        await done.wait()
        return text()

    done = asyncio.Event()

    async def handler(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        done.set()

    async with Client(Scripted(stateless(calls)), progress_handler=handler) as client:
        await client.call_tool("t")


async def test_a_handler_that_raises_disturbs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        transport.progress(heard, 1)
        return text()

    def handler(*args: Any) -> None:
        raise ValueError("mine")

    async with Client(Scripted(stateless(calls)), progress_handler=handler) as client:
        assert (await client.call_tool("t")).text == "done"
    assert "a handler failed" in caplog.text


async def test_late_unknown_and_malformed_progress_is_passed_over() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        for params in (
            None,
            {},
            {"progressToken": 999, "progress": 1},
            {"progressToken": "x", "progress": "y"},
        ):
            transport.say("notifications/progress", params)
        return text()

    seen: list[Any] = []
    async with Client(Scripted(stateless(calls)), progress_handler=lambda *args: seen.append(args)) as client:
        assert (await client.call_tool("t")).text == "done"
    assert seen == []


async def test_logs_are_asked_for_in_each_stateless_request() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        transport.say("notifications/message", {"level": "error", "logger": "db", "data": {"a": 1}})
        transport.say("notifications/message", {"level": "loud"})
        return text()

    entries: list[Any] = []
    transport = Scripted(stateless(calls))
    async with Client(transport, log_handler=entries.append, log_level="error") as client:
        await client.call_tool("t")
    assert transport.of("tools/call")[0].meta[LOG_LEVEL] == "error"
    assert [(entry.level, entry.logger, entry.data) for entry in entries] == [("error", "db", {"a": 1})]


async def test_logs_are_asked_for_once_after_a_handshake() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        return {}

    transport = Scripted(handshake(calls, capabilities={"logging": {}}))
    async with Client(transport, log_handler=lambda entry: None):
        pass
    assert [heard.params for heard in transport.of("logging/setLevel")] == [{"level": "info"}]


async def test_a_server_that_offers_no_logs_is_not_asked_for_them() -> None:
    transport = Scripted(handshake(answer_text))
    async with Client(transport, log_handler=lambda entry: None):
        pass
    assert not transport.of("logging/setLevel")


async def test_every_notification_can_be_seen() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        transport.say("notifications/tools/list_changed")
        transport.say("notifications/made/up", {"a": [1]})
        return text()

    seen: list[Any] = []
    client = Client(Scripted(stateless(calls)), notification_handler=lambda *args: seen.append(args))
    async with client:
        await client.call_tool("t")
    assert seen == [("notifications/tools/list_changed", None), ("notifications/made/up", {"a": [1]})]


# What servers ask

FORM = {
    "message": "who?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}},
    },
}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}


def handlers() -> dict[str, Any]:
    async def elicit(params: ElicitParams) -> dict[str, Any]:
        assert params.message == "who?"
        return {"name": "octocat"}

    def sample(params: Any) -> CreateMessageResult:
        return CreateMessageResult(role="assistant", content=TextContent(text="hello"), model="m")

    return {"elicitation_handler": elicit, "sampling_handler": sample, "roots": ["file:///here"]}


ELICITED = {"action": "accept", "content": {"name": "octocat", "age": 7}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m"}
ROOTED = {"roots": [{"uri": "file:///here"}]}


async def test_input_required_is_answered_and_the_call_sent_again() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        if "inputResponses" in heard.params:
            return text(structuredContent=heard.params["inputResponses"])
        return {
            "resultType": "input_required",
            "inputRequests": {
                "who": {"method": "elicitation/create", "params": FORM},
                "say": {"method": "sampling/createMessage", "params": SAMPLE},
                "where": {"method": "roots/list"},
            },
            "requestState": "opaque \u2028 state",
        }

    transport = Scripted(stateless(calls))
    async with Client(transport, **handlers()) as client:
        result = await client.call_tool("t", {"a": 1})
    assert result.structured == {"who": ELICITED, "say": SAMPLED, "where": ROOTED}
    first, second = transport.of("tools/call")
    assert first.id != second.id
    assert second.params["requestState"] == "opaque \u2028 state"
    assert second.params["arguments"] == {"a": 1}
    assert set(first.meta[CAPABILITIES]) == {"elicitation", "sampling", "roots"}
    assert first.meta[CAPABILITIES]["elicitation"] == {"form": {}}


async def test_a_state_alone_is_sent_back_and_no_state_is_not_made_up() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        turn = len(transport.of("tools/call"))
        if turn == 1:
            return {"resultType": "input_required", "requestState": "s1"}
        if turn == 2:
            form = {"method": "elicitation/create", "params": FORM}
            return {"resultType": "input_required", "inputRequests": {"who": form}}
        return text()

    transport = Scripted(stateless(calls))
    async with Client(transport, **handlers()) as client:
        await client.call_tool("t")
    first, second, third = (heard.params for heard in transport.of("tools/call"))
    assert "requestState" not in first
    assert (second["requestState"], "inputResponses" in second) == ("s1", False)
    assert ("requestState" in third, third["inputResponses"]["who"]["action"]) == (False, "accept")


async def test_a_call_that_needs_input_that_nobody_gives_says_so() -> None:
    with pytest.raises(UsageError, match="elicitation_handler"):
        await answer(
            {
                "resultType": "input_required",
                "inputRequests": {"who": {"method": "elicitation/create", "params": FORM}},
            }
        )


@pytest.mark.parametrize(
    "asked", [{}, {"inputRequests": {"x": {"method": "made/up"}}}, {"inputRequests": []}]
)
async def test_a_malformed_request_for_input_is_a_fault_of_the_server(asked: dict[str, Any]) -> None:
    with pytest.raises(PeerFault):
        await answer({"resultType": "input_required", **asked}, **handlers())


async def test_a_server_that_asks_for_ever_is_stopped() -> None:
    with pytest.raises(PeerFault, match="times"):
        await answer(
            {"resultType": "input_required", "inputRequests": {"w": {"method": "roots/list"}}}, **handlers()
        )


@pytest.mark.parametrize(
    ("method", "params", "result"),
    [
        ("elicitation/create", FORM, ELICITED),
        ("sampling/createMessage", SAMPLE, SAMPLED),
        ("roots/list", None, ROOTED),
        ("ping", None, {}),
    ],
)
async def test_requests_of_the_server_are_answered_where_the_revision_has_them(
    method: str, params: Any, result: Any
) -> None:
    transport = Scripted(handshake())
    async with Client(transport, **handlers()):
        assert await transport.ask(method, params) == {"jsonrpc": "2.0", "id": "s1", "result": result}
    capabilities = transport.of("initialize")[0].params["capabilities"]
    assert set(capabilities) == {"elicitation", "sampling", "roots"}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("elicitation/create", FORM, -32601),
        ("roots/list", None, -32601),
        ("made/up", None, -32601),
    ],
)
async def test_requests_that_nobody_answers_are_refused(method: str, params: Any, code: int) -> None:
    transport = Scripted(handshake())
    async with Client(transport):
        assert (await transport.ask(method, params))["error"]["code"] == code


async def test_malformed_params_of_a_request_are_refused_by_name() -> None:
    transport = Scripted(handshake())
    async with Client(transport, **handlers()):
        error = (await transport.ask("elicitation/create", {"message": 7}))["error"]
    assert error["code"] == -32602
    assert "message" in error["message"]


async def test_a_handler_that_fails_is_an_error_answer(caplog: pytest.LogCaptureFixture) -> None:
    def elicit(params: ElicitParams) -> ElicitResult:
        raise RuntimeError("my secret")

    transport = Scripted(handshake())
    async with Client(transport, elicitation_handler=elicit):
        error = (await transport.ask("elicitation/create", FORM))["error"]
    assert error["code"] == -32603
    assert "secret" not in error["message"]


async def test_a_revision_without_requests_of_the_server_refuses_them() -> None:
    transport = Scripted(stateless())
    async with Client(transport, **handlers()):
        assert (await transport.ask("elicitation/create", FORM))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (None, {"action": "decline"}),
        (ElicitResult(action="cancel"), {"action": "cancel"}),
        ({}, {"action": "accept", "content": {"age": 7}}),
        ({"age": 8}, {"action": "accept", "content": {"age": 8}}),
    ],
)
async def test_ways_to_answer_a_form(given: Any, sent: Any) -> None:
    transport = Scripted(handshake())
    async with Client(transport, elicitation_handler=lambda params: given):
        assert (await transport.ask("elicitation/create", FORM))["result"] == sent


# The other verbs


async def test_ping_is_ping_where_there_is_one_and_discover_where_there_is_not() -> None:
    old, new = Scripted(handshake()), Scripted(stateless())
    for transport in (old, new):
        async with Client(transport) as client:
            await client.ping()
    assert [heard.method for heard in old.heard] == ["server/discover", "initialize", "ping"]
    assert [heard.method for heard in new.heard] == ["server/discover", "server/discover"]


@pytest.mark.parametrize("script", [stateless, handshake])
async def test_what_a_server_says_of_itself_reads_the_same_either_way(script: Any) -> None:
    async with Client(Scripted(script())) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("scripted", "1")
        assert client.capabilities.tools == {}
        assert client.instructions == "be kind"
        found = await client.discover()
    assert found.supported_versions == [client_version(script)]
    assert found.instructions == "be kind"


def client_version(script: Any) -> str:
    return NEW if script is stateless else OLD


async def test_a_raw_request_returns_plain_values() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        return {"resultType": heard.method, "heard": heard.params["deep"]}

    async with Client(Scripted(stateless(calls))) as client:
        result = await client.request("complete", {"deep": {"x": [1, None]}})
        assert result == {"resultType": "complete", "heard": {"x": [1, None]}}
        with pytest.raises(PeerFault, match="'odd'"):
            await client.request("odd", {"deep": 1})
