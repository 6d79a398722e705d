"""Folders that are looked through for skills: what is one, what is not served, and what is read again."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.extensions.skills import folders
from dragoman.extensions.skills.folders import Root, Snapshot, look

NEVER: tuple[str, ...] = ()


def write(place: Path, text: str | bytes = "x") -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


def skill(folder: Path, name: str | None = None, **files: str) -> Path:
    write(
        folder / "SKILL.md",
        f"---\nname: {name or folder.name}\ndescription: About {folder.name}\n---\nDo it.\n",
    )
    for file, text in files.items():
        write(folder / file, text)
    return folder


def seen(
    *places: Path, prefix: str = "", ignore: tuple[str, ...] = (".*",), before: Snapshot | None = None
) -> Snapshot:
    roots = [Root(str(place), prefix) for place in places]
    return look(roots, ignore=ignore, before=before or Snapshot())


def only_fault(snapshot: Snapshot) -> str:
    assert snapshot.skills == {}
    (fault,) = snapshot.faults
    return fault


# What is a skill -----------------------------------------------------------------------------------


def test_a_folder_with_a_manifest_is_a_skill_at_any_depth(tmp_path: Path) -> None:
    skill(tmp_path / "refunds")
    skill(tmp_path / "acme" / "billing" / "dunning")
    write(tmp_path / "README.md")
    write(tmp_path / "notes" / "skill.md")
    found = seen(tmp_path)
    assert found.faults == ()
    assert list(found.skills) == ["acme/billing/dunning", "refunds"]
    assert list(found.files) == ["acme/billing/dunning/SKILL.md", "refunds/SKILL.md"]
    assert found.children == {
        "acme": {"acme/billing"},
        "acme/billing": {"acme/billing/dunning"},
        "acme/billing/dunning": {"acme/billing/dunning/SKILL.md"},
        "refunds": {"refunds/SKILL.md"},
    }


def test_a_folder_that_is_given_may_be_a_skill_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = skill(tmp_path / "refunds")
    assert list(seen(place).skills) == ["refunds"]
    assert list(seen(place, prefix="acme").skills) == ["acme/refunds"]
    monkeypatch.chdir(place)
    assert list(seen(Path()).skills) == ["refunds"]


def test_files_of_a_skill_are_measured(tmp_path: Path) -> None:
    place = skill(tmp_path / "refunds")
    data = bytes(range(256))
    write(place / "assets" / "logo.png", data)
    write(place / "LICENSE", "Anybody may.")
    write(place / "assets" / "blob", data)
    (place / "empty").mkdir()
    found = seen(tmp_path)
    files = {file.path: file for file in found.skills["refunds"].files}
    assert next(iter(files)) == "refunds/SKILL.md"
    logo = files["refunds/assets/logo.png"]
    assert (logo.size, logo.digest) == (256, "sha256:" + hashlib.sha256(data).hexdigest())
    assert {path: file.mime_type for path, file in files.items()} == {
        "refunds/SKILL.md": "text/markdown",
        "refunds/LICENSE": "text/plain",
        "refunds/assets/blob": "application/octet-stream",
        "refunds/assets/logo.png": "image/png",
    }
    assert found.children["refunds/empty"] == frozenset()


def test_names_are_percent_encoded_once(tmp_path: Path) -> None:
    place = skill(tmp_path / "refunds")
    write(place / "a b%20ä?#.md")
    assert seen(tmp_path).skills["refunds"].files[1].uri == "skill://refunds/a%20b%2520%C3%A4%3F%23.md"


def test_a_nested_skill_is_one_of_its_own_and_part_of_the_one_around_it(tmp_path: Path) -> None:
    skill(tmp_path / "outer" / "inner", "inner")
    skill(tmp_path / "outer")
    found = seen(tmp_path)
    assert list(found.skills) == ["outer", "outer/inner"]
    assert [file.path for file in found.skills["outer"].files] == ["outer/SKILL.md", "outer/inner/SKILL.md"]
    assert [file.path for file in found.skills["outer/inner"].files] == ["outer/inner/SKILL.md"]


def test_a_nested_manifest_that_is_none_is_a_file_of_the_skill_around_it(tmp_path: Path) -> None:
    write(skill(tmp_path / "outer") / "inner" / "SKILL.md", "no frontmatter")
    found = seen(tmp_path)
    assert list(found.skills) == ["outer"]
    assert "outer/inner/SKILL.md" in found.files
    assert found.faults == (
        f"{tmp_path}/outer/inner/SKILL.md:1: expected --- on a line of its own, and the frontmatter after it",
    )


def test_what_is_ignored_is_not_there(tmp_path: Path) -> None:
    place = skill(tmp_path / "refunds")
    for name in (".env", ".git/config", "__pycache__/x.pyc", "draft.bak"):
        write(place / name)
    skill(tmp_path / ".hidden")
    found = seen(tmp_path, ignore=(".*", "__pycache__", "*.bak"))
    assert list(found.files) == ["refunds/SKILL.md"]
    assert found.faults == ()


# What is not served, and why -----------------------------------------------------------------------


def test_a_name_has_to_be_that_of_the_folder(tmp_path: Path) -> None:
    skill(tmp_path / "refunds", "returns")
    fault = only_fault(seen(tmp_path))
    assert fault == f"{tmp_path}/refunds/SKILL.md: name: 'returns', in a folder that is called 'refunds'"


def test_a_fault_in_the_frontmatter_names_file_and_line(tmp_path: Path) -> None:
    write(tmp_path / "refunds" / "SKILL.md", "---\nname: refunds\ndescription: When: asked\n---\n")
    assert only_fault(seen(tmp_path)).startswith(f"{tmp_path}/refunds/SKILL.md:3: a colon and a blank")


def test_a_manifest_is_utf8(tmp_path: Path) -> None:
    write(tmp_path / "refunds" / "SKILL.md", b"---\nname: \xff\n---\n")
    assert only_fault(seen(tmp_path)) == f"{tmp_path}/refunds/SKILL.md: byte 11 is not UTF-8"


def test_a_faulty_skill_does_not_take_others_with_it(tmp_path: Path) -> None:
    write(tmp_path / "broken" / "SKILL.md")
    skill(tmp_path / "refunds")
    found = seen(tmp_path)
    assert list(found.skills) == ["refunds"]
    assert len(found.faults) == 1


def out_by_file(folder: Path, outside: Path) -> None:
    (folder / "notes.md").symlink_to(write(outside / "secret"))


def out_by_folder(folder: Path, outside: Path) -> None:
    (folder / "notes").symlink_to(outside)


def out_by_two(folder: Path, outside: Path) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to(write(outside / "secret"))


def out_by_manifest(folder: Path, outside: Path) -> None:
    skill(outside / "refunds")
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to(outside / "refunds" / "SKILL.md")


@pytest.mark.parametrize("way", [out_by_file, out_by_folder, out_by_two, out_by_manifest])
def test_no_link_leads_out(tmp_path: Path, way: Callable[[Path, Path], None]) -> None:
    root, outside = tmp_path / "skills", tmp_path / "outside"
    outside.mkdir()
    way(skill(root / "refunds"), outside)
    found = seen(root)
    assert found.skills == {}
    assert found.files == {}
    assert all("a link that leads out of" in fault for fault in found.faults)


def test_a_linked_folder_of_a_skill_is_told_of(tmp_path: Path) -> None:
    skill(tmp_path / "elsewhere" / "refunds")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "refunds").symlink_to(tmp_path / "elsewhere" / "refunds")
    assert "leads out of" in only_fault(seen(tmp_path / "skills"))


def test_the_folder_that_is_given_may_be_a_link(tmp_path: Path) -> None:
    skill(tmp_path / "v2" / "refunds")
    (tmp_path / "current").symlink_to("v2")
    assert list(seen(tmp_path / "current").skills) == ["refunds"]


def test_a_link_to_a_file_inside_is_that_file(tmp_path: Path) -> None:
    write(tmp_path / "shared" / "style.md", "Short.")
    place = skill(tmp_path / "refunds")
    (place / "style.md").symlink_to("../shared/style.md")
    found = seen(tmp_path)
    assert found.faults == ()
    assert found.files["refunds/style.md"].digest == "sha256:" + hashlib.sha256(b"Short.").hexdigest()


@pytest.mark.parametrize(
    ("target", "why"), [("gone", "nowhere"), ("loop", "nowhere"), ("..", "to a folder"), (".env", "left out")]
)
def test_links_that_are_none_to_a_file(tmp_path: Path, target: str, why: str) -> None:
    place = skill(tmp_path / "refunds")
    write(place / ".env")
    (place / "loop").symlink_to(target)
    assert why in only_fault(seen(tmp_path))


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    place = skill(tmp_path / "refunds")
    os.mkfifo(place / "pipe")
    assert only_fault(seen(tmp_path)) == f"{tmp_path}/refunds/pipe: neither a file nor a folder"


def test_a_socket_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(skill(tmp_path / "refunds"))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s")
        assert "neither a file nor a folder" in only_fault(seen(tmp_path))


@pytest.mark.parametrize("name", [b"a\\b", b"a\nb", b"\xff", "a\u202eb".encode()])
def test_names_that_not_every_system_has(tmp_path: Path, name: bytes) -> None:
    place = skill(tmp_path / "refunds")
    (Path(os.fsdecode(os.fsencode(place) + b"/" + name))).write_bytes(b"")
    fault = only_fault(seen(tmp_path))
    assert "a name that not every system can have" in fault
    assert fault.isascii()
    assert fault.isprintable()


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A test may run as root, who can read everything.
    place = write(skill(tmp_path / "refunds") / "notes.md")
    measure = folders.measure

    def refuse(path: str, place: str) -> object:
        if path.endswith("notes.md"):
            raise PermissionError(13, "Permission denied")
        return measure(path, place)

    monkeypatch.setattr(folders, "measure", refuse)
    assert only_fault(seen(tmp_path)) == f"{place}: cannot be read: Permission denied"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert (
        only_fault(seen(tmp_path / "no"))
        == f"{tmp_path}/no: cannot be looked through: No such file or directory"
    )


def test_512_files_are_a_skill_and_513_are_none(tmp_path: Path) -> None:
    place = skill(tmp_path / "refunds")
    for number in range(511):
        write(place / "many" / str(number))
    assert len(seen(tmp_path).skills["refunds"].files) == 512
    write(place / "one more")
    assert "more than 512 files" in only_fault(seen(tmp_path))


def test_16_mib_are_a_skill_and_one_byte_more_is_none(tmp_path: Path) -> None:
    place = skill(tmp_path / "refunds")
    most = 16 * 1024 * 1024 - (place / "SKILL.md").stat().st_size
    with (place / "big").open("wb") as file:
        file.truncate(most)
    assert seen(tmp_path).files["refunds/big"].size == most
    with (place / "big").open("ab") as file:
        file.write(b"x")
    assert "16777217 bytes" in only_fault(seen(tmp_path))


def test_folders_of_any_depth_and_number_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MAX_LOOKED", 100)
    for number in range(101):
        (tmp_path / "wide" / str(number)).mkdir(parents=True)
    assert only_fault(seen(tmp_path / "wide")) == f"{tmp_path}/wide: too much to look through for skills"
    deep = skill(tmp_path / "deep")
    (deep / "/".join("d" * 33)).mkdir(parents=True)
    assert "too much to look through" in only_fault(seen(deep))


def test_two_folders_with_the_same_skill(tmp_path: Path) -> None:
    skill(tmp_path / "a" / "refunds")
    skill(tmp_path / "b" / "refunds")
    found = seen(tmp_path / "a", tmp_path / "b")
    assert found.faults == (f"{tmp_path}/a and {tmp_path}/b both have a skill skill://refunds",)
    assert found.skills["refunds"].root == f"{tmp_path}/a"


def test_a_skill_of_one_folder_does_not_lie_in_one_of_another(tmp_path: Path) -> None:
    # Its files would be in the skill around it, and missing from that one's list of files.
    skill(tmp_path / "a" / "outer" / "inner")
    skill(tmp_path / "b" / "outer")
    for order in (("a", "b"), ("b", "a")):
        found = seen(*(tmp_path / name for name in order))
        assert list(found.skills) == ["outer"]
        assert "skill://outer/inner of" in found.faults[0]
        assert "would lie inside skill://outer" in found.faults[0]


# Looking again -------------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of files that were read."""
    found: list[str] = []
    measure = folders.measure

    def noted(path: str, place: str) -> object:
        found.append(path)
        return measure(path, place)

    monkeypatch.setattr(folders, "measure", noted)
    return found


