"""`dragoman config`: the servers of every host's files, and what is in the way of each."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dragoman.cli import failure, output
from dragoman.cli.brush import Brush
from dragoman.errors import UsageError
from dragoman.host.config.record import Origin, Source, State
from dragoman.host.dialects import DIALECTS
from dragoman.host.masking import what
from dragoman.host.overview import Overview, Row, Trouble, overview
from dragoman.host.permissions import own
from dragoman.host.reading import command_line, installed, read_own, read_setup, this_machine
from dragoman.host.remedies import NO_FILES

_STYLES: Final[dict[State, str]] = {
    "active": "green",
    "pending": "yellow",
    "untrusted": "yellow",
    "shadowed": "dim",
    "disabled": "dim",
    "rejected": "red",
    "blocked": "red",
}
_SOURCE_LEAST: Final = 18
_NARROW: Final = 100  # columns from which on there is room for what an entry starts


def run(options: Namespace) -> int:
    """Show them; returns the exit status."""
    try:
        return _show(options)
    except UsageError as exc:
        return output.fail(exc, json=options.json)


def _show(options: Namespace) -> int:
    machine = this_machine(options.folder)
    hosts = list(dict.fromkeys(options.host)) or installed(machine)
    if options.mcp_config and "claude-code" not in hosts:
        hosts.insert(0, "claude-code")
    seen: list[Overview] = []
    for host in hosts:
        more: Sequence[Source] = command_line(options.mcp_config) if host == "claude-code" else ()
        setup = read_setup(host, machine, more=more)
        seen.append(overview(setup, env=machine.env, folder=str(machine.folder)))
    mine = read_own(machine)
    told = (*mine.problems, *own.check(mine.rules, trusted_servers=mine.settings["trusted_servers"]))
    if told and not options.host:
        seen.append(Overview("dragoman", (), tuple(map(Trouble, told))))
    if options.json:
        output.envelope(ok=True, value=_record(seen, machine.folder))
    elif not seen:
        output.note(f"no host has files in {machine.folder} or in the home folder\n  try: {NO_FILES}")
    else:
        _paint(seen, Brush.for_stdout())
    return failure.DONE


def _record(seen: Sequence[Overview], folder: Path) -> dict[str, object]:
    return {
        "folder": str(folder),
        "hosts": [
            {
                "host": item.host,
                "title": DIALECTS[item.host].title if item.host in DIALECTS else "Dragoman",
                "servers": [row.record() for row in item.rows],
                "problems": [trouble.record() for trouble in item.troubles],
            }
            for item in seen
        ],
    }


# For people ----------------------------------------------------------------------------------------------


def _paint(seen: Sequence[Overview], brush: Brush) -> None:
    rows = [(item.host, row) for item in seen for row in item.rows]
    if rows:
        _table(rows, brush)
    else:
        output.line("no servers")
    _section(brush, "not in use", notes=_not_used(rows))
    _section(brush, "problems", notes=_troubles(seen))


def _table(rows: Sequence[tuple[str, Row]], brush: Brush) -> None:
    limit = output.columns()
    cells = [("HOST", "SERVER", "TRANSPORT", "SCOPE", "SOURCE", "STARTS", "STATE")]
    wide = limit is None or limit > _NARROW
    for host, row in rows:
        source = str(row.config.origin)
        starts = what(row.config) if wide else ""
        cells.append(
            (host, row.config.name, row.transport, row.config.scope, source, starts, row.standing.state)
        )
    if limit is not None:
        room = _room(cells, limit)
        cells = [(*cell[:4], _behind(cell[4], room), *cell[5:]) for cell in cells]
    head, *lines = output.table(cells, limit)
    output.line(brush("dim", head))
    for (_, row), line in zip(rows, lines, strict=True):
        state = row.standing.state
        start = line.removesuffix(state)
        output.line(line if start == line else start + brush(_STYLES[state], state))


def _room(cells: Sequence[tuple[str, ...]], limit: int) -> int:
    """Columns that the places may take, so that their lines are seen when files are cut at the front."""
    others = sum(max(output.width(cell[at]) for cell in cells) + 2 for at in (0, 1, 2, 3, 6))
    return max(_SOURCE_LEAST, limit - others)


def _behind(text: str, room: int) -> str:
    """The end of a text, which has more to say than its beginning."""
    return text if output.width(text) <= room else "…" + text[-(room - 1) :]


def _not_used(rows: Sequence[tuple[str, Row]]) -> Iterator[tuple[str, str]]:
    for host, row in rows:
        standing, config = row.standing, row.config
        if standing.state == "active":
            if standing.why:
                yield f"{host}: {config.name} ({config.origin}) is active: {standing.why}", ""
            continue
        by = f" ({standing.by})" if _adds(standing.by, standing.why, own=config.origin) else ""
        yield f"{host}: {config.name} ({config.origin}) is {standing.state}: {standing.why}{by}", row.remedy


def _adds(by: Origin | None, why: str, *, own: Origin) -> bool:
    """Whether the place that decided is not said already."""
    return by is not None and by != own and str(by) not in why


def _troubles(seen: Sequence[Overview]) -> Iterator[tuple[str, str]]:
    """Each once, though several hosts read one file."""
    hosts: dict[Trouble, list[str]] = {}
    for item in seen:
        for trouble in item.troubles:
            hosts.setdefault(trouble, []).append(item.host)
    for trouble, names in hosts.items():
        problem = trouble.problem
        yield f"{', '.join(names)}: {problem.origin.exact}: {problem.text}", trouble.remedy


def _section(brush: Brush, title: str, *, notes: Iterator[tuple[str, str]]) -> None:
    """Sentences under a title, each with what to do; nothing where there are none."""
    first = True
    for text, remedy in notes:
        if first:
            output.line("")
            output.line(brush("bold", title))
            first = False
        _wrapped(brush, text, indent=2)
        if remedy:
            _wrapped(brush, f"try: {remedy}", indent=6)


def _wrapped(brush: Brush, text: str, *, indent: int) -> None:
    for number, line in enumerate(brush.wrapped(text, brush.width - indent - 3)):
        output.line(" " * (indent if number == 0 else indent + 2) + line)
