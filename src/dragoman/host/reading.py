"""A host's files as they are on this machine, read and put together. Runs nothing of what they say.

What the files mean is for `config`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from dragoman.errors import UsageError
from dragoman.host.config import claude, codex
from dragoman.host.config import own as own_rules
from dragoman.host.config.record import Origin, Problem, Scope, Setup, Situation, Source
from dragoman.host.dialects import DIALECTS, dialect
from dragoman.host.locations import Location, Machine, locations, own
from dragoman.host.plugins import named_files, plugin_files
from dragoman.host.regular import is_there, read_regular

LARGEST: Final = 8 * 1024 * 1024
"""The largest file that is read, in bytes: no person wrote one that is larger."""

LARGEST_OF_PROJECT: Final = 1024 * 1024
"""The largest that is read of those in a project's folder, which come from anybody; programs write no state
there, and a file made to be slow is read in seconds."""


_OF_PROJECT: Final[tuple[Scope, ...]] = ("project", "local")


def this_machine(folder: Path | str = ".") -> Machine:
    """The machine that this process runs on, and a project's folder on it.

    Raises:
        UsageError: there is no such folder.
    """
    if not Path(folder).is_dir():
        raise UsageError(f"{folder}: no such folder")
    return Machine(Path(folder).resolve(), Path.home(), os.environ, sys.platform)


def read_setup(
    host: str,
    machine: Machine,
    *,
    trusted: bool | None = None,
    interactive: bool = True,
    mode: str = "",
    more: Iterable[Source] = (),
    scopes: Collection[Scope] | None = None,
) -> Setup:
    """What one host's files come to for a project's folder.

    `more` are texts beside the files: those of a command line, say. `trusted` is the person's word on the
    folder, None for what the host's own files say of it. With `scopes`, files of other scopes are not
    read. A file that cannot be read is a problem.

    Raises:
        UsageError: the host is not known.
    """
    known = dialect(host)
    sources, problems = read_sources(_of(scopes, [*above(host, machine), *locations(host, machine)]), machine)
    if host == claude.HOST:
        more_sources, more_problems = _plugins(sources, machine, trusted=trusted)
        sources, problems = [*sources, *more_sources], [*problems, *more_problems]
    situation = Situation(
        folder=str(machine.folder),
        trusted=trusted,
        interactive=interactive,
        mode=mode,
        env=machine.env,
        home=str(machine.home),
    )
    setup = known.read([*sources, *more], situation)
    return replace(setup, problems=(*problems, *setup.problems))


def _plugins(
    sources: Sequence[Source], machine: Machine, *, trusted: bool | None
) -> tuple[list[Source], list[Problem]]:
    """The files of plugins that are installed and switched on; one of them may name further ones."""
    found, problems = read_sources(plugin_files(sources, machine, trusted=trusted), machine)
    named = [place for source in found for place in named_files(source)]
    more, bad = read_sources(named, machine)
    return [*found, *more], [*problems, *bad]


def read_own(
    machine: Machine, *, trusted: bool | None = None, scopes: Collection[Scope] | None = None
) -> Setup:
    """What Dragoman's own rules come to, those of the project's folder included; see `read_setup`."""
    sources, problems = read_sources(_of(scopes, own(machine)), machine)
    setup = own_rules.read(sources, Situation(folder=str(machine.folder), trusted=trusted))
    return replace(setup, problems=(*problems, *setup.problems))


def _of(scopes: Collection[Scope] | None, places: Iterable[Location]) -> list[Location]:
    return [place for place in places if scopes is None or place.scope in scopes]


def command_line(texts: Iterable[str]) -> list[Source]:
    """Servers of a run's own command line, each a file's path or JSON, as texts for `read_setup`.

    Raises:
        UsageError: a file cannot be read.
    """
    sources: list[Source] = []
    for given in texts:
        if given.lstrip().startswith("{"):
            sources.append(Source(given, "--mcp-config", "cli"))
            continue
        try:
            text = text_of(Path(given))
        except (OSError, ValueError) as exc:
            raise UsageError(f"{given}: {exc.strerror if isinstance(exc, OSError) else exc}") from None
        if text is None:
            raise UsageError(f"{given}: no such file")
        sources.append(Source(text, given, "cli"))
    return sources


def installed(machine: Machine) -> list[str]:
    """The hosts of which there is a file."""
    return [host for host in DIALECTS if any(is_there(item.path) for item in locations(host, machine))]


def read_sources(places: Iterable[Location], machine: Machine) -> tuple[list[Source], list[Problem]]:
    """The texts of those files that are there."""
    sources: list[Source] = []
    problems: list[Problem] = []
    pairs = [(item, path) for item in places for path in files_of(item)]
    for place, path in pairs:
        shown = _shown(path, machine)
        try:
            text = text_of(path, most=LARGEST_OF_PROJECT if place.scope in _OF_PROJECT else LARGEST)
        except (OSError, ValueError) as exc:
            said = exc.strerror if isinstance(exc, OSError) else str(exc)
            problems.append(Problem(f"cannot be read: {said}", Origin(shown)))
        else:
            if text is not None:
                sources.append(_source(text, shown, place=place, path=path))
    return sources, problems


def _source(text: str, shown: str, *, place: Location, path: Path) -> Source:
    name, variables = place.name, dict(place.variables)
    if "*" in place.many:
        name = path.relative_to(place.path).parts[0]
        variables["extensionPath"] = str(place.path / name)
    return Source(text, shown, place.scope, place.kind, name, variables)


def files_of(place: Location) -> Iterator[Path]:
    """The files of a location that are there, or the one file, whether it is there or not."""
    if not place.many:
        yield place.path
        return
    try:
        if "*" in place.many:
            yield from sorted(place.path.glob(place.many))
        else:
            yield from sorted(path for path in place.path.iterdir() if path.suffix == place.many)
    except OSError:
        return


def text_of(path: Path, *, most: int = LARGEST) -> str | None:
    """The text of a file of at most so many bytes, None where there is none.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no regular file, too large, or not UTF-8.
    """
    try:
        data = read_regular(path, most=most)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        byte = exc.object[exc.start]
        raise ValueError(f"not UTF-8: byte {byte:#04x} at offset {exc.start}") from None


def _shown(path: Path, machine: Machine) -> str:
    """A path as messages call it: from the project's folder, or from the person's home."""
    if path.is_relative_to(machine.folder):
        return str(path.relative_to(machine.folder))
    if path.is_relative_to(machine.home):
        return f"~/{path.relative_to(machine.home)}"
    return str(path)


def above(host: str, machine: Machine) -> list[Location]:
    """Codex's files of the folders above the project's, up to the one with `.git`, farthest first."""
    found: list[Location] = []
    folder = machine.folder
    if host != codex.HOST:
        return []
    while not is_there(folder / ".git") and folder.parent not in (folder, machine.home):
        folder = folder.parent
        found.append(Location(folder / ".codex/config.toml", "project", "config"))
    if not is_there(folder / ".git"):
        return []  # no project's root: nothing above the folder is the project's
    return found[::-1]
