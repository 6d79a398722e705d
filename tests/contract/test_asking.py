"""Asking the client: one handler, asked inline where the revision does that, in rounds elsewhere."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from dragoman import RemoteError, UsageError
from dragoman.model import ElicitResult
from tests.contract.conftest import Stage
from tests.contract.room import SESSIONS, SINCE_2025_06, SINCE_2025_11, STATELESS, Room

NO_FORMS = "revision {} has no elicitation/create: the client cannot be asked"


def questions(room: Room, method: str) -> list[dict[str, Any]]:
    """What the server asked, as it was on the wire, whichever way it asked."""
    if room.revision in SESSIONS:
        return room.received(method)
    found = [frame["result"].get("inputRequests", {}) for way, frame in room.frames if "result" in frame]
    return [
        request.get("params", {})
        for asked in found
        for request in asked.values()
        if request["method"] == method
    ]


async def test_yes_or_no(room: Room) -> None:
    if room.revision not in SINCE_2025_06:
        assert await room.failed("confirm", question="Sure?") == NO_FORMS.format(room.revision)
        assert room.asked == []
        return
    assert (await room.call("confirm", question="Sure?")).text == "accept True"
    assert questions(room, "elicitation/create") == [
        {
            "message": "Sure?",
            "requestedSchema": {
                "type": "object",
                "properties": {"value": {"type": "boolean"}},
                "required": ["value"],
            },
        }
    ]


@pytest.mark.parametrize(("answer", "text"), [("decline", "decline None"), ("cancel", "cancel None")])
@pytest.mark.parametrize("revision", SINCE_2025_06)
async def test_a_person_may_say_no(room: Room, answer: Any, text: str) -> None:
    room.elicit = lambda params: ElicitResult(action=answer)
    assert (await room.call("confirm", question="Sure?")).text == text


@pytest.mark.parametrize("revision", SINCE_2025_06)
async def test_a_form_with_several_fields(room: Room) -> None:
    room.elicit = lambda params: {"day": "sunday", "seats": 3}
    assert (await room.call("trip")).text == "sunday 3 False"
    (question,) = questions(room, "elicitation/create")
    fields = question["requestedSchema"]["properties"]
    assert fields["day"] == {"type": "string", "enum": ["saturday", "sunday"]}
    seats = {"type": "integer", "description": "How many", "minimum": 1, "maximum": 8, "default": 2}
    if room.revision not in SINCE_2025_11:
        del seats["default"]  # only a yes or no had one
    assert fields["seats"] == seats
    assert fields["window"] == {"type": "boolean", "default": False}
    assert question["requestedSchema"]["required"] == ["day"]


@pytest.mark.parametrize("revision", SINCE_2025_06)
async def test_titled_choices_and_several_at_once(room: Room) -> None:
    room.elicit = lambda params: {"size": "l", "extras": ["lamp"]}
    if room.revision in SINCE_2025_11:
        assert (await room.call("choose")).text == '{"size":"l","extras":["lamp"]}'
        return
    text = await room.failed("choose")
    assert "extras" in text
    assert "2025-06-18" in text


@pytest.mark.parametrize("revision", SINCE_2025_06)
async def test_a_wrong_answer_is_asked_for_again(room: Room) -> None:
    answers = iter([{"value": "perhaps"}, {"other": 1}, {"value": False}])
    room.elicit = lambda params: next(answers)
    assert (await room.call("confirm", question="Sure?")).text == "accept False"
    assert len(room.asked) == 3


async def test_a_page_to_open(room: Room) -> None:
    room.elicit = lambda params: ElicitResult(action="accept")
    if room.revision not in SINCE_2025_11:
        assert room.revision in await room.failed("page")
        assert room.asked == []
        return
    assert (await room.call("page")).text == "accept"
    (question,) = questions(room, "elicitation/create")
    has_id = "elicitationId" in question
    assert has_id == (room.revision == "2025-11-25")
    assert {name: value for name, value in question.items() if name != "elicitationId"} == {
        "mode": "url",
        "message": "Sign in",
        "url": "https://example.com/sign-in",
    }


async def test_the_client_s_model(room: Room) -> None:
    assert (await room.call("think")).text == "a-model: hi"
    (question,) = questions(room, "sampling/createMessage")
    annotations = {"audience": ["user"], "priority": 0.5}
    if room.revision in SINCE_2025_06:
        annotations["lastModified"] = "2026-07-28T12:00:00Z"
    assert question == {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Hello", "annotations": annotations}}
        ],
        "systemPrompt": "Be brief",
        "maxTokens": 10,
        "temperature": 0.5,
    }


async def test_tools_for_the_client_s_model_need_a_client_that_has_them(room: Room) -> None:
    # Our client says nothing of tools in sampling.
    if room.revision in SESSIONS:
        assert await room.failed("think_with_tools")
    else:
        error = await room.refused("tools/call", name="think_with_tools", arguments={})
        assert (error.code, error.data) == (-32021, {"requiredCapabilities": {"sampling": {"tools": {}}}})
    assert room.asked == []


async def test_the_client_s_roots(room: Room) -> None:
    assert (await room.call("where")).text == '["file:///srv/project"]'
    assert len(room.asked) == 1


@pytest.mark.parametrize("revision", SINCE_2025_06)
async def test_several_questions_at_once(room: Room) -> None:
    assert (await room.call("at_once")).text == "True a-model 1"
    assert sorted(method for method, _ in room.asked) == [
        "elicitation/create",
        "roots/list",
        "sampling/createMessage",
    ]
    # In rounds they are asked in one.
    assert len(room.sent("tools/call")) == (2 if room.revision == STATELESS else 1)


@pytest.mark.parametrize("revision", SINCE_2025_06)
async def test_a_step_before_a_question_is_done_once(room: Room) -> None:
    key = uuid4().hex
    assert (await room.call("book", key=key)).text == "1 True True"
    assert (await room.call("noted", key=key)).text == '["charged","shipped"]'
    assert len(room.sent("tools/call")) == (4 if room.revision == STATELESS else 2)


@pytest.mark.parametrize("revision", SINCE_2025_06)
async def test_the_form_of_the_wire_works_on_every_revision(room: Room) -> None:
    room.elicit = lambda params: {"name": "Mara"}
    assert (await room.call("raw")).text == "one: Mara"


@pytest.mark.parametrize("revision", [STATELESS])
async def test_state_is_sealed_and_good_for_its_call_only(room: Room) -> None:
    call = {"name": "confirm", "arguments": {"question": "Sure?"}}
    asked = await room.client.request("tools/call", call)
    assert asked["resultType"] == "input_required"
    assert "ttlMs" not in asked
    state, answers = asked["requestState"], {"sure": {"action": "accept", "content": {"value": True}}}
    other = {"name": "confirm", "arguments": {"question": "Delete all?"}}
    for wrong in ({**other, "requestState": state}, {**call, "requestState": state[:-2] + "AA"}):
        error = await room.refused("tools/call", **wrong, inputResponses=answers)
        assert error.code == -32602
        assert "requestState" in error.message
    result = await room.client.request(
        "tools/call", {**call, "requestState": state, "inputResponses": answers}
    )
    assert result["content"][0]["text"] == "accept True"


@pytest.mark.parametrize("revision", [STATELESS])
async def test_every_process_of_a_server_opens_the_state(stage: Stage, room: Room, transport: str) -> None:
    call = {"name": "confirm", "arguments": {"question": "Sure?"}}
    asked = await room.client.request("tools/call", call)
    other = "memory" if transport != "memory" else "http"
    async with Room.capable(stage.target(other), STATELESS) as elsewhere:
        again = {
            **call,
            "requestState": asked["requestState"],
            "inputResponses": {"sure": {"action": "decline"}},
        }
        result = await elsewhere.client.request("tools/call", again)
        assert result["content"][0]["text"] == "decline None"


async def test_a_client_that_cannot_be_asked(stage: Stage, revision: str, transport: str) -> None:
    async with Room(stage.target(transport), revision) as room:
        for tool, missing in (("where", {"roots": {}}), ("think", {"sampling": {}})):
            if revision in SESSIONS:
                assert "did not declare" in await room.failed(tool)
                continue
            with pytest.raises(RemoteError) as caught:
                await room.client.call_tool(tool)
            assert (caught.value.code, caught.value.data) == (-32021, {"requiredCapabilities": missing})
        if revision == STATELESS:
            error = await room.refused("tools/call", name="page")
            assert error.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}
            error = await room.refused("tools/call", name="trip")
            assert error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    room.check()


async def test_what_the_person_s_side_cannot_answer_fails_the_call(room: Room) -> None:
    def fails(params: Any) -> Any:
        raise OSError("no model today")

    room.sample = fails
    if room.revision == STATELESS:
        with pytest.raises((OSError, UsageError)):
            await room.call("think")
    else:
        assert "sampling/createMessage" in await room.failed("think")


@pytest.mark.parametrize("revision", SINCE_2025_06)
async def test_resources_and_prompts_ask_too(room: Room) -> None:
    room.elicit = lambda params: {"value": "Mara"}
    read = await room.request("resources/read", uri="notes://asked")
    assert read["contents"][0]["text"] == "for Mara"
    got = await room.request("prompts/get", name="asked_prompt")
    assert got["messages"][0]["content"]["text"] == "for Mara"
    assert len(room.asked) == 2
    if room.revision == STATELESS:
        # It came of answers that no cache goes by.
        assert (read["ttlMs"], read["cacheScope"]) == (0, "private")
