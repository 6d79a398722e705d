"""`dragoman doctor`: servers looked at step by step, each step that is not well with what to do."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.cli import failure, output
from dragoman.cli.brush import Brush
from dragoman.cli.quiet import quiet
from dragoman.cli.reach import check_servers
from dragoman.cli.session import target
from dragoman.client.options import ClientKeywords
from dragoman.client.target import TargetLike, command_line
from dragoman.errors import UsageError
from dragoman.host.config.record import Standing
from dragoman.host.diagnosis import Seen, look
from dragoman.host.dialects import DIALECTS
from dragoman.host.doctor import Mark, Step
from dragoman.host.files import Reading
from dragoman.host.locations import Machine
from dragoman.host.masking import held, without
from dragoman.host.naming import HostNames
from dragoman.host.overview import overview
from dragoman.host.permissions.checking import never
from dragoman.host.reaching import plan
from dragoman.host.reading import installed, this_machine
from dragoman.host.remedies import NO_FILES
from dragoman.host.suspicion import look_alikes
from dragoman.schema.shapes import is_object

_STYLES: Final[Mapping[Mark, str]] = {"ok": "green", "warn": "yellow", "fail": "red", "skip": "dim"}


@dataclass(frozen=True, slots=True)
class _Part:
    """A server, or the files of a host: what it is called, where it stands, what was seen."""

    title: str
    source: str
    steps: tuple[Step, ...]


def run(options: Namespace) -> int:
    """Look at everything; returns the exit status."""
    try:
        parts = asyncio.run(_examine(options))
    except UsageError as exc:
        return output.fail(exc, json=options.json)
    marks = [step.mark for part in parts for step in part.steps]
    if options.json:
        output.envelope(ok=True, value=_record(parts))
    else:
        _paint(parts, Brush.for_stdout())
    bad = "fail" in marks or (options.strict and "warn" in marks)
    return failure.TOOL if bad else failure.DONE


async def _examine(options: Namespace) -> list[_Part]:
    quiet()
    check_servers(options)
    machine = this_machine(options.folder)
    if options.target:
        return list(
            await asyncio.gather(*(_target(text, options, machine=machine) for text in options.target))
        )
    hosts = [options.host] if options.host else installed(machine)
    if not hosts:
        raise UsageError(
            f"no host has files in {machine.folder} or in the home folder",
            hint=f"name a TARGET to look at, or {NO_FILES}",
        )
    parts: list[_Part] = []
    for host in hosts:
        parts += await _host(host, machine, options=options)
    return parts


async def _target(text: str, options: Namespace, *, machine: Machine) -> _Part:
    entry = target(text)
    name = Path(text.partition(":")[0]).stem if text.endswith(".py") or ".py:" in text else "server"
    words = None if is_object(entry) else command_line(text)
    # As an entry, so that its program can be looked for; what is no command line is for the client to tell.
    named = words and not words[0].endswith(".py")
    where: TargetLike = {"command": words[0], "args": words[1:]} if words and named else entry
    keywords: ClientKeywords = {"connect_timeout": options.timeout, "idle_timeout": options.timeout}
    path = os.environ.get("PATH", "")
    seen = await look(where, keywords, name=name, home=machine.home, path=path)
    return _Part(text, "", seen.steps)


async def _host(host: str, machine: Machine, *, options: Namespace) -> list[_Part]:
    setup = Reading(host=host, machine=machine, trusted=options.trusted or None)().setup
    view = overview(setup, env=machine.env, folder=str(machine.folder))
    files = [
        Step(
            "files",
            "fail" if trouble.problem == setup.failure else "warn",
            str(trouble.problem),
            trouble.remedy,
        )
        for trouble in view.troubles
    ]
    rows = list(view.rows)
    seen = await asyncio.gather(
        *(_standing(row.standing, machine, remedy=row.remedy, timeout=options.timeout) for row in rows)
    )
    table = HostNames(
        host,
        [(row.config.name, tool.name) for row, one in zip(rows, seen, strict=True) for tool in one.tools],
    )
    known = {trouble.problem for trouble in view.troubles}
    files += [
        Step("permissions", "warn", str(problem), "correct the rule, or take it out")
        for problem in never(setup, tuple(table))
        if problem not in known
    ]
    files += [
        Step("names", "warn", str(finding), "make sure that it is the tool you mean")
        for finding in look_alikes((name.server, name.tool) for name in table)
    ]
    if not files and not rows and host not in installed(machine):
        files = [
            Step(
                "files",
                "warn",
                f"{DIALECTS[host].title} has no files here",
                "`dragoman config` shows which hosts have some",
            )
        ]
    elif not files:
        files = [Step("files", "ok", f"{len(rows)} entries, {len(setup.rules)} rules, no problem")]
    head = _Part(DIALECTS[host].title, str(machine.folder), tuple(files))
    return [
        head,
        *(
            _Part(row.config.name, str(row.config.origin), one.steps)
            for row, one in zip(rows, seen, strict=True)
        ),
    ]


async def _standing(standing: Standing, machine: Machine, *, remedy: str, timeout: float) -> Seen:
    config = standing.config
    if standing.state != "active":
        mark: Mark = "skip" if standing.state in ("shadowed", "disabled") else "warn"
        if standing.state in ("pending", "untrusted"):
            remedy += f"{'; ' if remedy else ''}--trusted looks at it now"
        return Seen((Step("entry", mark, f"{standing.state}: {standing.why}", remedy),))
    way = plan(config, config.name, env=machine.env, folder=machine.folder)
    if isinstance(way, str):
        return Seen((Step("entry", "fail", way, remedy),))
    keywords: ClientKeywords = {**way.options, "connect_timeout": min(timeout, way.startup)}
    path = _path(way.options.get("env"), machine)
    seen = await look(
        dict(way.entry), keywords, name=config.name, home=machine.home, path=path, host=config.host
    )
    secrets = held(config, machine.env)
    steps = [
        replace(step, text=without(step.text, secrets), fix=without(step.fix, secrets)) for step in seen.steps
    ]
    return replace(seen, steps=tuple(steps))


def _path(env: Mapping[str, str] | None, machine: Machine) -> str:
    """The PATH that a program of the entry is started with."""
    return (env or {}).get("PATH") or machine.env.get("PATH", "")


# For programs and people ---------------------------------------------------------------------------------


def _record(parts: Sequence[_Part]) -> dict[str, Any]:
    return {
        "parts": [
            {"title": part.title, "source": part.source, "steps": msgspec.to_builtins(part.steps)}
            for part in parts
        ]
    }


def _paint(parts: Sequence[_Part], brush: Brush) -> None:
    wide = max((len(step.name) for part in parts for step in part.steps), default=0)
    for index, part in enumerate(parts):
        if index:
            output.line("")
        source = f"  {brush('dim', output.flat(part.source))}" if part.source else ""
        output.line(f"{brush('bold', output.flat(part.title))}{source}")
        for line in _lines(part.steps, brush, wide=wide):
            output.line(line)
    output.line("")
    output.line(_verdict(parts, brush))


def _lines(steps: Sequence[Step], brush: Brush, *, wide: int) -> Iterator[str]:
    room = max(30, brush.width - wide - 10)
    for step in steps:
        mark = brush(_STYLES[step.mark], f"{step.mark:4}")
        first, *others = _wrapped(step.text, room)
        yield f"  {mark}  {step.name:{wide}}  {first}"
        pad = " " * (wide + 10)
        for more in others:
            yield pad + more
        for at, more in enumerate(_wrapped(step.fix, room - 5) if step.fix else []):
            yield pad + (brush("dim", "try: ") if at == 0 else "     ") + more


def _wrapped(text: str, room: int) -> list[str]:
    return output.wrapped(output.flat(text), room)


def _verdict(parts: Sequence[_Part], brush: Brush) -> str:
    marks = [step.mark for part in parts for step in part.steps]
    bad, odd = marks.count("fail"), marks.count("warn")
    if not bad and not odd:
        return brush("green", "all well")
    told = [f"{bad} wrong"] if bad else []
    told += [f"{odd} worth a look"] if odd else []
    return brush("red" if bad else "yellow", ", ".join(told))
