"""The chain: what was done to a trace is found, and told apart from what a crash leaves."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import LocalError, UsageError
from dragoman.host.trace import Limits, Trace, verifying
from dragoman.host.trace.calls import calls
from dragoman.host.trace.family import files
from dragoman.host.trace.verifying import verify
from tests.host.traced import ALLOW, DENY, call, clock


def written(path: Path, calls: int = 3, **options) -> list[bytes]:
    trace = Trace(path, now=clock(), **options)
    for number in range(calls):
        call(trace, text=f"{number} found " * 200 if "limits" in options else "found")
    trace.close()
    return path.read_bytes().splitlines(keepends=True)


def wrong(path: Path, **options) -> list[tuple[str, int]]:
    return [(found.kind, found.number) for found in verify(path, **options).findings if found.wrong]


def notes(path: Path) -> list[tuple[str, int]]:
    return [(found.kind, found.number) for found in verify(path).findings if not found.wrong]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


# The form, which others can check ------------------------------------------------------------------------


def test_the_hash_is_sha256_of_the_line_up_to_its_own_member(path):
    before = "0" * 64
    for number, line in enumerate(written(path), 1):
        text, _, rest = line.rpartition(b',"hash":"')
        assert hashlib.sha256(text).hexdigest() == rest[:64].decode()
        value = json.loads(line)
        assert (value["seq"], value["prev"]) == (number, before)
        before = value["hash"]


def test_lines_to_a_function_are_a_chain_too(path):
    got: list[bytes] = []
    trace = Trace(got.append)
    call(trace)
    call(trace)
    path.write_bytes(b"".join(got))
    report = verify(path)
    assert report.ok
    assert (report.lines, report.seq) == (6, 6)


def test_only_the_owner_can_read_what_is_written(path):
    written(path, limits=Limits(value=1024))
    modes = {found.name: found.stat().st_mode & 0o777 for found in path.parent.rglob("*")}
    assert modes.pop("trace.jsonl.spill") == 0o700
    assert len(modes) > 3
    assert set(modes.values()) == {0o600}


# What is found -------------------------------------------------------------------------------------------


def test_an_untouched_trace_is_whole(path):
    written(path)
    report = verify(path)
    assert report.ok
    assert report.findings == []
    assert (report.files, report.lines, report.seq) == (1, 9, 9)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda lines: lines[:3] + lines[4:], [("missing", 4)]),
        (lambda lines: lines[2:], [("missing", 1)]),
        (lambda lines: lines[:-1], [("missing", 0)]),
        (lambda lines: lines[:-4], [("missing", 0)]),
        (lambda lines: [], [("missing", 0)]),
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], [("moved", 4)]),
        (lambda lines: [*lines[:4], lines[1], *lines[4:]], [("repeated", 5)]),
        (lambda lines: [*lines[:4], b'{"kind":"result"}\n', *lines[4:]], [("foreign", 5)]),
        (lambda lines: [*lines[:4], b"\n", *lines[4:]], [("foreign", 5)]),
        (lambda lines: [*lines, b"{}\n"], [("foreign", 10)]),
        (
            lambda lines: [*lines[:4], lines[4].replace(b"2026-07-28", b"2025-11-25"), *lines[5:]],
            [("changed", 5)],
        ),
        (
            lambda lines: [*lines[:4], lines[4][:-1].replace(b"}", b"} ", 1) + b"\n", *lines[5:]],
            [("changed", 5)],
        ),
        (lambda lines: [*lines[:-1], lines[-1][:-20]], [("missing", 0), ("foreign", 9)]),
    ],
    ids=[
        *("deleted", "head cut", "tail cut", "tail cut far", "emptied", "swapped", "repeated", "put in"),
        *("blank line", "appended", "changed", "space put in", "last line cut"),
    ],
)
def test_what_was_done_to_the_file_is_found_with_its_line(path, change, found):
    lines = written(path)
    path.write_bytes(b"".join(change(lines)))
    assert wrong(path) == found


def test_a_line_with_a_hash_of_its_own_does_not_fit_the_next(path):
    lines = written(path)
    text = lines[4].rpartition(b',"hash":"')[0].replace(b"2026-07-28", b"2025-11-25")
    lines[4] = text + b',"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'"}\n'
    path.write_bytes(b"".join(lines))
    assert wrong(path) == [("replaced", 6)]


def test_a_last_line_with_a_hash_of_its_own_does_not_fit_the_head(path):
    lines = written(path)
    text = lines[-1].rpartition(b',"hash":"')[0].replace(b"found", b"stole")
    lines[-1] = text + b',"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'"}\n'
    path.write_bytes(b"".join(lines))
    assert wrong(path) == [("replaced", 0)]


def test_with_a_key_nobody_else_can_make_a_line(path):
    lines = written(path, key=b"k" * 32)
    assert verify(path, key=b"k" * 32).ok
    assert not verify(path, key=b"other").ok
    text = lines[-1].rpartition(b',"hash":"')[0]
    lines[-1] = text + b',"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'"}\n'
    path.write_bytes(b"".join(lines))
    assert ("changed", 9) in wrong(path, key=b"k" * 32)


def test_a_keyed_trace_that_is_checked_without_it_says_what_may_be(path):
    written(path, key=b"k")
    assert "written with a key" in verify(path).findings[0].text


def test_a_line_that_was_noted_elsewhere_holds_a_trace_that_was_written_anew(path):
    lines = written(path)
    noted = (6, json.loads(lines[5])["hash"])
    assert verify(path, anchor=noted).ok
    path.unlink()
    path.with_name("trace.jsonl.head").unlink()
    written(path)
    assert verify(path).ok
    assert wrong(path, anchor=noted) == [("anchor", 6)]
    assert wrong(path, anchor=(99, noted[1])) == [("anchor", 0)]


def test_a_copy_without_its_head_says_what_cannot_be_seen(path, tmp_path):
    lines = written(path)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(b"".join(lines[:-1]))
    assert verify(copy).ok
    assert {kind for kind, _ in notes(copy)} == {"head", "beside"}


def test_long_values_beside_are_held_too(path):
    written(path, calls=1, limits=Limits(value=1024))
    kept = sorted(path.with_name("trace.jsonl.spill").iterdir())
    assert verify(path).ok
    kept[0].write_bytes(b"other")
    assert [kind for kind, _ in wrong(path)] == ["beside"]
    kept[0].unlink()
    assert [kind for kind, _ in wrong(path)] == ["beside"]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_byte_can_be_changed_unseen(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    whole = b"".join(written(path, calls=1))
    place = data.draw(st.integers(0, 1 << 16)) % len(whole)
    byte = whole[place] ^ data.draw(st.integers(1, 255))
    path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
    assert not verify(path).ok


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_lines_can_be_taken_out_put_in_or_moved_unseen(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    lines = written(path)
    picked = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=12))
    changed = [lines[number] for number in picked]
    path.write_bytes(b"".join(changed))
    assert verify(path).ok is (changed == lines)


# What a crash leaves -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 20, 150])
def test_a_line_that_was_cut_off_in_writing_is_no_tampering(path, cut):
    lines = written(path)
    head = path.with_name("trace.jsonl.head").read_bytes()
    call(trace := Trace(path))
    trace.close()
    more = path.read_bytes().splitlines(keepends=True)[9]
    # As the kernel leaves it when the writer is killed in the middle of the write.
    path.write_bytes(b"".join(lines) + more[:cut])
    path.with_name("trace.jsonl.head").write_bytes(head)
    assert wrong(path) == []
    assert notes(path) == [("torn", 10)]
    call(trace := Trace(path))
    trace.close()
    report = verify(path)
    assert report.ok
    assert [(found.kind, found.number) for found in report.findings] == [("torn", 10)]
    assert report.lines == 9 + 1 + 1 + 3


def test_a_torn_line_that_was_changed_afterwards_is_tampering(path):
    lines = written(path)
    path.write_bytes(b"".join(lines) + b'{"kind":"tool_')
    call(trace := Trace(path))
    trace.close()
    path.write_bytes(path.read_bytes().replace(b'\n{"kind":"tool_\n', b'\n{"kind":"xxxx_\n'))
    assert wrong(path) == [("foreign", 10)]


def test_a_line_that_is_whole_though_its_writer_died_counts(path):
    written(path)
    head = path.with_name("trace.jsonl.head").read_bytes()
    call(trace := Trace(path))
    trace.close()
    path.with_name("trace.jsonl.head").write_bytes(head)
    assert verify(path).ok
    assert notes(path) == [("unfinished", 0)]
    call(trace := Trace(path))
    trace.close()
    report = verify(path)
    assert (report.ok, report.findings, report.seq) == (True, [], 15)


def test_a_lost_head_is_found_again_and_noted(path):
    written(path)
    path.with_name("trace.jsonl.head").unlink()
    call(trace := Trace(path))
    trace.close()
    assert verify(path).ok
    assert notes(path) == [("mended", 10)]


def test_a_tail_that_was_cut_stays_missing_when_writing_goes_on(path):
    lines = written(path)
    path.write_bytes(b"".join(lines[:-2]))
    call(trace := Trace(path))
    trace.close()
    assert wrong(path) == [("missing", 8)]
    assert notes(path) == [("mended", 8)]


def test_a_disk_that_is_full_leaves_no_half_line(path, monkeypatch):
    trace = Trace(path)
    call(trace)
    before = path.read_bytes()
    real = os.write

    def full(file, data):
        if len(data) > 100:
            return real(file, bytes(data)[:50])
        raise OSError(28, "No space left on device")

    entry = trace.begin()
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LocalError, match="No space left on device"):
        entry.tool_use({"id": "x" * 30, "name": "n"}, name=None, faults=(), decision=None)
    monkeypatch.undo()
    assert path.read_bytes() == before
    call(trace)
    assert verify(path).ok


def test_what_happened_already_is_not_undone_because_it_cannot_be_written(path, caplog):
    trace = Trace(path)
    entry = trace.begin()
    trace.close()
    entry.result({"content": []}, by="server")
    assert f"call {entry.call} has no result line" in caplog.text
    with pytest.raises(LocalError, match="is closed"):
        entry.tool_use({"id": "1", "name": "n"}, name=None, faults=(), decision=None)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalError, match=r"trace .*file/trace\.jsonl cannot be written: "):
        Trace(tmp_path / "file" / "trace.jsonl")


# Several writers -----------------------------------------------------------------------------------------

WRITER = """
import sys
from dragoman.host.trace import Limits, Trace, verifying
from dragoman.host.trace.calls import calls
from tests.host.traced import call
trace = Trace(sys.argv[1], limits=Limits(size=int(sys.argv[3]) or None))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    call(trace)
    print(".", flush=True)
