"""OpenAI's Chat Completions, and what servers that speak them differ in."""

from __future__ import annotations

import pytest

from dragoman.errors import UsageError
from dragoman.host.models import CHAT
from dragoman.host.models.base import ThoughtDelta, ToolUse, UseStarted

from .samples import PNG, RESULTS, SCHEMAS, tool
from .streams import CHAT as STREAM

USE = ToolUse("call_1", "find", {})


def completion(message, reason="stop", **more):
    return {"id": "c1", "choices": [{"index": 0, "finish_reason": reason, "message": message}], **more}


def call(**members):
    return {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "{}"}, **members}


# --- functions ------------------------------------------------------------------------------------------


def test_a_function_says_strict_only_where_it_is():
    (block,) = CHAT.definitions([tool("find", SCHEMAS["one"])]).blocks
    assert block == {
        "type": "function",
        "function": {"name": "find", "description": "Finds it.", "parameters": SCHEMAS["one"]},
    }
    (block,) = CHAT.definitions([tool("find", SCHEMAS["one"])], strict=True).blocks
    assert block["function"]["strict"] is True


def test_tools_beyond_the_128th_are_left_out():
    found = CHAT.definitions([tool(f"t{n}") for n in range(130)])
    assert len(found.blocks) == 128
    assert [(item.name, item.why) for item in found.left_out] == [
        ("t128", "the API takes at most 128 tools"),
        ("t129", "the API takes at most 128 tools"),
    ]


# --- results --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("empty", ""),
        ("text", "one\ntwo"),
        ("structured", '{"a": 1, "city": "서울"}'),
        ("audio", "[audio, audio/wav, 3 bytes: cannot be shown to the model]"),
        ("drawing", f"[image, image/svg+xml, {len(PNG) * 3 // 4} bytes: cannot be shown to the model]"),
        ("failed", "Error: no such order"),
    ],
)
def test_a_result_is_text(name, becomes):
    (message,) = CHAT.answered([CHAT.result(USE, RESULTS[name])])
    assert message == {"role": "tool", "tool_call_id": "call_1", "content": becomes}


