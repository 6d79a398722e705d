"""The files that servers are written to: which of a host's, and what becomes of the text of one.

Pure but for asking which files there are. What was written is read again as its host reads it: a text that
would not come to the same servers is never handed out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from dragoman.errors import UsageError
from dragoman.host.config.record import Scope, ServerConfig, Setup, Situation, Source
from dragoman.host.dialects import DIALECTS
from dragoman.host.export import toml, yaml
from dragoman.host.export.draft import Draft, draft
from dragoman.host.export.entries import Written, write, writer_of
from dragoman.host.export.forms import FORMS, OPENCODE_SECOND, Form
from dragoman.host.export.jsonc import JsonText
from dragoman.host.export.templates import Unsayable
from dragoman.host.locations import Location, Machine, locations
from dragoman.schema.shapes import is_object

Whose: TypeAlias = Literal["project", "user"]

_KINDS: Final[Mapping[str, str]] = {
    "codex": "config",
    "gemini-cli": "settings",
    "opencode": "config",
    "zed": "settings",
}
"""The kind of source that servers of a host are in; `servers` where it is not here."""


@dataclass(frozen=True, slots=True)
class Left:
    """A server that is not written, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Exported:
    """What a file's text becomes.

    `written` are the entries that it then has, `changed` the names of those that it did not have so;
    `left` are servers that the host cannot have.
    """

    text: str
    written: tuple[Written, ...]
    changed: tuple[str, ...]
    left: tuple[Left, ...]


def place(host: str, machine: Machine, *, whose: Whose) -> Path:
    """The file of a host that servers are written to. Raises UsageError where it has none."""
    found = [item for item in locations(host, machine) if item.scope == whose and _has_servers(host, item)]
    if host == "copilot-cli" and whose == "project":
        found = [item for item in found if item.path.parent.name == ".github"]
    if not found:
        other = "--user" if whose == "project" else "no --user"
        raise UsageError(f"{DIALECTS[host].title} reads no file of a {whose}: use {other}")
    best = next((item for item in found if item.path.exists() and not item.many), found[0])
    return best.path / "mcp.json" if best.many else best.path


def _has_servers(host: str, item: Location) -> bool:
    if host == "claude-code" and item.kind == "state":
        return True
    return item.kind == _KINDS.get(host, "servers") or (host == "continue" and item.kind == "config")


def export(
    text: str, servers: Sequence[ServerConfig], *, to: str, file: str, scope: Scope = "project"
) -> Exported:
    """Put servers into the text of a host's file, "" for a file that is not there yet.

    `file` is its name, by whose ending Continue's two forms are told apart; `scope` is whose it is.

    Raises:
        UsageError: the text cannot be read, or not added to; it says where.
        TextError: it is not of its form.
    """
    form = _form(text, to)
    written: list[Written] = []
    changed: list[str] = []
    left: list[Left] = []
    for config in servers:
        try:
            one = write(draft(config), form, to=to, writer=writer_of(to, file))
            if any(other.name == one.name for other in written):
                raise Unsayable("another server has that name there")
        except Unsayable as exc:
            left.append(Left(config.name, str(exc)))
            continue
        source = Source(text, file, scope, _kind(to, file))
        alone = replace(source, text=_put("", one, form=form, to=to, file=file))
        wanted = _read(to, alone, name=one.name)
        if wanted is None:
            raise UsageError(f"{config.name}: the entry for {DIALECTS[to].title} would not be read by it")
        written.append(one)
        if _read(to, source, name=one.name) != wanted:
            text = _put(text, one, form=form, to=to, file=file)
            changed.append(one.name)
            if _read(to, replace(source, text=text), name=one.name) != wanted:
                raise UsageError(_against(to, replace(source, text=text), name=one.name))
    return Exported(text, tuple(written), tuple(changed), tuple(left))


def servers_of(text: str, *, to: str, file: str, scope: Scope = "project") -> list[ServerConfig]:
    """The servers that stand in the text of a host's file."""
    return [item.config for item in _setup(to, Source(text, file, scope, _kind(to, file)))]


def _kind(host: str, file: str) -> str:
    if host == "continue":
        return "servers" if file.endswith(".json") else "config"
    if host == "claude-code" and file.rpartition("/")[2] == ".claude.json":
        return "state"
    return _KINDS.get(host, "servers")


def _form(text: str, to: str) -> Form:
    if to == "opencode" and text.strip():
        second = JsonText(text).node(("mcp", "servers"))
        if second is not None and "type" not in second.members:
            return OPENCODE_SECOND
    return FORMS[to]


def _put(text: str, one: Written, *, form: Form, to: str, file: str) -> str:
    own = form.members
    if to == "codex":
        return toml.put_server(text, one.name, entry=one.entry, own=own)
    if to == "continue" and not file.endswith(".json"):
        return yaml.put_server(text, one.name, entry=one.entry, own=own)
    edited = JsonText(text)
    path = (*form.below, one.name)
    node = edited.node(path)
    old = None if node is None else node.value
    if not is_object(old) or _is_program(old) != _is_program(one.entry):
        edited.put(path, one.entry)
        return str(edited)
    for member in old:
        if member in own and member not in one.entry:
            edited.drop((*path, member))
    for member, value in one.entry.items():
        edited.put((*path, member), value)
    return str(edited)


def _is_program(entry: Mapping[str, Any]) -> bool:
    return "command" in entry


def _against(host: str, source: Source, *, name: str) -> str:
    """Why a host would not read from a text what was put into it."""
    setup = _setup(host, source)
    problem = setup.failure or next(iter(setup.problems), None)
    if problem is not None:
        return f"{DIALECTS[host].title} does not take the file: {problem}"
    return f"{source.file}: other members of the entry {name!r} stand against what it should be"


def _setup(host: str, source: Source) -> Setup:
    situation = Situation(folder="/folder", trusted=True, interactive=False, home="/home")
    return DIALECTS[host].read([source], situation)


def _read(host: str, source: Source, *, name: str) -> Draft | None:
    """The server of that name in a text, as its host reads it."""
    if not source.text.strip():
        return None
    setup = _setup(host, source)
    found = setup.find(name)
    return None if found is None or setup.failure is not None else draft(found.config)
