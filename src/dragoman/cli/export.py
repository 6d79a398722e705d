"""`dragoman config export`: another host's file, shown as it would be, and written."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches, unified_diff
from pathlib import Path
from typing import Any, Final

from dragoman.cli import failure, output
from dragoman.cli.brush import Brush
from dragoman.errors import UsageError
from dragoman.host import masking
from dragoman.host.config.located import TextError
from dragoman.host.config.record import ServerConfig, Setup, Standing
from dragoman.host.export.files import Journal
from dragoman.host.export.targets import Exported, Left, Whose, export, place, servers_of
from dragoman.host.locations import Machine
from dragoman.host.reading import installed, read_setup, text_of, this_machine
from dragoman.schema.escapes import harmless

_STYLES: Final[Mapping[str, str]] = {"+": "green", "-": "red", "@": "blue"}


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be written where: the file's text before and what comes of it."""

    path: Path
    before: str | None
    done: Exported
    left: tuple[Left, ...]
    secrets: tuple[str, ...]
    taken: tuple[str, ...]
    hidden: Mapping[str, str]

    @property
    def link_to(self) -> str | None:
        """The file that is meant, where the path or a folder on its way is a link."""
        real, said = os.path.realpath(self.path), os.path.abspath(self.path)  # noqa: PTH100  # resolves no link
        return None if real == said else real

    @property
    def changed(self) -> bool:
        return self.done.text != (self.before or "")


def run(options: Namespace) -> int:
    """Show what would change, and with `--write` write it; returns the exit status."""
    try:
        return _export(options)
    except UsageError as exc:
        return output.fail(exc, json=options.json)


def _export(options: Namespace) -> int:
    work = _work(options)
    backup = None
    if options.write and work.changed:
        seen = None if work.before is None else work.before.encode()
        try:
            backup = Journal().write(
                work.path, work.done.text, seen=seen, private=options.user or bool(work.secrets)
            )
        except OSError as exc:
            raise UsageError(f"{work.path}: it cannot be written: {exc.strerror}") from None
    if options.json:
        output.envelope(ok=True, value=_record(work, written=backup is not None))
    else:
        _paint(work, Brush.for_stdout(), written=backup is not None)
    return failure.DONE


def _work(options: Namespace) -> _Work:
    machine = this_machine(options.folder)
    whose: Whose = "user" if options.user else "project"
    path = Path(options.output) if options.output else place(options.to, machine, whose=whose)
    configs, left, taken = _chosen(options, machine)
    try:
        before = text_of(path)
    except (OSError, ValueError) as exc:
        said = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise UsageError(f"{path}: it cannot be read: {said}") from None
    try:
        done = export(before or "", configs, to=options.to, file=str(path), scope=whose)
    except TextError as exc:
        raise UsageError(f"{path}:{exc.line}:{exc.column}: not {exc.form}: {exc.message}") from None
    except UsageError as exc:
        raise UsageError(f"{path}: {exc.message}") from None
    names = {one.server for one in done.written}
    secrets = tuple(
        f"{config.name}: {', '.join(found)}"
        for config in configs
        if config.name in names and (found := tuple(masking.secrets(config)))
    )
    there = servers_of(before or "", to=options.to, file=str(path), scope=whose)
    hidden = masking.literals((*configs, *there))
    return _Work(path, before, done, (*left, *done.left), secrets, tuple(taken), hidden)