"""


def writer(path: Path, calls: int, size: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(calls), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("size", [0, 5000])
def test_several_processes_write_one_chain(path, size):
    started = [writer(path, 40, size) for _ in range(3)]
    for each in started:
        assert each.stdout.readline() == "ready\n"
    for each in started:
        each.stdin.write("\n")
        each.stdin.close()
    for each in started:
        each.stdout.read()
        assert each.wait() == 0
        each.stdout.close()
    report = verify(path)
    assert (report.ok, report.findings, report.seq) == (True, [], 3 * 40 * 3)
    assert (report.files > 1) is bool(size)


def test_a_writer_that_is_killed_leaves_a_trace_that_goes_on(path):
    child = writer(path, 10_000)
    child.stdin.write("\n")
    child.stdin.close()
    for _ in range(20):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    trace = Trace(path)
    call(trace)
    trace.close()
    report = verify(path)
    assert report.ok
    assert report.seq >= 20 * 3


def test_two_traces_in_one_process_share_the_chain(path):
    one, other = Trace(path), Trace(path)
    for _ in range(3):
        call(one)
        call(other)
    assert verify(path).ok


FORKS = """
import os, sys
from dragoman.host.trace import Trace
from tests.host.traced import call
trace = Trace(sys.argv[1])
call(trace)
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        for _ in range(30):
            call(trace)
        os._exit(0)
    children.append(child)
