"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dragoman.host.atomic import PRIVATE, create, replacing


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_takes_the_place_of_another_when_it_is_whole(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with replacing(path, mode=PRIVATE) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_what_goes_wrong_in_the_middle_changes_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), replacing(path, mode=None) as file:
        file.write(b"ne")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("wanted", "umask", "got"), [(None, 0o027, 0o640), (0o664, 0o077, 0o664), (PRIVATE, 0, 0o600)]
)
def test_permissions_are_those_that_were_asked_for_or_what_the_umask_leaves(tmp_path, wanted, umask, got):
    before = os.umask(umask)
    try:
        with replacing(tmp_path / "a", mode=wanted, durable=False) as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == got


def test_nothing_is_written_through_a_link(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    link = tmp_path / "link"
    link.symlink_to(theirs)
    with pytest.raises(FileExistsError):
        create(link)
    with replacing(link, mode=PRIVATE) as file:
        file.write(b"mine")
    assert theirs.read_bytes() == b"theirs"
    assert not link.is_symlink()
