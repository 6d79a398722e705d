"""Traces that came from elsewhere: lines, heads and values of anybody's making are read, and do nothing."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.host import Trace
from dragoman.host.trace.calls import Wanted, calls, newest, since, whole
from dragoman.host.trace.otel import documents
from dragoman.host.trace.timeline import stretches
from dragoman.host.trace.verifying import verify
from tests.host.traced import call

ANY = Wanted()


@pytest.mark.parametrize("ms", [1e308, -1e308, 10**40, 0])
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "never", ""])
def test_times_that_are_none_are_read_as_well_as_it_goes(tmp_path: Path, at: str, ms: float) -> None:
    path = tmp_path / "trace.jsonl"
    kinds = ("tool_use", "tools/call", "result")
    path.write_text(
        "".join(json.dumps({"kind": kind, "call": "c", "at": at, "ms": ms}) + "\n" for kind in kinds)
    )
    (found,) = calls(path)
    assert found.begun is None or found.begun.tzinfo is not None
    assert len(stretches([found])) == 1
    list(documents([found], content=True))
    assert newest(path, ANY, last=5).calls[0].id == "c"


def test_longer_ago_than_there_are_times_is_no_time() -> None:
    with pytest.raises(UsageError, match="is no time"):
        since("999999999w", now=datetime.now(UTC))


@pytest.mark.parametrize("how", ["another file", "a link", "a pipe"])
def test_what_bears_the_name_of_a_long_value_and_is_none_is_not_shown(tmp_path: Path, how: str) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path)
    call(trace, text="long " * 20_000)
    trace.close()
    (kept,) = [file for file in (tmp_path / "trace.jsonl.spill").iterdir() if file.stat().st_size > 50_000]
    assert "long long" in json.dumps(whole(next(calls(path))))
    secret = tmp_path / "secret"
    secret.write_text("of the person who looks")
    kept.unlink()
    if how == "another file":
        kept.write_text(secret.read_text())
    elif how == "a link":
        kept.symlink_to(secret)
    else:
        os.mkfifo(kept)
    shown = json.dumps(whole(next(calls(path))))
    assert "of the person" not in shown
    assert kept.name == sha256(("long " * 20_000).encode()).hexdigest()


@pytest.mark.parametrize(
    "head",
    [
        {"seq": -1},
        {"seq": 10**18},
        {"size": -5},
        {"hash": "x"},
        {"file": -1},
        {"first_seq": 10**30},
        [],
        "x" * 10_000,
    ],
)
def test_a_head_that_none_ever_has_is_none(tmp_path: Path, head: object) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path)
    call(trace)
    trace.close()
    (tmp_path / "trace.jsonl.head").write_text(json.dumps(head))
    assert verify(path).ok  # without a head, only the end is not known
    trace = Trace(path)
    call(trace)
    trace.close()
    report = verify(path)
    assert report.ok
    assert [finding.kind for finding in report.findings] == ["mended"]