for _ in range(30):
    call(trace)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


def test_forks_of_a_writer_write_one_chain_of_calls_of_their_own(path):
    subprocess.run([sys.executable, "-c", FORKS, str(path)], check=True)
    report = verify(path)
    assert (report.ok, report.findings, report.seq) == (True, [], (1 + 4 * 30) * 3)
    assert len(list(calls(path))) == len({each.id for each in calls(path)}) == 121


# Rotation ------------------------------------------------------------------------------------------------


def test_the_chain_goes_on_in_the_next_file(path):
    written(path, calls=10, limits=Limits(size=3000, value=1024))
    found = files(path)
    assert len(found) > 2
    assert found[-1] == path
    assert all(file.stat().st_size <= 3000 for file in found)
    report = verify(path)
    assert (report.ok, report.findings, report.files, report.seq) == (True, [], len(found), 30)


def test_files_beyond_what_is_kept_go_and_that_is_no_tampering(path):
    written(path, calls=20, limits=Limits(size=3000, keep=2, value=1024))
    assert len(files(path)) == 3
    assert len(list(path.parent.glob("*.spill"))) == 3
    report = verify(path)
    assert report.ok
    assert [found.kind for found in report.findings] == ["older"]
    files(path)[0].unlink()
    assert [kind for kind, _ in wrong(path)] == ["missing"]