def _chosen(options: Namespace, machine: Machine) -> tuple[list[ServerConfig], tuple[Left, ...], list[str]]:
    """The servers to write, those that are not in use, and where each of the first is taken from."""
    hosts = options.host or [host for host in installed(machine) if host != options.to]
    found: dict[str, list[tuple[str, ServerConfig]]] = {}
    left: dict[str, str] = {}
    for host in dict.fromkeys(hosts):
        for standing in _standing(read_setup(host, machine)):
            config, name = standing.config, standing.config.name
            if standing.state == "active" or name in options.server:
                found.setdefault(name, []).append((host, config))
                left.pop(name, None)
            elif name not in found:
                left.setdefault(name, f"it is {standing.state} in {host}; name it to write it all the same")
    names = list(dict.fromkeys(options.server)) or list(found)
    _know(names, {*found, *left})
    taken = [_taken(name, found[name]) for name in names]
    unused = () if options.server else tuple(Left(*item) for item in left.items())
    return [found[name][0][1] for name in names], unused, taken


def _taken(name: str, found: Sequence[tuple[str, ServerConfig]]) -> str:
    """Where a server is taken from, and which hosts have another of its name."""
    (host, config), *rest = found
    others = [f"{other} ({that.origin})" for other, that in rest if not _alike(config, that)]
    text = f"{name}: {host} ({config.origin})"
    return f"{text}; another one in {', '.join(others)}" if others else text


def _standing(setup: Setup) -> Iterator[Standing]:
    """What stands for each name, in the order of the files."""
    for name in dict.fromkeys(item.config.name for item in setup):
        found = setup.find(name)
        if found is not None:
            yield found


def _alike(one: ServerConfig, other: ServerConfig) -> bool:
    return (one.command, one.args, one.url) == (other.command, other.args, other.url)


def _know(wanted: Iterable[str], known: set[str]) -> None:
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(sorted(known)) or 'none'}"
            raise UsageError(f"no server {name!r}: {hint}")


# What is told --------------------------------------------------------------------------------------------


def _diff(work: _Work) -> list[str]:
    """The change, without secrets."""
    name = _shown(work.path)
    old = f"{name} (not there)" if work.before is None else name
    lines = unified_diff(
        (work.before or "").splitlines(), work.done.text.splitlines(), old, name, lineterm="", n=3
    )
    return [masking.covered(line, work.hidden) for line in lines]


def _shown(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _record(work: _Work, *, written: bool) -> dict[str, Any]:
    return {
        "file": str(work.path),
        "link_to": work.link_to,
        "changed": work.changed,
        "written": written,
        "diff": _diff(work),
        "servers": [
            {"name": one.name, "changed": one.name in work.done.changed, "notes": one.notes}
            for one in work.done.written
        ],
        "left_out": [{"name": item.name, "why": item.why} for item in work.left],
        "secrets": list(work.secrets),
        "taken_from": list(work.taken),
    }


def _paint(work: _Work, brush: Brush, *, written: bool) -> None:
    for line in _diff(work):
        head = line.startswith(("+++", "---"))
        style = "bold" if head else _STYLES.get(line[:1], "")
        text = harmless(line)
        output.line(brush(style, text) if style else text)
    notes = [f"{one.name}: {note}" for one in work.done.written for note in one.notes]
    for title, lines in (
        ("taken from", list(work.taken)),
        ("left out", [f"{item.name}: {item.why}" for item in work.left]),
        ("not quite the same", notes),
        ("secrets that stand in it as text: refer to variables instead", list(work.secrets)),
    ):
        if lines:
            output.line(f"\n{brush('bold', title)}")
            for text in lines:
                output.line(f"  {output.flat(text)}")
    output.line(("\n" if work.changed or work.left else "") + brush("bold", _verdict(work, written=written)))


def _verdict(work: _Work, *, written: bool) -> str:
    name = _shown(work.path)
    if work.link_to is not None:
        name += f" (a link to {work.link_to})"
    count = len(work.done.changed)
    servers = output.counted(count, "server")
    if not work.changed:
        found = work.done.written or work.left
        why = "nothing to change" if work.done.written else "nothing to write"
        return f"{name}: {why}" if found else f"{name}: {why}, as no server was found"
    if written:
        return f"{name}: {servers} written; `dragoman config undo` takes it back"
    return f"{name}: {servers} would be written; --write writes it"
