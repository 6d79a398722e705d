"""A trace read again: calls, choices, the newest, what is corrupt, what was too long, what comes live."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonpath_rfc9535 import find as rfc

from dragoman.errors import UsageError
from dragoman.host.trace import Limits, Trace, reading
from dragoman.host.trace import calls as module
from dragoman.host.trace.asking import ask
from dragoman.host.trace.calls import Wanted, calls, find, newest, since, whole
from dragoman.host.trace.following import Follower
from dragoman.host.trace.paths import normal
from dragoman.host.trace.timeline import stretches
from tests.host.traced import DENY, call, clock, fault


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.jsonl"


@pytest.fixture
def ids(path):
    """A trace with one call of each outcome."""
    trace = Trace(path, now=clock())
    return {
        "done": call(trace),
        "error": call(trace, text="no such order", is_error=True),
        "denied": call(trace, tool="refund_order", rule=DENY),
        "schema": call(trace, server="stock", faults=[fault()]),
        "refused": call(trace, known=False),
    }


def found(path, **wanted):
    return [each.id for each in calls(path) if Wanted(**wanted)(each)]


def test_lines_of_a_call_belong_together(path, ids):
    by_id = {each.id: each for each in calls(path)}
    assert {outcome: by_id[name].outcome for outcome, name in ids.items()} == {name: name for name in ids}
    done = by_id[ids["done"]]
    assert [line.facts.kind for line in done.lines] == ["tool_use", "tools/call", "result"]
    assert (done.server, done.tool, done.effect) == ("orders", "lookup_order", "allow")
    assert (by_id[ids["denied"]].sent, by_id[ids["denied"]].effect) == (None, "deny")
    assert whole(done)["tools/call"]["request"]["params"]["arguments"] == {"order_id": "A-1042"}


def test_lines_of_calls_side_by_side_are_told_apart(path):
    trace = Trace(path)
    one, two = trace.begin(), trace.begin()
    for entry in (one, two):
        entry.tool_use({"id": entry.call, "name": "n"}, name=None, faults=(), decision=None)
    for entry in (two, one):
        entry.result({"tool_use_id": entry.call}, by="host")
    assert [(each.id, each.tool_use_id) for each in calls(path)] == [
        (two.call, two.call),
        (one.call, one.call),
    ]


def test_a_call_without_a_result_is_open(path):
    entry = Trace(path).begin()
    entry.tool_use({"id": "1", "name": "n"}, name=None, faults=(), decision=None)
    assert [each.outcome for each in calls(path)] == ["open"]


def test_calls_that_never_end_do_not_fill_the_memory(path, monkeypatch):
    monkeypatch.setattr(module, "_OPEN", 3)
    trace = Trace(path)
    for _ in range(10):
        trace.begin().tool_use({"id": "1", "name": "n"}, name=None, faults=(), decision=None)
    assert len(list(calls(path))) == 10


@pytest.mark.parametrize(
    ("wanted", "outcomes"),
    [
        ({"server": "orders"}, "done error denied"),
        ({"server": "st*"}, "schema"),
        ({"tool": "lookup_order"}, "done error schema"),
        ({"tool": "mcp__orders__*"}, "done error denied refused"),
        ({"denied": True}, "denied"),
        ({"errors": True}, "error schema refused"),
        ({"denied": True, "errors": True}, "error denied schema refused"),
        ({"server": "orders", "errors": True}, "error"),
        ({"since": datetime(2026, 11, 30, 8, 0, 7, tzinfo=UTC)}, "schema refused"),
        ({"since": datetime(2027, 1, 1, tzinfo=UTC)}, ""),
    ],
)
def test_calls_are_chosen(path, ids, wanted, outcomes):
    assert found(path, **wanted) == [ids[outcome] for outcome in outcomes.split()]


def test_a_call_is_found_by_its_id_its_start_and_the_apis_id(path, ids):
    everything = list(calls(path))
    done = find(path, ids["done"])
    assert done.id == ids["done"]
    assert find(path, everything[1].tool_use_id).id == everything[1].id
    lone = Trace(path)
    other = call(lone)
    assert find(path, other[:6]).id == other
    with pytest.raises(UsageError, match=f"several calls begin with '{ids['done'][:6]}'"):
        find(path, ids["done"][:6])
    with pytest.raises(UsageError, match="no call 'nothing'"):
        find(path, "nothing")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90s", "2026-11-30T07:58:30+00:00"),
        ("2h", "2026-11-30T06:00:00+00:00"),
        ("3d", "2026-11-27T08:00:00+00:00"),
        ("2026-11-29", "2026-11-29T00:00:00+00:00"),
        ("2026-11-29T10:00+09:00", "2026-11-29T10:00:00+09:00"),
    ],
)
def test_times_are_said_as_times_or_as_how_long_ago(text, at):
    now = datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert since(text, now=now) == datetime.fromisoformat(at)


def test_a_time_that_is_none_is_told():
    with pytest.raises(UsageError, match="'yesterday' is no time: expected one such as"):
        since("yesterday", now=datetime.now(UTC))


# The newest ----------------------------------------------------------------------------------------------


def test_the_newest_are_found_from_the_end(path, monkeypatch):
    trace = Trace(path, limits=Limits(size=20_000))
    every = [
        call(trace, rule=DENY if number % 7 == 0 else None or call.__kwdefaults__["rule"])
        for number in range(60)
    ]
    monkeypatch.setattr(module, "_WINDOW", 3000)
    for last in (1, 5, 59):
        seen = newest(path, Wanted(), last=last)
        assert ([each.id for each in seen.calls], seen.earlier) == (every[-last:], True)
        assert all(each.outcome in ("done", "denied") for each in seen.calls)
    assert [each.id for each in newest(path, Wanted(), last=60).calls] == every
    assert newest(path, Wanted(), last=None).earlier is False
    assert [each.id for each in newest(path, Wanted(denied=True), last=3).calls] == every[::7][-3:]
    assert newest(path, Wanted(server="none"), last=3).calls == []


def test_a_fault_at_the_end_has_its_number_in_the_whole_file(path, monkeypatch):
    trace = Trace(path)
    for _ in range(20):
        call(trace)
    with path.open("ab") as file:
        file.write(b"not json\n")
    monkeypatch.setattr(module, "_WINDOW", 2000)
    faults = []
    newest(path, Wanted(), last=1, on_fault=faults.append)
    assert [each.number for each in faults] == [61]


# What cannot be read -------------------------------------------------------------------------------------


def test_lines_that_cannot_be_read_are_told_by_number_and_left_out(path):
    call(trace := Trace(path))
    trace.close()
    good = path.read_bytes().splitlines()
    bad = [
        b"",
        b"{}",
        b"[1]",
        b"\xff\xfe",
        b'{"kind":5}',
        b"[" * 100_000,
        b'{"kind":"tool_use","decision":[]}',
        b"null",
    ]
    path.write_bytes(b"\n".join([good[0], *bad, *good[1:], b'{"kind":"resu']))
    faults = []
    (only,) = calls(path, on_fault=faults.append)
    assert only.outcome == "done"
    assert [each.number for each in faults] == [*range(2, 10), 12]
    assert "cut off in its middle" in faults[-1].text
    assert all(each.text for each in faults)


def test_a_line_without_end_is_not_taken_into_memory(path, monkeypatch):
    call(trace := Trace(path))
    trace.close()
    good = path.read_bytes()
    monkeypatch.setattr(reading, "LONGEST", 5000)
    path.write_bytes(good + b'{"kind":"result","x":"' + b"y" * 20_000 + b'"}\n' + good)
    faults = []
    assert len(list(calls(path, on_fault=faults.append))) == 2
    assert [(each.number, "longer than" in each.text) for each in faults] == [(4, True)]


@given(
    st.lists(
        st.binary(max_size=40)
        | st.sampled_from([b'{"kind":"result","call":"a"}', b'{"kind":"tool_use","call":"a"}'])
    )
)
def test_no_bytes_make_reading_fail(tmp_path_factory, pieces):
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    path.write_bytes(b"\n".join(pieces))
    faults = []
    for each in calls(path, on_fault=faults.append):
        assert each.outcome
        assert each.name
        whole(each)
    stretches(calls(path))


def test_there_is_no_trace(path):
    with pytest.raises(UsageError, match=r"there is no trace at .*trace\.jsonl"):
        list(calls(path))


# What was too long ---------------------------------------------------------------------------------------


def test_long_values_are_in_their_places_again(path):
    text = "서울 " * 30_000
    call(Trace(path), text=text, arguments={"order_id": "A", "note": text})
    (each,) = calls(path)
    assert len(each.result.raw) < 3000
    assert each.result.full()["block"]["content"][0]["text"] == text
    assert each.use.full()["block"]["input"]["note"] == text
    assert each.result.value()["block"]["content"][0]["text"].endswith("…")
    assert "large" not in each.result.full()


def test_many_small_values_go_beside_as_a_whole(path):
    many = {f"name{number}": number for number in range(2000)}
    call(Trace(path, limits=Limits(line=8192)), arguments=many)
    (each,) = calls(path)
    assert max(len(line.raw) for line in each.lines) < 9000
    assert each.use.full()["block"]["input"] == many
    assert each.name == "mcp__orders__lookup_order"
    assert each.sent.full()["request"]["params"]["arguments"] == many


def test_a_line_keeps_to_its_limit_whatever_it_is_made_of(path):
    wide = {f"name{number}": number for number in range(2000)}
    trace = Trace(path, limits=Limits(line=8192))
    entry = trace.begin()
    entry.tool_use({"id": "toolu_1", "name": "n", **wide}, name=None, faults=(), decision=None)
    entry.result({"tool_use_id": "toolu_1", "content": ["y" * 600] * 100, **wide}, by="host")
    (each,) = calls(path)
    assert max(len(line.raw) for line in each.lines) < 9000
    assert (each.name, each.tool_use_id) == ("n", "toolu_1")
    assert each.use.full()["block"] == {"id": "toolu_1", "name": "n", **wide}
    assert each.result.full()["block"]["content"] == ["y" * 600] * 100


def test_without_a_file_long_values_are_cut_and_their_hash_stays():
    lines = []
    call(Trace(lines.append), text="x" * 100_000)
    result = json.loads(lines[-1])
    assert len(lines[-1]) < 2000
    (place,) = result["large"]
    assert (place["at"], place["bytes"], place["kept"]) == (["block", "content", 0, "text"], 100_000, False)


def test_a_server_cannot_name_a_file_to_be_read(path, tmp_path):
    (tmp_path / "secret").write_text("hush")
    entry = Trace(path).begin()
    large = [{"at": ["block", "content"], "sha256": "../secret", "form": "text", "kept": True}]
    entry.result({"content": "x", "large": large}, by="server")
    (line,) = reading.lines(path)
    assert line.full()["block"] == {"content": "x", "large": large}
    path.write_bytes(
        line.raw.replace(b'"kind"', b'"large":' + json.dumps(large).encode() + b',"kind"') + b"\n"
    )
    (line,) = reading.lines(path)
    assert line.full()["block"]["content"] == "x"


def test_limits_that_leave_no_room_are_refused():
    with pytest.raises(UsageError, match="value=10: expected 1024 or more"):
        Limits(value=10)


# Time ----------------------------------------------------------------------------------------------------


def test_calls_with_a_long_pause_between_stand_on_lines_of_their_own(path):
    for start in (0, 600):
        trace = Trace(path, now=clock(start))
        call(trace)
        call(trace)
    first, second = stretches(calls(path))
    assert (len(first.calls), len(second.calls)) == (2, 2)
    assert 3000 <= first.ms < 61_000
    bars = first.bars()
    assert bars[0].left == 0
    assert all(0 <= bar.left <= 1 and bar.left + bar.here + bar.there <= 1 + 1e-9 for bar in bars)
    assert all(one.left <= other.left for one, other in pairwise(bars))


def test_calls_of_a_turn_belong_to_it(path):
    trace = Trace(path)
    with trace.turn(1, model="m"):
        call(trace)
    call(trace)
    assert [(part.turn is None, len(part.calls)) for part in stretches(calls(path))] == [
        (False, 1),
        (True, 1),
    ]


# Queries -------------------------------------------------------------------------------------------------

VALUES = [
    {"kind": "tool_use", "ms": 3, "a": {"b": [1, 2]}},
    {"kind": "result", "ms": 30, "a": None},
    [1, {"ms": 4}],
    "text",
    {"kind": "result", "ms": 1, "$": "it's"},
]
QUERIES = [
    *(
        "$",
        "$[*]",
        "$[*].kind",
        "$[?@.ms > 2].kind",
        "$[0]",
        "$[1].ms",
        "$[9]",
        "$[1:3]",
        "$[::2]",
        "$[3:]",
        "$[:2]",
    ),
    *(
        "$[-1]",
        "$[-2:]",
        "$[::-1]",
        "$[0,2]",
        "$[?@.ms > $[0].ms]",
        "$..ms",
        "$..*",
        "$..[0]",
        "$..a..b",
        "$.kind",
    ),
    *(
        "$[?@['$'] == 'it\\'s'].ms",
        "$[?@.kind == '$']",
        "$[?count(@.*) > 1]",
        "$[1:9:2].ms",
        "$[?match(@.kind, 're.*')].ms",
    ),
    *("$[2][1].ms", "$[*][*]", "$['kind']", "$[2:2]", "$[::0]"),
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_answered_value_by_value_finds_what_it_finds_in_the_whole(query):
    expected = [(node.path(), node.value) for node in rfc(query, VALUES)]
    assert [(normal(place), value) for place, value in ask(query, iter(VALUES))] == expected


def test_a_filter_takes_one_value_at_a_time():
    def endless():
        while True:
            yield {"ms": 1}

    nodes = ask("$[?@.ms == 1].ms", endless())
    assert [next(nodes) for _ in range(3)] == [((0, "ms"), 1), ((1, "ms"), 1), ((2, "ms"), 1)]
    assert list(ask("$[2].ms", endless())) == [((2, "ms"), 1)]


def test_a_query_that_is_none_is_told_with_its_place():
    with pytest.raises(UsageError, match=r"is no JSONPath query \(RFC 9535\): .* column"):
        list(ask("$[?", []))


# Live ----------------------------------------------------------------------------------------------------


def test_following_goes_on_through_rotation_and_waits_for_a_file(path):
    written: list[str] = []
    trace: list[Trace] = []

    def wait() -> bool:
        if not trace:
            trace.append(Trace(path, limits=Limits(size=3000)))
        elif len(written) == 12:
            return False
        written.extend(call(trace[0]) for _ in range(3))
        return True

    seen = [line.facts.call for line in Follower(path, wait=wait).lines()]
    assert seen == [each for each in written for _ in range(3)]
    assert len(list(path.parent.glob("trace.jsonl.0*"))) > 1


def test_following_begins_behind_what_is_there(path):
    trace = Trace(path)
    call(trace)
    later: list[str] = []

    def wait() -> bool:
        if later:
            return False
        later.append(call(trace))
        return True

    assert {line.facts.call for line in Follower(path, wait=wait).lines()} == set(later)


def test_following_takes_up_a_line_when_its_end_comes(path):
    path.write_bytes(b'{"kind":"result","call":"a"}\n{"kind":"resu')
    rest = [b'lt","call":"b"}', b"\n"]

    def wait() -> bool:
        if not rest:
            return False
        with path.open("ab") as file:
            file.write(rest.pop(0))
        return True

    assert [line.facts.call for line in Follower(path, wait=wait).lines()] == ["b"]


def test_following_a_file_that_is_begun_anew(path):
    path.write_bytes(b'{"kind":"result","call":"a"}\n' * 3)
    steps = [b'{"kind":"result","call":"b"}\n']

    def wait() -> bool:
        if not steps:
            return False
        path.write_bytes(steps.pop())
        return True

    assert [line.facts.call for line in Follower(path, wait=wait).lines()] == ["b"]
