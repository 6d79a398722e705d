"""Questions of a server before it answers: side by side, bounded, and pages that have to be opened first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.client import Client
from dragoman.errors import DeadlineError, PeerFault, RemoteError, UsageError
from dragoman.model import ElicitParams, ElicitResult
from tests.client.scripted import Fail, Heard, Scripted, handshake, stateless, text

PAGE = {"mode": "url", "message": "log in", "url": "https://id.example/in", "elicitationId": "e1"}


def form(message: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "d"}}}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def asks(*rounds: Any) -> Any:
    """A script: each call gets the next of these as what is asked for; then it is done."""
    left = list(rounds)

    async def calls(transport: Scripted, heard: Heard) -> Any:
        if not left:
            return text(structuredContent=heard.params.get("inputResponses"))
        return {"resultType": "input_required", **left.pop(0)}

    return calls


async def test_several_questions_are_asked_side_by_side_and_answered_under_their_keys() -> None:
    open_: list[str] = []
    both = asyncio.Event()

    async def elicit(params: ElicitParams) -> dict[str, Any]:
        open_.append(params.message)
        if len(open_) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 5)
        return {"a": params.message}

    transport = Scripted(stateless(asks({"inputRequests": {"x": form("one"), "y": form("two")}})))
    async with Client(transport, elicitation_handler=elicit) as client:
        result = await client.call_tool("t")
    assert result.structured == {
        "x": {"action": "accept", "content": {"a": "one"}},
        "y": {"action": "accept", "content": {"a": "two"}},
    }


async def test_one_that_fails_ends_the_others_and_is_raised_as_it_is() -> None:
    ended: list[str] = []

    class OwnError(Exception):
        pass

    async def elicit(params: ElicitParams) -> None:
        if params.message == "bad":
            raise OwnError
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(params.message)

    transport = Scripted(stateless(asks({"inputRequests": {"x": form("waits"), "y": form("bad")}})))
    async with Client(transport, elicitation_handler=elicit) as client:
        with pytest.raises(OwnError):
            await client.call_tool("t")
    assert ended == ["waits"]
    assert len(transport.of("tools/call")) == 1


async def test_cancelling_the_call_cancels_the_questions() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def elicit(params: ElicitParams) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    transport = Scripted(stateless(asks({"inputRequests": {"x": form("1"), "y": form("2")}})))
    async with Client(transport, elicitation_handler=elicit) as client:
        call = asyncio.create_task(client.call_tool("t"))
        await asked.wait()
        call.cancel()
        await asyncio.wait({call})
        assert call.cancelled()
        assert ended.is_set()
        assert client.connected


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_decline_and_a_cancel_are_passed_on(action: Any) -> None:
    transport = Scripted(stateless(asks({"inputRequests": {"x": form("?")}})))
    async with Client(transport, elicitation_handler=lambda _: ElicitResult(action=action)) as client:
        assert (await client.call_tool("t")).structured == {"x": {"action": action}}


@pytest.mark.parametrize("rounds", [1, 3])
async def test_how_often_a_call_may_ask_is_the_callers_word(rounds: int) -> None:
    question = {"inputRequests": {"x": form("?")}}
    transport = Scripted(stateless(asks(*[question] * rounds)))
    async with Client(transport, elicitation_handler=lambda _: {}, max_rounds=rounds) as client:
        assert (await client.call_tool("t")).text == "done"
    transport = Scripted(stateless(asks(*[question] * (rounds + 1))))
    async with Client(transport, elicitation_handler=lambda _: {}, max_rounds=rounds) as client:
        with pytest.raises(PeerFault, match=f"more than {rounds} times"):
            await client.call_tool("t")


async def test_asking_only_to_be_asked_again_is_no_question_and_ends_with_the_calls_time() -> None:
    transport = Scripted(stateless(asks(*[{"requestState": "s"}] * 5)))
    async with Client(transport, max_rounds=1) as client:
        assert (await client.call_tool("t")).text == "done"

    async def again(transport: Scripted, heard: Heard) -> Any:
        return {"resultType": "input_required", "requestState": "s"}

    async with Client(Scripted(stateless(again))) as client:
        with pytest.raises(DeadlineError, match="asked to be asked again"):
            await client.call_tool("t", timeout=0.1)


async def test_calls_at_the_same_time_keep_their_own_states() -> None:
    # 2026-07-28, MRTR: state and questions "MUST NOT be used for any other request"
    async def calls(transport: Scripted, heard: Heard) -> Any:
        name = heard.params["name"]
        if "requestState" not in heard.params:
            asked = {name: form(name)}
            return {
                "resultType": "input_required",
                "inputRequests": asked,
                "requestState": f"state of {name}",
            }
        assert heard.params["requestState"] == f"state of {name}"
        assert list(heard.params["inputResponses"]) == [name]
        return text(name)

    async def elicit(params: ElicitParams) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {}

    async with Client(Scripted(stateless(calls)), elicitation_handler=elicit) as client:
        results = await asyncio.gather(*(client.call_tool(name) for name in "abc"))
    assert [result.text for result in results] == ["a", "b", "c"]


async def test_a_mode_that_was_not_offered_is_refused() -> None:
    # 2025-11-25, elicitation, "Error Handling"
    transport = Scripted(handshake())
    async with Client(transport, elicitation_handler=lambda _: {}):
        error = (await transport.ask("elicitation/create", PAGE))["error"]
    assert error["code"] == -32602
    assert "'url'" in error["message"]


async def test_the_answer_to_a_page_has_no_content() -> None:
    transport = Scripted(handshake())
    async with Client(transport, elicitation_handler=lambda _: {}, elicitation_modes=("form", "url")):
        assert (await transport.ask("elicitation/create", PAGE))["result"] == {"action": "accept"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [("a word", {"type": "text", "text": "a word"}), (None, -1)],
)
async def test_sampling_may_answer_a_text_or_nothing(given: str | None, sent: Any) -> None:
    transport = Scripted(handshake())
    ask = {"messages": [], "maxTokens": 5}
    async with Client(transport, sampling_handler=lambda _: given):
        answer = await transport.ask("sampling/createMessage", ask)
    assert (answer["result"]["content"] if given else answer["error"]["code"]) == sent


async def test_tools_in_sampling_are_for_those_who_offer_them() -> None:
    # client/sampling, "Tool Use": both sides need the capability
    ask = {"messages": [], "maxTokens": 5, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    for offered in (False, True):
        transport = Scripted(handshake())
        async with Client(transport, sampling_handler=lambda _: "done", sampling_tools=offered):
            answer = await transport.ask("sampling/createMessage", ask)
        capabilities = transport.of("initialize")[0].params["capabilities"]
        assert capabilities["sampling"] == ({"tools": {}} if offered else {})
        assert ("result" in answer) is offered
        assert offered or answer["error"]["code"] == -32602


async def test_that_roots_may_change_is_said_where_it_can_be_told() -> None:
    old, new = Scripted(handshake()), Scripted(stateless(asks()))
    for transport in (old, new):
        async with Client(transport, roots=[]) as client:
            if transport is new:
                await client.call_tool("t")
    assert old.of("initialize")[0].params["capabilities"] == {"roots": {"listChanged": True}}
    (call,) = new.of("tools/call")
    assert call.meta["io.modelcontextprotocol/clientCapabilities"] == {"roots": {}}


async def test_a_rejected_sampling_ends_a_call_that_needs_it() -> None:
    asked = {"x": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}}
    transport = Scripted(stateless(asks({"inputRequests": asked})))
    async with Client(transport, sampling_handler=lambda _: None) as client:
        with pytest.raises(UsageError, match="rejected"):
            await client.call_tool("t")
    assert len(transport.of("tools/call")) == 1  # nothing is sent for it (sampling: Error Handling)


# Pages that have to be opened before a call (2025-11-25, elicitation, "URL Elicitation Required Error")


def needs_page(times: int = 1) -> Any:
    left = [times]

    async def calls(transport: Scripted, heard: Heard) -> Any:
        if left[0]:
            left[0] -= 1
            raise Fail(-32042, "log in first", {"elicitations": [PAGE]})
        return text()

    return calls


async def test_a_page_is_opened_and_the_call_made_again_when_it_is_dealt_with() -> None:
    transport = Scripted(handshake(needs_page()))
    opened: list[str] = []

    def elicit(params: ElicitParams) -> dict[str, Any]:
        opened.append(str(params.url))
        transport.say("notifications/elicitation/complete", {"elicitationId": "another"})
        transport.say("notifications/elicitation/complete", {"elicitationId": "e1"})
        return {}

    async with Client(transport, elicitation_handler=elicit, elicitation_modes=("url",)) as client:
        assert (await asyncio.wait_for(client.call_tool("t"), 5)).text == "done"
    assert opened == [PAGE["url"]]
    assert len(transport.of("tools/call")) == 2


async def test_a_page_of_which_nothing_is_heard_is_not_waited_for_for_ever(monkeypatch: Any) -> None:
    monkeypatch.setattr("dragoman.client.rounds.PAGE_WAIT", 0.01)
    transport = Scripted(handshake(needs_page()))
    async with Client(transport, elicitation_handler=lambda _: {}, elicitation_modes=("url",)) as client:
        assert (await client.call_tool("t")).text == "done"


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({"elicitation_handler": lambda _: None, "elicitation_modes": ("url",)}, 1),
        ({"elicitation_handler": lambda _: {}}, 1),
        ({}, 1),
    ],
)
async def test_a_page_that_is_not_opened_leaves_the_servers_error(options: Any, calls: int) -> None:
    transport = Scripted(handshake(needs_page()))
    async with Client(transport, **options) as client:
        with pytest.raises(RemoteError, match="log in first"):
            await client.call_tool("t")
    assert len(transport.of("tools/call")) == calls


async def test_a_server_that_wants_page_after_page_is_stopped(monkeypatch: Any) -> None:
    monkeypatch.setattr("dragoman.client.rounds.PAGE_WAIT", 0.0)
    transport = Scripted(handshake(needs_page(10)))
    options: Any = {"elicitation_handler": lambda _: {}, "elicitation_modes": ("url",), "max_rounds": 2}
    async with Client(transport, **options) as client:
        with pytest.raises(PeerFault, match="more than 2 times"):
            await client.call_tool("t")