def test_what_writers_do_meanwhile_is_no_tampering(path, monkeypatch):
    trace = Trace(path, limits=Limits(size=3000, value=1024, keep=1))
    for number in range(10):
        call(trace, text=f"{number} found " * 200)
    real = verifying.standing

    def then_written(*args):
        found = real(*args)
        for number in range(20):
            call(trace, text=f"{number} more " * 200)
        return found

    monkeypatch.setattr(verifying, "standing", then_written)
    report = verify(path)
    assert (report.ok, report.seq) == (True, 30)


def test_a_writer_that_dies_while_old_files_go_leaves_nothing_wrong(path, monkeypatch):
    written(path, calls=10, limits=Limits(size=3000, value=1024))

    def die(*args, **options):
        raise KeyboardInterrupt

    trace = Trace(path, limits=Limits(size=3000, value=1024, keep=1))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "unlink", die)
        call(trace)
        call(trace)
    assert verify(path).ok
    files(path)[0].unlink()  # as far as it came before it was killed
    report = verify(path)
    assert [finding.kind for finding in report.findings if finding.wrong] == []
    written(path, calls=5, limits=Limits(size=3000, value=1024, keep=1))
    assert len(files(path)) == 2
    assert len(list(path.parent.glob("*.spill"))) == 2
    assert verify(path).ok


def test_a_file_in_the_middle_that_is_gone_is_missed(path):
    written(path, calls=10, limits=Limits(size=3000, value=1024))
    files(path)[1].unlink()
    assert [kind for kind, _ in wrong(path)] == ["missing"]


def test_one_of_the_older_files_can_be_looked_at_alone(path):
    written(path, calls=10, limits=Limits(size=3000, value=1024))
    report = verify(files(path)[1])
    assert report.ok
    assert [found.kind for found in report.findings] == ["older"]


def test_a_file_that_is_old_enough_is_followed_by_another(path):
    written(path, calls=1, limits=Limits(age=0.0))
    assert len(files(path)) == 3


def test_a_crash_between_renaming_and_the_new_head_is_survived(path):
    written(path, calls=4)
    path.rename(path.with_name("trace.jsonl.000001"))
    call(trace := Trace(path))
    trace.close()
    report = verify(path)
    assert (report.ok, report.findings, report.files, report.seq) == (True, [], 2, 15)


def test_no_trace_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="there is no trace at"):
        verify(tmp_path / "none.jsonl")


def test_rules_that_decided_stand_with_their_place(path):
    call(trace := Trace(path), rule=DENY)
    call(trace, rule=ALLOW)
    decisions = [json.loads(line).get("decision") for line in path.read_text().splitlines()]
    assert [each["origin"] for each in decisions if each] == [
        ".claude/settings.json:7",
        ".claude/settings.json:3",
    ]
