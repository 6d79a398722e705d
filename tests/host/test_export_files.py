"""Writing a configuration file: whole or not at all, over nothing that somebody else wrote meanwhile."""

from __future__ import annotations

import pytest

from dragoman.errors import UsageError
from dragoman.host.export.files import Journal


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "state")


def test_a_file_that_changed_since_it_was_read_is_not_overwritten(tmp_path, journal):
    path = tmp_path / "a.json"
    path.write_text("theirs")
    with pytest.raises(UsageError, match="changed in the meantime"):
        journal.write(path, "mine", seen=b"old")
    with pytest.raises(UsageError, match="changed in the meantime"):
        journal.write(path, "mine", seen=None)
    assert path.read_text() == "theirs"
    assert journal.changes() == []


def test_nothing_is_left_beside_the_file(tmp_path, journal):
    path = tmp_path / "sub/a.json"
    journal.write(path, "mine", seen=None)
    assert [item.name for item in path.parent.iterdir()] == ["a.json"]


def test_a_copy_that_is_gone_or_changed_is_not_put_back(tmp_path, journal):
    path = tmp_path / "a.json"
    path.write_text("old")
    change = journal.write(path, "new", seen=b"old")
    copy = journal.folder / change.copy
    copy.write_text("bad")
    with pytest.raises(UsageError, match="not what was kept"):
        journal.undo(path)
    copy.unlink()
    with pytest.raises(UsageError, match="the copy cannot be read"):
        journal.undo(path)
    assert path.read_text() == "new"


def test_what_could_not_be_written_is_nothing_to_undo(tmp_path, journal):
    first, second = tmp_path / "a.json", tmp_path / ("b" * 250)
    journal.write(first, "new", seen=None)
    second.write_text("old")
    with pytest.raises(OSError, match="too long"):  # for the file that would have taken its place
        journal.write(second, "new", seen=b"old")
    assert second.read_text() == "old"
    assert journal.undo().file == str(first)


def test_a_copy_goes_when_it_is_put_back(tmp_path, journal):
    path = tmp_path / "a.json"
    path.write_text("old secret")
    journal.write(path, "new", seen=b"old secret")
    journal.undo()
    assert [item.name for item in journal.folder.iterdir()] == ["journal.jsonl"]


def test_a_line_of_the_journal_that_is_torn_costs_no_other(tmp_path, journal):
    path = tmp_path / "a.json"
    journal.write(path, "new", seen=None)
    with (journal.folder / "journal.jsonl").open("a") as file:
        file.write('{"id": "x", "at"\n')
    assert [change.file for change in journal.changes()] == [str(path)]


def test_bytes_come_back_as_they_were(tmp_path, journal):
    path = tmp_path / "a.json"
    old = b"\xef\xbb\xbf{}\r\n"
    path.write_bytes(old)
    journal.write(path, "new", seen=old)
    journal.undo()
    assert path.read_bytes() == old
