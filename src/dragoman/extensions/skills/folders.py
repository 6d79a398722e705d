"""Folders on the disk, looked through for skills: what is in them now, and what is wrong with it.

A skill is served whole or not at all. Links lead nowhere out of the folder that was given, and what a
client sends is never part of a path here. It knows no server.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.extensions.skills.files import File, Stamp, measure, stamp_of
from dragoman.extensions.skills.wire import uri_of
from dragoman.model.skills_extension import MANIFEST, MAX_BYTES, MAX_FILES
from dragoman.protocol.frontmatter import FrontmatterFault, read_frontmatter

MAX_DEPTH: Final = 32
MAX_LOOKED: Final = 100_000  # files and folders, of all kinds
AGAIN: Final = 3  # looks at most, where files move while they are looked at
SETTLED: Final = 2 * 10**9  # ns after which a second change of a file cannot have the time of the first


class Root(msgspec.Struct, frozen=True):
    """A folder to look through, and the path that its skills have before their own."""

    place: str
    prefix: str = ""


class Found(msgspec.Struct, frozen=True):
    """A skill that can be served. `files` begins with its SKILL.md; `folders` are paths, its own too."""

    path: str
    root: str
    frontmatter: dict[str, Any]
    files: tuple[File, ...]
    folders: tuple[str, ...]


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """What was there: skills by path, files by path, and what lies in each folder.

    `number` rises when anything is different, `taken` (ns) each time. `faults` says what is not served,
    and why.
    """

    number: int = 0
    taken: int = 0
    skills: dict[str, Found] = {}
    files: dict[str, File] = {}
    children: dict[str, frozenset[str]] = {}
    faults: tuple[str, ...] = ()


class _Draft(msgspec.Struct, eq=False):
    """A skill while its folder is looked through: place and state of each file, and what is wrong.

    `place` is where it lies, as its author would write it.
    """

    path: str
    root: str
    place: str
    files: dict[str, tuple[str, Stamp]] = {}
    folders: list[str] = []
    bytes: int = 0
    faults: list[str] = []

    def add(self, path: str, place: str, *, info: os.stat_result) -> None:
        """A file of it; one too many is a fault."""
        self.files[path] = place, stamp_of(info)
        self.bytes += info.st_size
        if len(self.files) == MAX_FILES + 1:
            self.faults.append(
                f"{self.place}: more than {MAX_FILES} files; a host need not load such a skill"
            )


def look(roots: Sequence[Root], *, ignore: Iterable[str], before: Snapshot, doubt: str = "") -> Snapshot:
    """What is in the folders now. Files that did not change since `before` are not read again.

    `doubt` is the path of a file that is to be read again all the same.
    """
    patterns = tuple(ignore)
    again = AGAIN
    while True:
        taken = time.time_ns()
        walks = [_Walk(root, patterns) for root in roots]
        drafts = [draft for walk in walks for draft in walk.drafts()]
        reader = _Reader(before, doubt)
        skills, faults = _finished(drafts, reader)
        again -= 1
        if not (reader.moved and again):
            break
    # A file of a nested skill is one of the skill around it too, and is told of once.
    told = tuple(dict.fromkeys([*(fault for walk in walks for fault in walk.faults), *faults]))
    if skills == before.skills and told == before.faults and before.number:
        return msgspec.structs.replace(before, taken=taken)
    files = {file.path: file for found in skills.values() for file in found.files}
    return Snapshot(before.number + 1, taken, skills, files, _tree(skills.values()), told)


def _finished(drafts: list[_Draft], reader: _Reader) -> tuple[dict[str, Found], list[str]]:
    skills: dict[str, Found] = {}
    paths = {draft.path: draft for draft in drafts}
    for draft in drafts:
        found = reader.finish(draft)
        if found is not None:
            draft.faults += _conflicts(found, skills, paths=paths)
        if found is not None and not draft.faults:
            skills[found.path] = found
    return skills, [fault for draft in drafts for fault in draft.faults]


def _conflicts(found: Found, skills: dict[str, Found], *, paths: dict[str, _Draft]) -> Iterator[str]:
    uri, other = uri_of(found.path), skills.get(found.path)
    if other is not None:
        yield f"{other.root} and {found.root} both have a skill {uri}"
    parts = found.path.split("/")
    for end in range(1, len(parts)):
        around = paths.get("/".join(parts[:end]))
        if around is not None and around.root != found.root:
            yield f"{uri} of {found.root} would lie inside {uri_of(around.path)} of {around.root}"


def _tree(skills: Iterable[Found]) -> dict[str, frozenset[str]]:
    """What lies directly in each folder, by path; also in those that lead to skills."""
    children: dict[str, set[str]] = {}
    for found in skills:
        for folder in found.folders:
            children.setdefault(folder, set())
        for path in (*found.folders, *(file.path for file in found.files)):
            parts = path.split("/")
            for end in range(1, len(parts)):
                children.setdefault("/".join(parts[:end]), set()).add("/".join(parts[: end + 1]))
    return {folder: frozenset(paths) for folder, paths in children.items()}


class _Walk:
    """One look through one folder."""

    def __init__(self, root: Root, ignore: tuple[str, ...]) -> None:
        self._root = root
        self._real = Path(root.place).resolve()
        self._ignore = ignore
        self._looked = 0
        self._drafts: list[_Draft] = []
        self.faults: list[str] = []

    def drafts(self) -> list[_Draft]:
        """The skills there, each before those that are nested in it."""
        root, path = self._root, self._root.prefix
        if (self._real / MANIFEST).is_file():  # it is a skill itself
            path = f"{path}/{Path(root.place).absolute().name}".lstrip("/")
        self._visit(str(self._real), path, shown=root.place, inside=())
        return self._drafts

    def _visit(self, place: str, path: str, *, shown: str, inside: tuple[_Draft, ...]) -> None:
        try:
            with os.scandir(place) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as exc:
            self._tell(f"{shown}: cannot be looked through: {exc.strerror}", inside)
            return
        self._looked += len(entries)
        if path.count("/") > MAX_DEPTH or self._looked > MAX_LOOKED:
            self._tell(f"{shown}: too much to look through for skills", inside)
            return
        if path and any(entry.name == MANIFEST for entry in entries):
            draft = _Draft(path, self._root.place, shown)
            self._drafts.append(draft)
            inside = (*inside, draft)
        for draft in inside:
            draft.folders.append(path)
        for entry in entries:
            if not self._ignored(entry.name):
                self._enter(entry, path, shown=f"{shown}/{entry.name}", inside=inside)

    def _enter(self, entry: os.DirEntry[str], path: str, *, shown: str, inside: tuple[_Draft, ...]) -> None:
        name, place = entry.name, entry.path
        if "\\" in name or not name.isprintable():  # among these are names that are no UTF-8
            self._tell(f"{shown!a}: a name that not every system can have", inside)
            return
        own = f"{path}/{name}".lstrip("/")
        try:
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(info.st_mode):
                target, why = self._target(entry)
                if target is None:
                    self._tell(f"{shown}: {why}", inside)
                    return
                place, info = str(target), target.lstat()
        except OSError:  # it went away while it was looked at
            return
        if stat.S_ISDIR(info.st_mode):
            self._visit(place, own, shown=shown, inside=inside)
        elif stat.S_ISREG(info.st_mode):
            for draft in inside:
                draft.add(own, place, info=info)
        else:
            self._tell(f"{shown}: neither a file nor a folder", inside)

    def _target(self, entry: os.DirEntry[str]) -> tuple[Path | None, str]:
        """Where a link leads, or why nobody is led there."""
        try:
            target = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError):
            return None, "a link that leads nowhere"
        if not target.is_relative_to(self._real):
            return None, f"a link that leads out of {self._root.place}"
        if any(self._ignored(part) for part in target.relative_to(self._real).parts):
            return None, "a link to what is left out"
        if target.is_dir():
            return None, "a link to a folder: only files may be linked to"
        return target, ""

    def _ignored(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self._ignore)

    def _tell(self, fault: str, inside: tuple[_Draft, ...]) -> None:
        # What is wrong with a file is wrong with each skill that it belongs to.
        for draft in inside:
            draft.faults.append(fault)
        if not inside:
            self.faults.append(fault)


class _Reader:
    """Makes skills of drafts, and reads what is new."""

    def __init__(self, before: Snapshot, doubt: str) -> None:
        self._before = before
        self._doubt = doubt
        self.moved = False  # whether a file went away while it was looked at
        self._files: dict[str, File | None] = {}
        self._manifests: dict[str, bytes] = {}

    def finish(self, draft: _Draft) -> Found | None:
        """The skill, or None; then the draft says why, unless its SKILL.md went away."""
        if draft.bytes > MAX_BYTES:
            draft.faults.append(
                f"{draft.place}: {draft.bytes} bytes; a host need not load a skill of more than {MAX_BYTES}"
            )
        if draft.faults:
            return None
        manifest = f"{draft.path}/{MANIFEST}"
        paths = [manifest, *sorted(path for path in draft.files if path != manifest)]
        files = [file for path in paths if path in draft.files and (file := self._file(path, draft))]
        if draft.faults or not files or files[0].path != manifest:
            return None
        fields = self._frontmatter(files[0], draft)
        if fields is None:
            return None
        return Found(draft.path, draft.root, fields, tuple(files), tuple(draft.folders))

    def _file(self, path: str, draft: _Draft) -> File | None:
        if path not in self._files:
            place, stamp = draft.files[path]
            try:
                self._files[path] = self._known(path, place, stamp=stamp) or self._read(
                    path, place, stamp=stamp
                )
            except FileNotFoundError:
                self.moved = True
                self._files[path] = None
            except OSError as exc:
                own = path.removeprefix(draft.path)
                draft.faults.append(f"{draft.place}{own}: cannot be read: {exc.strerror}")
                return None
        return self._files[path]

    def _known(self, path: str, place: str, *, stamp: Stamp) -> File | None:
        """The file as it was seen before, if nothing says that it changed since."""
        old = self._before.files.get(path)
        if old is None or old.place != place or old.stamp != stamp or path == self._doubt:
            return None
        return old if old.changed_ns < self._before.taken - SETTLED else None

    def _read(self, path: str, place: str, *, stamp: Stamp) -> File:
        file, data = measure(path, place)
        if file.stamp[:2] != stamp[:2]:
            raise FileNotFoundError(place)  # what lies there now is another file
        if path.endswith(f"/{MANIFEST}"):
            self._manifests[path] = data
        return file

    def _frontmatter(self, file: File, draft: _Draft) -> dict[str, Any] | None:
        old = self._before.skills.get(draft.path)
        if old is not None and old.files[0] == file:
            return old.frontmatter
        try:
            if file.path not in self._manifests:
                self._read(file.path, file.place, stamp=file.stamp)
            fields = read_frontmatter(self._manifests[file.path].decode())
        except UnicodeDecodeError as exc:
            draft.faults.append(f"{draft.place}/{MANIFEST}: byte {exc.start + 1} is not UTF-8")
            return None
        except FrontmatterFault as exc:
            draft.faults += [f"{draft.place}/{MANIFEST}:{line}: {message}" for line, message in exc.found]
            return None
        except OSError:
            self.moved = True
            return None
        name = draft.path.rpartition("/")[2]
        if fields["name"] != name:
            draft.faults.append(
                f"{draft.place}/{MANIFEST}: name: {fields['name']!r}, in a folder that is called {name!r}"
            )
        return fields
