"""One connection as a state machine: who owes what to whom, and what is said when that goes wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from dragoman.errors import ClosedError, UsageError
from dragoman.jsonrpc import Limits, Peer
from dragoman.jsonrpc.message import decode, encode_error, encode_request, encode_result, too_large
from dragoman.jsonrpc.peer import (
    Event,
    NotificationReceived,
    Reply,
    RequestReceived,
    ResponseBroken,
    ResponseReceived,
    Unmatched,
)


def only(events: list[Event]) -> Event:
    assert len(events) == 1
    return events[0]


def reply(events: list[Event]) -> Any:
    event = only(events)
    assert isinstance(event, Reply)
    return json.loads(event.frame)


def test_ids_count_and_answers_find_their_request_in_any_order() -> None:
    peer = Peer()
    first, frame = peer.request("a", [1])
    second, _ = peer.request("b")
    assert frame == b'{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}'
    assert (first, second, peer.pending) == (1, 2, 2)
    answer = only(peer.receive(encode_result(2, "two")))
    assert isinstance(answer, ResponseReceived)
    assert (answer.id, bytes(answer.result), answer.error, answer.loose) == (2, b'"two"', None, False)
    answer = only(peer.receive(encode_error(1, -5, "no")))
    assert isinstance(answer, ResponseReceived)
    assert answer.error is not None
    assert (answer.id, answer.error.code, answer.error.message) == (1, -5, "no")
    assert peer.pending == 0


def test_a_frame_that_cannot_be_encoded_leaves_no_trace() -> None:
    peer = Peer()
    with pytest.raises(TypeError):
        peer.request("a", [object()])
    assert peer.pending == 0
    assert peer.request("a")[0] == 1


def test_both_directions_at_once() -> None:
    left, right = Peer(), Peer()
    _, asked = left.request("outer")
    got = only(right.receive(asked))
    assert isinstance(got, RequestReceived)
    _, asked_back = right.request("inner")  # the same number, 1, in the other direction
    back = only(left.receive(asked_back))
    assert isinstance(back, RequestReceived)
    assert (got.id, back.id) == (1, 1)
    inner = only(right.receive(left.respond(1, "inner")))
    assert isinstance(inner, ResponseReceived)
    outer = only(left.receive(right.respond(1, "outer")))
    assert isinstance(outer, ResponseReceived)
    assert (bytes(inner.result), bytes(outer.result)) == (b'"inner"', b'"outer"')


@pytest.mark.parametrize("id_", [7, "7", 0, "", -1, 1.5, None, 2**70, "서울"])
def test_an_id_is_echoed_with_value_and_type(id_: Any) -> None:
    peer = Peer()
    event = only(peer.receive(encode_request(id_, "a")))
    assert isinstance(event, RequestReceived)
    answer = json.loads(peer.respond(event.id, True))
    assert answer == {"jsonrpc": "2.0", "id": id_, "result": True}
    assert type(answer["id"]) is type(id_)


def test_seven_and_the_string_seven_are_two_requests() -> None:
    peer = Peer()
    peer.receive(encode_request(7, "a"))
    peer.receive(encode_request("7", "b"))
    assert peer.owed == 2
    assert json.loads(peer.respond("7", "b"))["id"] == "7"
    assert json.loads(peer.respond(7, "a"))["id"] == 7


def test_an_id_in_flight_is_refused_and_free_again_after_the_answer() -> None:
    peer = Peer()
    peer.receive(encode_request(7, "a"))
    assert reply(peer.receive(encode_request(7, "a"))) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {
            "code": -32600,
            "message": "Invalid Request",
            "data": "id already in use: expected an id that no request in flight has",
        },
    }
    assert peer.respond(7, 1)
    assert isinstance(only(peer.receive(encode_request(7, "a"))), RequestReceived)


def test_an_answer_with_the_id_as_a_string_is_matched_and_flagged() -> None:
    peer = Peer()
    peer.request("a")
    answer = only(peer.receive(encode_result("1", True)))
    assert isinstance(answer, ResponseReceived)
    assert (answer.id, answer.loose) == (1, True)


@pytest.mark.parametrize("id_", ["01", "1.0", "+1", " 1", "", "x", "١", None, 2, "2", True, -1])
def test_an_answer_to_nobody(id_: Any) -> None:
    peer = Peer()
    peer.request("a")
    frame = b'{"jsonrpc":"2.0","id":%b,"result":1}' % json.dumps(id_).encode()
    event = only(peer.receive(frame))
    assert isinstance(event, Unmatched)
    assert not event.late
    assert peer.pending == 1


def test_a_second_answer_is_an_answer_to_nobody() -> None:
    peer = Peer()
    peer.request("a")
    assert isinstance(only(peer.receive(encode_result(1, 1))), ResponseReceived)
    assert only(peer.receive(encode_result(1, 1))) == Unmatched(1, None)


@pytest.mark.parametrize("late_id", [1, "1"])
def test_a_late_answer_is_dropped_and_counted(late_id: Any) -> None:
    peer = Peer()
    id_, _ = peer.request("a")
    peer.forget(id_)
    peer.forget(id_)
    assert peer.pending == 0
    event = only(peer.receive(encode_result(late_id, 1)))
    assert isinstance(event, Unmatched)
    assert event.late
    assert peer.late == 1


def test_forgotten_requests_do_not_pile_up() -> None:
    peer = Peer()
    for _ in range(5000):
        peer.forget(peer.request("a")[0])
    assert len(peer._forgotten) < 2000


def test_a_broken_answer_fails_its_request_and_is_not_answered() -> None:
    peer = Peer()
    peer.request("a")
    event = only(peer.receive(b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"m"}}'))
    assert event == ResponseBroken(
        1, 'members "result" and "error" in one response: expected exactly one of them'
    )
    assert peer.pending == 0


def test_an_answer_too_large_fails_its_request() -> None:
    peer = Peer(Limits(max_bytes=10))
    peer.request("a")
    assert isinstance(only(peer.receive(encode_result(1, "x" * 100))), ResponseBroken)
    peer.request("a")
    head = b'{"jsonrpc":"2.0","id":2,"result":"xxxxxxxx'
    assert isinstance(only(peer.take(too_large(100, 10, head=head))), ResponseBroken)


def test_an_error_about_a_message_that_could_not_be_read_is_told() -> None:
    peer = Peer()
    peer.request("a")
    event = only(peer.receive(encode_error(None, -32700, "Parse error")))
    assert isinstance(event, Unmatched)
    assert event.error is not None
    assert (event.id, event.error.code) == (None, -32700)


def test_answering_what_nobody_asked_is_a_usage_error() -> None:
    peer = Peer()
    peer.receive(encode_request(7, "a"))
    with pytest.raises(UsageError, match="no answer is owed to a request with the id '7'"):
        peer.respond("7", 1)
    peer.refuse(7, 1, "m")
    with pytest.raises(UsageError):
        peer.refuse(7, 1, "m")


def test_a_result_that_is_no_json_leaves_the_answer_owed() -> None:
    peer = Peer()
    peer.receive(encode_request(7, "a"))
    with pytest.raises(TypeError):
        peer.respond(7, object())
    assert json.loads(peer.refuse(7, -32603, "Internal error"))["error"]["code"] == -32603


def test_close_names_what_is_pending_and_ends_everything() -> None:
    peer = Peer()
    peer.request("a")
    peer.request("b")
    peer.receive(encode_request(7, "a"))
    assert peer.close("the pipe broke") == [1, 2]
    assert peer.close() == []
    assert (peer.pending, peer.owed) == (0, 0)
    assert peer.receive(encode_result(1, 1)) == []
    for speak in (
        lambda: peer.request("a"),
        lambda: peer.notify("a"),
        lambda: peer.respond(7, 1),
        lambda: peer.refuse(7, 1, "m"),
        lambda: peer.drop(7),
    ):
        with pytest.raises(ClosedError, match="the pipe broke"):
            speak()


# Batches --------------------------------------------------------------------------------------------


def batch(*frames: bytes) -> bytes:
    return b"[" + b",".join(frames) + b"]"


def test_a_batch_is_answered_in_one_array_when_the_last_answer_is_there() -> None:
    peer = Peer()
    note = b'{"jsonrpc":"2.0","method":"note"}'
    events = peer.receive(batch(encode_request(1, "a"), note, b"5", encode_request("1", "b")))
    assert [type(event) for event in events] == [RequestReceived, NotificationReceived, RequestReceived]
    assert peer.respond("1", "b") == b""
    assert json.loads(peer.refuse(1, -1, "a")) == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "a"}},
        {
            "jsonrpc": "2.0",
            "id": None,
            "error": {
                "code": -32600,
                "message": "Invalid Request",
                "data": "message: expected an object, received a number",
            },
        },
        {"jsonrpc": "2.0", "id": "1", "result": "b"},
    ]


def test_a_batch_of_notifications_is_answered_by_silence() -> None:
    peer = Peer()
    note = b'{"jsonrpc":"2.0","method":"note","params":[]}'
    events = peer.receive(batch(note, note))
    assert [type(event) for event in events] == [NotificationReceived] * 2


def test_a_batch_of_answers_finds_its_requests() -> None:
    peer = Peer()
    frames = [peer.request("a")[1], peer.request("b")[1], peer.notify("c")]
    other = Peer()
    other.receive(batch(*frames))
    assert other.respond(2, "b") == b""
    events = peer.receive(other.respond(1, "a"))
    assert [event.id for event in events if isinstance(event, ResponseReceived)] == [1, 2]


def test_a_batch_with_one_id_twice() -> None:
    peer = Peer()
    events = peer.receive(batch(encode_request(1, "a"), encode_request(1, "a")))
    assert [type(event) for event in events] == [RequestReceived]
    answers = json.loads(peer.respond(1, True))
    assert answers[0] == {"jsonrpc": "2.0", "id": 1, "result": True}
    assert answers[1]["error"]["code"] == -32600


def test_requests_called_off_are_missing_in_the_answer_to_their_batch() -> None:
    peer = Peer()
    peer.receive(batch(encode_request(1, "a"), encode_request(2, "a")))
    assert peer.drop(1) == b""
    assert json.loads(peer.respond(2, 0)) == [{"jsonrpc": "2.0", "id": 2, "result": 0}]
    peer.receive(batch(encode_request(1, "a")))
    assert peer.drop(1) == b""
    assert peer.owed == 0


def test_two_batches_do_not_mix() -> None:
    peer = Peer()
    peer.receive(batch(encode_request(1, "a"), encode_request(2, "a")))
    peer.receive(batch(encode_request(3, "a"), encode_request(4, "a")))
    peer.receive(encode_request(5, "a"))
    assert peer.respond(4, 0) == b""
    assert peer.respond(1, 0) == b""
    assert json.loads(peer.respond(5, 0))["id"] == 5
    assert [answer["id"] for answer in json.loads(peer.respond(3, 0))] == [3, 4]
    assert [answer["id"] for answer in json.loads(peer.respond(2, 0))] == [1, 2]


def test_details_can_be_left_out() -> None:
    assert reply(Peer(details=False).receive(b"{")) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "Parse error"},
    }


def test_params_arrive_as_they_were_written() -> None:
    event = only(Peer().receive(b'{"jsonrpc":"2.0","method":"a","params":{ "a" : 1.0 }}'))
    assert isinstance(event, NotificationReceived)
    assert isinstance(event.params, Raw)
    assert bytes(event.params) == b'{ "a" : 1.0 }'
    assert decode(b"1") != event
