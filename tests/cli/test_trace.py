"""`dragoman trace` as a person runs it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dragoman.host.trace import Limits, Trace
from tests.cli.shell import dragoman
from tests.host.traced import DENY, call, clock, fault

HOSTILE = (
    "\x1b[2J\x1b]0;title\x07 \u202egnp.exe <script>alert(1)</script> <img src=x onerror=alert(1)> & \" '"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    trace = Trace(tmp_path / "trace.jsonl", now=clock())
    call(trace)
    call(trace, text="no such order", is_error=True, arguments={"order_id": "Z-9999"})
    call(trace, tool="refund_order", rule=DENY, text="Not permitted")
    call(trace, server="stock", faults=[fault()], text="Invalid arguments")
    call(trace, text=HOSTILE, arguments={"order_id": HOSTILE})
    trace.close()
    return tmp_path


def ids(place: Path) -> list[str]:
    lines = [json.loads(line) for line in (place / "trace.jsonl").read_text().splitlines()]
    return [line["call"] for line in lines if line["kind"] == "tool_use"]


# show ----------------------------------------------------------------------------------------------------


def test_show_is_a_tree_with_who_decided_and_what_came_back(place):
    done = dragoman("trace", "show", "trace.jsonl", cwd=place)
    assert done.status == 0
    assert done.err == ""
    text = done.out
    assert "orders/refund_order" in text
    assert "decided   deny by mcp__orders__* (.claude/settings.json:7)" in text
    assert "sent      nothing" in text
    assert "schema    order_id: expected a text; received 7" in text
    assert "answered  by server: no such order" in text
    assert re.search(r"└─ .* done ", text)
    assert text.count("├─") == 4


def test_what_servers_say_does_not_steer_a_terminal(place):
    for words in (["show", "--full"], ["show"], ["diff"]):
        more = ["lookup_order"] if words == ["diff"] else []
        done = dragoman("trace", words[0], "trace.jsonl", *words[1:], *more, cwd=place)
        assert "\\x1b[2J" in done.out or "\\u001b" in done.out
        assert not set(done.out) & set("\x1b\x07\u202e")


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["--denied"], [2]),
        (["--errors"], [1, 3]),
        (["--server", "stock"], [3]),
        (["--tool", "refund_*"], [2]),
        (["--last", "2"], [3, 4]),
        (["--all"], [0, 1, 2, 3, 4]),
        (["--since", "2026-11-30T08:00:07Z"], [3, 4]),
        (["--since", "2199-01-01"], []),
    ],
)
def test_show_takes_filters(place, words, numbers):
    done = dragoman("trace", "show", "trace.jsonl", *words, "--json", cwd=place)
    assert done.status == 0
    assert [each["call"] for each in done.value["result"]["calls"]] == [
        ids(place)[number] for number in numbers
    ]


def test_show_one_call_whole(place):
    name = ids(place)[1]
    done = dragoman("trace", "show", "trace.jsonl", "--call", name, "--full", "--json", cwd=place)
    (only,) = done.value["result"]["calls"]
    assert only["outcome"] == "error"
    assert only["tools/call"]["request"]["params"]["arguments"] == {"order_id": "Z-9999"}
    assert only["result"]["block"]["content"][0]["text"] == "no such order"


def test_more_calls_than_are_shown_are_told_of(place):
    done = dragoman("trace", "show", "trace.jsonl", "--last", "2", cwd=place)
    assert done.err == "the newest 2; --last N shows more, --all everything\n"
    assert dragoman("trace", "show", "trace.jsonl", "--server", "x", cwd=place).err == "no call fits\n"
    (place / "empty.jsonl").write_text("")
    none = dragoman("trace", "show", "empty.jsonl", cwd=place)
    assert none.err == "no call is written down in empty.jsonl\n"


def test_corrupt_lines_are_told_with_their_number_and_skipped(place):
    with (place / "trace.jsonl").open("ab") as file:
        file.write(b'\xff\x1b[2J{"kind\n{"kind":"result"')
    done = dragoman("trace", "show", "trace.jsonl", cwd=place)
    assert done.status == 0
    assert "left out: trace.jsonl:14: no line of a trace: " in done.err
    assert "left out: trace.jsonl:15: cut off in its middle" in done.err
    assert "\x1b" not in done.err
    shown = dragoman("trace", "show", "trace.jsonl", "--json", cwd=place).value["result"]
    assert [each["line"] for each in shown["unreadable"]] == [14, 15]


def test_trace_alone_shows_the_usual_place(place):
    env = {**os.environ, "DRAGOMAN_TRACE": str(place / "trace.jsonl")}
    done = dragoman("trace", cwd=place, env=env)
    assert "orders/refund_order" in done.out


def test_no_trace_and_wrong_words_are_usage_errors(place):
    done = dragoman("trace", "show", "none.jsonl", "--json", cwd=place)
    assert (done.status, done.value["error"]["kind"]) == (2, "usage")
    assert "there is no trace at none.jsonl" in done.err
    for words in (
        ["show", "--since", "soon"],
        ["query", "a"],
        ["query", "$", "a", "b"],
        ["export", "x"],
        ["diff"],
    ):
        assert dragoman("trace", *words, cwd=place).status == 2
    done = dragoman("trace", "verify", "trace.jsonl", "--head", "7:x", cwd=place)
    assert (done.status, "expected NUMBER:HASH, received '7:x'" in done.err) == (2, True)


@pytest.mark.parametrize("name", [".", "x" * 5000, "trace.jsonl/x"])
@pytest.mark.parametrize("words", [["show"], ["verify"], ["query", "$"], ["diff", "lookup_order", "other"]])
def test_what_is_no_file_is_told(place, name, words):
    done = dragoman("trace", words[0], name, *words[1:], cwd=place)
    assert done.status == 2
    assert done.err.startswith("dragoman: ")
    assert "Traceback" not in done.err


def test_a_folder_cannot_be_followed(place):
    done = dragoman("trace", "follow", ".", cwd=place)
    assert (done.status, done.err.startswith("dragoman: ")) == (2, True)


def test_every_verb_has_help(place):
    for verb in ("show", "follow", "query", "diff", "verify", "export"):
        done = dragoman("trace", verb, "--help", cwd=place)
        assert (done.status, f"usage: dragoman trace {verb}" in done.out) == (0, True)
        assert f"  dragoman trace {verb}" in dragoman("trace", "--help", cwd=place).out


def test_a_terminal_gets_colours_and_one_line_a_value(place):
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "dragoman", "trace", "show", "trace.jsonl"]
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    running = subprocess.Popen(command, cwd=place, stdout=child, stderr=child, env=env)
    os.close(child)
    seen = b""
    try:
        while data := os.read(parent, 65536):
            seen += data
    except OSError:  # the other end is closed
        pass
    os.close(parent)
    assert running.wait() == 0
    text = seen.decode()
    assert "\x1b[31mdenied" in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 80


# query, diff, verify -------------------------------------------------------------------------------------


def test_query_prints_nodes_and_their_places(place):
    query = "$[?@.decision.effect == 'deny'].block.name"
    assert dragoman("trace", "query", "trace.jsonl", query, cwd=place).out == '"mcp__orders__refund_order"\n'
    done = dragoman("trace", "query", query, "trace.jsonl", "--paths", cwd=place)
    assert done.out == "$[6]['block']['name']\t\"mcp__orders__refund_order\"\n"
    done = dragoman("trace", "query", "trace.jsonl", query, "--json", cwd=place)
    assert done.value["result"]["nodes"] == [
        {"path": "$[6]['block']['name']", "value": "mcp__orders__refund_order"}
    ]


def test_query_over_calls(place):
    query = "$[?@.tool_use.server == 'orders' && @.result.is_error == true].call"
    done = dragoman("trace", "query", "trace.jsonl", query, "--calls", cwd=place)
    assert done.out.splitlines() == [f'"{ids(place)[1]}"', f'"{ids(place)[2]}"']


def test_a_query_that_is_none_says_where(place):
    done = dragoman("trace", "query", "trace.jsonl", "$[?@.a =]", cwd=place)
    assert done.status == 2
    assert "is no JSONPath query (RFC 9535)" in done.err


def test_diff_says_why_what_passed_does_not_any_more(place):
    trace = Trace(place / "trace.jsonl", now=clock(86_400 // 24))
    call(trace, rule=DENY, text="Not permitted")
    done = dragoman("trace", "diff", "trace.jsonl", "mcp__orders__lookup_order", cwd=place)
    assert done.status == 1
    first, *rest = done.out.splitlines()
    assert "passed at" in first
    assert "was denied at" in first
    assert "because of the rule mcp__orders__* (.claude/settings.json:7)" in first
    assert any(line.startswith("  permission allow by") for line in rest)
    value = dragoman("trace", "diff", "trace.jsonl", "lookup_order", "--json", cwd=place).value["result"]
    assert set(value["differ"]) == {"permission", "argument", "result"}


def test_diff_of_the_same_is_nothing(place):
    name = ids(place)[0]
    done = dragoman("trace", "diff", "trace.jsonl", name, name, cwd=place)
    assert (done.status, "nothing differs" in done.out) == (0, True)


def test_verify_says_yes_or_where_it_is_wrong(place):
    done = dragoman("trace", "verify", "trace.jsonl", cwd=place)
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0] == "13 lines in 1 file: as written"
    noted = lines[1].split()[-1]
    assert dragoman("trace", "verify", "trace.jsonl", "--head", noted, cwd=place).status == 0
    path = place / "trace.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Z-9999", b"Z-9998", 1))
    done = dragoman("trace", "verify", "trace.jsonl", cwd=place)
    assert done.status == 1
    assert done.out.splitlines()[0] == (
        "WRONG  trace.jsonl:4: the line does not fit its hash: it was changed"
    )
    value = dragoman("trace", "verify", "trace.jsonl", "--json", cwd=place).value
    assert (value["ok"], value["error"]["findings"][0]["line"]) == (False, 4)


def test_verify_takes_the_key_from_the_environment(tmp_path):
    call(Trace(tmp_path / "t.jsonl", key=b"k1"))
    env = {**os.environ, "TRACE_KEY": "k1", "OTHER": "k2"}
    status = [
        dragoman("trace", "verify", "t.jsonl", "--key-env", name, cwd=tmp_path, env=env).status
        for name in ("TRACE_KEY", "OTHER", "NONE")
    ]
    assert status == [0, 1, 2]


# export --------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Tags and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_the_page_loads_nothing_runs_nothing_and_shows_hostile_texts_as_text(place):
    done = dragoman(
        "trace", "export", "trace.jsonl", "--to", "html", "-o", "t.html", "--title", HOSTILE, cwd=place
    )
    assert done.status == 0
    assert (place / "t.html").stat().st_mode & 0o777 == 0o600
    text = (place / "t.html").read_text(encoding="utf-8")
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "form", "base"}
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    targets = [value for _, attrs in page.tags for name, value in attrs.items() if name in ("href", "src")]
    assert targets
    assert all(value.startswith("#c") for value in targets)
    assert "default-src 'none'" in next(a["content"] for t, a in page.tags if "http-equiv" in a)
    assert "url(" not in text
    assert "@import" not in text
    assert "&lt;script&gt;" in text
    assert not set(text) & set("\x1b\x07\u202e")


def test_the_picture_is_whole_and_has_a_bar_for_each_call(place):
    text = dragoman("trace", "export", "trace.jsonl", "--to", "html", cwd=place).out
    pictures = [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    rows = [row for picture in pictures for row in picture.findall("a")]
    assert len(rows) == 5
    for row in rows:
        for bar in row.findall("rect"):
            assert 0 <= float(bar.get("x")) <= float(bar.get("x")) + float(bar.get("width")) <= 1260 + 2
    assert [len(row.findall("rect")) for row in rows] == [2, 2, 1, 1, 2]
    assert {row.get("href") for row in rows} == {f"#c{number}" for number in range(5)}


def test_spans_for_a_collector(place):
    done = dragoman("trace", "export", "trace.jsonl", "--to", "otel", "--denied", cwd=place)
    assert done.status == 0
    (line,) = done.out.splitlines()
    (span,) = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert span["name"] == "execute_tool refund_order"
    done = dragoman("trace", "export", "trace.jsonl", "--to", "otel", "-o", "s.jsonl", "--json", cwd=place)
    assert done.value["result"]["bytes"] == (place / "s.jsonl").stat().st_size


def test_a_file_that_cannot_be_written_leaves_nothing(place):
    done = dragoman("trace", "export", "trace.jsonl", "--to", "html", "-o", "none/t.html", cwd=place)
    assert (done.status, "none/t.html cannot be written" in done.err) == (2, True)
    assert sorted(each.name for each in place.iterdir() if each.name.startswith(".")) == []


MEASURE = """
import sys
from dragoman.cli.main import main
main(sys.argv[1:])
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) // 1024, file=sys.stderr)
"""


def test_a_trace_is_not_taken_into_memory(tmp_path):
    lines: list[bytes] = []
    trace = Trace(lines.append, redact=lambda name, value: value)
    for _ in range(40):
        call(trace, text="x" * 50_000)
    (tmp_path / "trace.jsonl").write_bytes(b"".join(lines) * 50)  # a hundred megabytes
    for words in (["show", "--denied"], ["verify"], ["query", "$[?@.ms < 0]"], ["export", "--to", "otel"]):
        verb, *more = words
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, "trace", verb, "trace.jsonl", *more],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
        assert int(done.stderr.splitlines()[-1]) < 100, words


# follow --------------------------------------------------------------------------------------------------


@contextmanager
def follow(place: Path, *words: str):
    """The command while it runs; it ends as a person ends it."""
    command = [sys.executable, "-m", "dragoman", "trace", "follow", "trace.jsonl", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=place, stdout=pipe, stderr=pipe, text=True) as running:
        try:
            yield running
            running.send_signal(signal.SIGINT)
            assert running.wait(30) == 130
        finally:
            running.kill()


def test_follow_shows_calls_as_they_happen(tmp_path):
    with follow(tmp_path) as running:
        assert running.stderr.readline() == "waiting for trace.jsonl\n"
        trace = Trace(tmp_path / "trace.jsonl", limits=Limits(size=3000))
        made = [call(trace, text=f"number {number}") for number in range(8)]
        seen: list[str] = []
        while len(seen) < 8:
            line = running.stdout.readline()
            seen += [line] if "answered" in line else []
    assert [name in line for name, line in zip(made, seen, strict=True)] == [True] * 8
    assert "answered by server: number 7 (done, " in seen[-1]


def test_follow_with_a_filter_shows_the_whole_call(place):
    with follow(place, "--denied", "--last", "1") as running:
        first = [running.stdout.readline() for _ in range(5)]
        trace = Trace(place / "trace.jsonl")
        call(trace)
        call(trace, tool="cancel_order", rule=DENY)
        more = [running.stdout.readline() for _ in range(5)]
    assert "orders/refund_order" in "".join(first)
    assert "lookup_order" not in "".join(more)
    assert "orders/cancel_order" in "".join([first[-1], *more])


def test_follow_prints_lines_as_they_are(place):
    with follow(place, "--json", "--last", "1") as running:
        lines = [json.loads(running.stdout.readline()) for _ in range(3)]
    assert [line["kind"] for line in lines] == ["tool_use", "tools/call", "result"]