def test_images_and_files_follow_in_one_message_of_the_user_behind_all_answers():
    other = ToolUse("call_2", "read", {})
    blocks = [CHAT.result(USE, RESULTS["image"]), CHAT.result(other, RESULTS["pdf"])]
    first, second, moved = CHAT.answered(blocks)
    assert first["content"] == "x\n[image: in the message of the user behind the results]"
    assert second["content"] == "[file: in the message of the user behind the results]"
    assert moved == {
        "role": "user",
        "content": [
            {"type": "text", "text": "From the result of call call_1:"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            {"type": "text", "text": "From the result of call call_2:"},
            {"type": "file", "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        ],
    }


# --- answers --------------------------------------------------------------------------------------------


def test_what_the_api_gives_and_does_not_take_is_not_sent_back():
    message = {
        "role": "assistant",
        "content": "x",
        "refusal": None,
        "annotations": [{"type": "url_citation"}],
        "audio": {"id": "a1", "data": "AAAA", "expires_at": 1, "transcript": "x"},
        "function_call": None,
    }
    assert CHAT.said(completion(message)) == [{"role": "assistant", "content": "x", "audio": {"id": "a1"}}]


def test_what_other_servers_put_into_a_message_stays():
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Hm.",
        "tool_calls": [call(extra_content={"google": {"thought_signature": "x"}})],
    }
    assert CHAT.said(completion(message)) == [message]


@pytest.mark.parametrize(
    ("message", "reason", "stop"),
    [
        ({"content": "x"}, "stop", "end"),
        ({"content": None, "tool_calls": [call()]}, "tool_calls", "tools"),
        ({"content": None, "tool_calls": [call()]}, "stop", "tools"),
        ({"content": "x"}, "length", "length"),
        ({"content": None, "tool_calls": [call()]}, "length", "length"),
        ({"content": None}, "content_filter", "refused"),
        ({"content": None, "refusal": "No."}, "stop", "refused"),
        ({"content": "x"}, None, "other"),
        ({"content": "x"}, "tool_calls", "end"),
    ],
)
def test_why_it_stopped(message, reason, stop):
    assert CHAT.stop(completion(message, reason)) == stop


def test_a_refusal_is_text_and_parts_are_too():
    assert CHAT.text(completion({"content": None, "refusal": "No."})) == "No."
    assert (
        CHAT.text(completion({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}))
        == "ab"
    )


def test_a_call_of_something_else_is_a_fault():
    custom = {"id": "call_1", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    (use,) = CHAT.uses(completion({"tool_calls": [custom]}))
    assert (use.id, use.name, use.raw) == ("call_1", "shell", "ls")
    assert use.fault is not None


@pytest.mark.parametrize("id_", [None, ""])
def test_a_call_without_an_id_gets_one_that_its_answer_can_use(id_):
    body = completion({"content": None, "tool_calls": [call(id=id_), call(id=id_)]}, "tool_calls")
    uses = CHAT.uses(body)
    assert len({use.id for use in uses}) == 2
    history = [*CHAT.said(body), *CHAT.answered([CHAT.failure(use, "no") for use in uses])]
    CHAT.request(model="m", history=history)


# --- histories ------------------------------------------------------------------------------------------


def asks(*ids):
    return {"role": "assistant", "content": None, "tool_calls": [call(id=id_) for id_ in ids]}


def tells(id_):
    return {"role": "tool", "tool_call_id": id_, "content": "x"}


@pytest.mark.parametrize(
    ("history", "fault"),
    [
        ([asks("a", "b"), tells("a")], "no answer to b"),
        ([asks("a"), {"role": "user", "content": "x"}, tells("a")], r"messages\[1\]: before it"),
        ([tells("a")], r"messages\[0\]: an answer to 'a'"),
        ([asks("a"), tells("a"), tells("a")], r"messages\[2\]: an answer to 'a'"),
        ([asks("a", "b"), tells("b"), tells("a")], None),
    ],
)
def test_answers_stand_behind_their_calls(history, fault):
    if fault is None:
        assert CHAT.request(model="m", history=history)["messages"] == history
        return
    with pytest.raises(UsageError, match=fault):
        CHAT.request(model="m", history=history)


def test_instructions_are_the_first_message():
    request = CHAT.request(model="m", history=CHAT.user("Hi."), system="Be brief.", limit=9, stream=True)
    assert request["messages"][0] == {"role": "system", "content": "Be brief."}
    assert request["max_completion_tokens"] == 9
    assert request["stream_options"] == {"include_usage": True}


# --- streams of other servers ---------------------------------------------------------------------------


def chunk(*calls, reason=None, **delta):
    given = {"tool_calls": [*calls], **delta} if calls else delta
    return {"id": "c1", "choices": [{"index": 0, "delta": given, "finish_reason": reason}]}


def read(*chunks):
    reader = CHAT.reader()
    deltas = [delta for each in chunks for delta in reader.feed(each)]
    return reader.message(), deltas


def part(name=None, arguments=None, **members):
    return {**members, "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    "chunks",
    [
        # without an index, each call whole
        [chunk(part("find", '{"a": 1}', id="x")), chunk(part("find", '{"a": 2}', id="y"))],
        # without an index, in pieces
        [
            chunk(part("find", '{"a"', id="x")),
            chunk(part(arguments=": 1}")),
            chunk(part("find", '{"a": 2}', id="y")),
        ],
        # all at index 0
        [
            chunk(part("find", '{"a": 1}', id="x", index=0)),
            chunk(part("find", '{"a": 2}', id="y", index=0)),
        ],
        # both in one chunk
        [chunk(part("find", '{"a": 1}', id="x", index=0), part("find", '{"a": 2}', id="y", index=1))],
        # id and name in every piece
        [
            chunk(part("find", '{"a"', id="x", index=0)),
            chunk(part("find", ": 1}", id="x", index=0)),
            chunk(part("find", '{"a": 2}', id="y", index=1)),
        ],
        # no ids at all
        [chunk(part("find", '{"a": 1}')), chunk(part("find", '{"a": 2}'))],
        # indexes that do not begin at 0
        [chunk(part("find", '{"a": 1}', id="x", index=3)), chunk(part("find", '{"a": 2}', id="y", index=7))],
    ],
    ids=["whole", "pieces", "index 0", "one chunk", "repeated", "no ids", "any index"],
)
def test_calls_are_told_apart_however_a_server_numbers_them(chunks):
    message, deltas = read(*chunks, chunk(reason="stop"))
    uses = CHAT.uses(message)
    assert [(use.name, use.arguments) for use in uses] == [("find", {"a": 1}), ("find", {"a": 2})]
    assert CHAT.stop(message) == "tools"
    started = [delta.id for delta in deltas if isinstance(delta, UseStarted)]
    assert started == [use.id for use in uses]


def test_thoughts_by_other_names():
    message, deltas = read(
        chunk(reasoning_content="Hm"), chunk(reasoning="."), chunk(content="x", reason="stop")
    )
    assert [delta.text for delta in deltas if isinstance(delta, ThoughtDelta)] == ["Hm", "."]
    assert CHAT.text(message) == "x"
    assert CHAT.said(message)[0]["reasoning_content"] == "Hm"


def test_only_the_first_choice_counts():
    second = {"id": "c1", "choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]}
    message, _ = read(chunk(content="x"), second)
    assert CHAT.text(message) == "x"
    assert CHAT.stop(message) == "other"


def test_the_end_is_known_before_the_usage():
    reader = CHAT.reader()
    for event in STREAM[:-1]:
        reader.feed(event)
    assert reader.done
    assert CHAT.usage(reader.message()).input == 0
