"""Resources, templates, prompts, completion, the log: what is sent and what is returned, on both eras."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from dragoman.client import Client
from dragoman.errors import PeerFault, RemoteError, UsageError
from dragoman.model import LoggingMessageParams, ResourceTemplateReference
from tests.client.scripted import NEW, Fail, Heard, Scripted, handshake, stateless, text

LEVEL = "io.modelcontextprotocol/logLevel"
BOTH = pytest.mark.parametrize("script", [stateless, handshake])
CONTENTS = {"contents": [{"uri": "a://1", "mimeType": "text/plain", "text": "one"}]}


def answers(**by_method: Any) -> Any:
    """A script: a result by method, whose slashes are underscores here."""

    async def calls(transport: Scripted, heard: Heard) -> Any:
        result = by_method[heard.method.replace("/", "_")]
        if callable(result):
            return result(heard)
        return result

    return calls


@BOTH
@pytest.mark.parametrize(
    ("verb", "method", "member", "entry"),
    [
        ("list_resources", "resources/list", "resources", {"uri": "a://1", "name": "one"}),
        (
            "list_resource_templates",
            "resources/templates/list",
            "resourceTemplates",
            {"uriTemplate": "a://{n}", "name": "any"},
        ),
        ("list_prompts", "prompts/list", "prompts", {"name": "p", "arguments": [{"name": "x"}]}),
    ],
)
async def test_lists_are_read_page_by_page_and_without_their_malformed_entries(
    script: Any, verb: str, method: str, member: str, entry: dict[str, Any], caplog: Any
) -> None:
    other = {**entry, "name": "other", "title": None}

    async def calls(transport: Scripted, heard: Heard) -> Any:
        if "cursor" in heard.params:
            return {member: [other]}
        return {member: [entry, {"odd": 1}], "nextCursor": "2"}

    transport = Scripted(script(calls))
    async with Client(transport) as client:
        found = await getattr(client, verb)()
    assert [one.name for one in found] == [entry["name"], "other"]
    assert found[1].title is UNSET
    assert [heard.params.get("cursor") for heard in transport.of(method)] == [None, "2"]
    assert "malformed entry" in caplog.text


@BOTH
async def test_a_resource_is_read_by_its_uri(script: Any) -> None:
    transport = Scripted(script(answers(resources_read=CONTENTS)))
    async with Client(transport) as client:
        found = await client.read_resource("a://1")
    (heard,) = transport.of("resources/read")
    assert heard.params["uri"] == "a://1"
    assert heard.outgoing.subject == "a://1"  # `Mcp-Name` (Streamable HTTP: Standard Headers)
    assert [(one.uri, one.text) for one in found.contents] == [("a://1", "one")]


@pytest.mark.parametrize("result", [{}, {"contents": [{"uri": "a://1"}]}, {"contents": 1}, [], None])
async def test_contents_that_are_none_are_a_fault_of_the_server(result: Any) -> None:
    async with Client(Scripted(stateless(answers(resources_read=result)))) as client:
        with pytest.raises(PeerFault, match="resources/read"):
            await client.read_resource("a://1")


async def test_a_missing_resource_is_the_servers_word() -> None:
    def missing(heard: Heard) -> Any:
        raise Fail(-32602, "Resource not found", {"uri": "a://1"})

    async with Client(Scripted(stateless(answers(resources_read=missing)))) as client:
        with pytest.raises(RemoteError) as caught:
            await client.read_resource("a://1")
    assert caught.value.data == {"uri": "a://1"}


@BOTH
async def test_a_prompt_is_got_with_texts_as_arguments(script: Any) -> None:
    message = {"role": "user", "content": {"type": "text", "text": "hello"}}
    transport = Scripted(script(answers(prompts_get={"messages": [message], "description": "d"})))
    async with Client(transport) as client:
        found = await client.get_prompt("p", {"text": "a", "number": 7, "list": ["x", None]})
        await client.get_prompt("p")
    first, second = transport.of("prompts/get")
    assert first.params["arguments"] == {"text": "a", "number": "7", "list": '["x",null]'}
    assert "arguments" not in second.params
    assert first.outgoing.subject == "p"
    assert (found.description, found.messages[0].role) == ("d", "user")


async def test_reading_and_prompts_may_ask_for_input_too() -> None:
    # 2026-07-28, Multi Round-Trip Requests, "Supported Requests"
    async def calls(transport: Scripted, heard: Heard) -> Any:
        if "inputResponses" not in heard.params:
            asked = {"where": {"method": "roots/list"}}
            return {"resultType": "input_required", "inputRequests": asked, "requestState": "s"}
        assert heard.params["requestState"] == "s"
        root = heard.params["inputResponses"]["where"]["roots"][0]["uri"]
        if heard.method == "prompts/get":
            return {"messages": [{"role": "user", "content": {"type": "text", "text": root}}]}
        return {"contents": [{"uri": "a://1", "text": root}], "ttlMs": 3_600_000}

    transport = Scripted(stateless(calls))
    async with Client(transport, roots=["file:///here"]) as client:
        for _ in range(2):  # what came of answers is kept for nobody (Caching: Cache Key)
            assert (await client.read_resource("a://1")).contents[0].text == "file:///here"
        assert (await client.get_prompt("p")).messages[0].content.text == "file:///here"
    assert len(transport.of("resources/read")) == 4


@BOTH
@pytest.mark.parametrize(
    ("ref", "sent"),
    [
        ("p", {"type": "ref/prompt", "name": "p"}),
        ("a://{n}", {"type": "ref/resource", "uri": "a://{n}"}),
        (ResourceTemplateReference(uri="odd"), {"type": "ref/resource", "uri": "odd"}),
    ],
)
async def test_completion_of_prompts_and_templates(script: Any, ref: Any, sent: Any) -> None:
    result = {"completion": {"values": ["python"], "total": 9, "hasMore": True}}
    transport = Scripted(script(answers(completion_complete=result)))
    async with Client(transport) as client:
        found = await client.complete(ref, "n", value="py", context={"m": "x"})
        await client.complete(ref, {"name": "n", "value": "py"})
    assert (found.values, found.total, found.has_more) == (["python"], 9, True)
    first, second = transport.of("completion/complete")
    assert first.params["ref"] == sent
    assert first.params["argument"] == second.params["argument"] == {"name": "n", "value": "py"}
    assert first.params["context"] == {"arguments": {"m": "x"}}
    assert "context" not in second.params


async def test_the_log_level_is_told_to_a_session_once() -> None:
    transport = Scripted(
        handshake(answers(logging_setLevel={}, tools_call=text()), capabilities={"logging": {}})
    )
    async with Client(transport) as client:
        await client.set_logging_level("error")
        await client.call_tool("t")
    assert [heard.params["level"] for heard in transport.of("logging/setLevel")] == ["error"]
    assert LEVEL not in transport.of("tools/call")[0].meta


async def test_the_log_level_goes_with_each_request_where_there_is_no_session() -> None:
    entries: list[LoggingMessageParams] = []
    transport = Scripted(stateless(answers(tools_call=text())))
    async with Client(transport, log_handler=entries.append, log_level="info") as client:
        await client.call_tool("t")
        await client.set_logging_level("error")
        await client.call_tool("t")
    assert [heard.meta[LEVEL] for heard in transport.of("tools/call")] == ["info", "error"]


async def test_a_session_is_subscribed_and_unsubscribed() -> None:
    heard: list[Any] = []
    transport = Scripted(handshake(answers(resources_subscribe={}, resources_unsubscribe={})))
    async with Client(transport, notification_handler=lambda *told: heard.append(told)) as client:
        await client.subscribe("a://1")
        transport.say("notifications/resources/updated", {"uri": "a://1"})
        await client.unsubscribe("a://1")
    assert heard == [("notifications/resources/updated", {"uri": "a://1"})]
    assert [one.method for one in transport.heard[-2:]] == ["resources/subscribe", "resources/unsubscribe"]


async def test_without_sessions_subscribing_says_what_to_do_instead() -> None:
    async with Client(Scripted(stateless())) as client:
        with pytest.raises(UsageError, match=rf"{NEW} has no resources/subscribe") as caught:
            await client.subscribe("a://1")
    assert caught.value.hint == "client.listen(resources=['a://1'])"


async def test_changed_roots_are_told_where_there_is_a_word_for_it() -> None:
    old, new = Scripted(handshake()), Scripted(stateless())
    for transport in (old, new):
        async with Client(transport, roots=[]) as client:
            await client.roots_changed()
    assert old.notices[-1] == "notifications/roots/list_changed"
    assert new.notices == []


# What is kept


@BOTH
async def test_contents_are_kept_as_long_as_they_are_fresh_and_unchanged(script: Any) -> None:
    fresh = {**CONTENTS, "ttlMs": 3_600_000, "cacheScope": "private"}
    transport = Scripted(script(answers(resources_read=fresh)))
    async with Client(transport) as client:
        for uri in ("a://1", "a://1", "a://2"):
            await client.read_resource(uri)
        assert len(transport.of("resources/read")) == 2
        transport.say("notifications/resources/updated", {"uri": "a://1"})
        for uri in ("a://1", "a://2"):
            await client.read_resource(uri)
        assert [heard.params["uri"] for heard in transport.of("resources/read")] == [
            "a://1",
            "a://2",
            "a://1",
        ]
        await client.read_resource("a://1", timeout=5)
    assert len(transport.of("resources/read")) == 4


@BOTH
async def test_each_list_becomes_stale_by_its_own_notice(script: Any) -> None:
    lasting = {"ttlMs": 3_600_000, "cacheScope": "public"}
    transport = Scripted(
        script(
            answers(
                tools_list={"tools": [], **lasting},
                prompts_list={"prompts": [], **lasting},
                resources_list={"resources": [], **lasting},
                resources_templates_list={"resourceTemplates": [], **lasting},
            )
        )
    )

    async def read(client: Client) -> list[str]:
        before = len(transport.heard)
        await client.list_tools()
        await client.list_prompts()
        await client.list_resources()
        await client.list_resource_templates()
        return [heard.method for heard in transport.heard[before:]]

    async with Client(transport) as client:
        assert len(await read(client)) == 4
        assert await read(client) == []
        transport.say("notifications/prompts/list_changed")
        assert await read(client) == ["prompts/list"]
        transport.say("notifications/resources/list_changed")
        assert await read(client) == ["resources/list", "resources/templates/list"]