def age(place: Path) -> None:
    """As if the file had been there for a long time; the times of a change cannot be set."""
    os.utime(place, (1e9, 1e9))


def test_what_did_not_change_is_the_same_snapshot(tmp_path: Path) -> None:
    skill(tmp_path / "refunds", **{"notes.md": "x"})
    first = seen(tmp_path)
    again = seen(tmp_path, before=first)
    assert (first.number, again.number) == (1, 1)
    assert again.skills is first.skills
    assert again.taken > first.taken


def test_files_that_settled_are_not_read_again(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skill(tmp_path / "refunds", **{"notes.md": "x"})
    first = seen(tmp_path)
    assert len(reads) == 2
    again = seen(tmp_path, before=first)
    assert len(reads) == 4  # their times may hide a second change
    monkeypatch.setattr(folders, "SETTLED", -1)
    seen(tmp_path, before=again)
    assert len(reads) == 4
    look([Root(str(tmp_path))], ignore=NEVER, before=again, doubt="refunds/notes.md")
    assert reads[4:] == ["refunds/notes.md"]


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    place = write(skill(tmp_path / "refunds") / "notes.md", "one")
    age(place)
    first = seen(tmp_path)
    write(place, "two")
    age(place)
    again = seen(tmp_path, before=first)
    assert again.number == 2
    assert again.files["refunds/notes.md"].digest == "sha256:" + hashlib.sha256(b"two").hexdigest()


def test_what_comes_and_goes(tmp_path: Path) -> None:
    place = skill(tmp_path / "refunds")
    first = seen(tmp_path)
    skill(tmp_path / "returns")
    write(place / "notes.md")
    second = seen(tmp_path, before=first)
    assert list(second.skills) == ["refunds", "returns"]
    assert "refunds/notes.md" in second.files
    (place / "SKILL.md").unlink()
    third = seen(tmp_path, before=second)
    assert list(third.skills) == ["returns"]
    assert list(third.files) == ["returns/SKILL.md"]
    assert [first.number, second.number, third.number] == [1, 2, 3]


def test_a_file_that_goes_away_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write(skill(tmp_path / "refunds") / "notes.md.tmp")
    measure = folders.measure

    def late(path: str, place_: str) -> object:
        place.unlink(missing_ok=True)
        return measure(path, place_)

    monkeypatch.setattr(folders, "measure", late)
    found = seen(tmp_path)
    assert list(found.files) == ["refunds/SKILL.md"]
    assert found.faults == ()


def test_a_file_that_another_takes_the_place_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, outside = tmp_path / "skills", write(tmp_path / "outside" / "notes.md", "secret")
    place = skill(root / "refunds")
    write(place / "more" / "notes.md", "mine")
    measure = folders.measure

    def swapped(path: str, place_: str) -> object:
        if path.endswith("notes.md") and not (place / "more").is_symlink():
            (place / "more").rename(tmp_path / "moved")
            (place / "more").symlink_to(outside.parent)
        return measure(path, place_)

    monkeypatch.setattr(folders, "measure", swapped)
    found = seen(root)
    assert "leads out of" in only_fault(found)
    assert found.files == {}
