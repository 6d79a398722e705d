"""`dragoman explain NAME`: what becomes of a call and why, link by link; of a recorded one, then and now."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dragoman.cli import arguments, failure, output
from dragoman.cli.brush import LABEL, Brush
from dragoman.cli.given import given
from dragoman.cli.quiet import quiet
from dragoman.errors import DragomanError, UsageError
from dragoman.host.config.record import Rule, ServerConfig
from dragoman.host.explain import Chain, Facts, Listed, candidates, explain, nearest
from dragoman.host.files import HostFiles, Reading
from dragoman.host.host import Host
from dragoman.host.lock import FILE, Lock, read_lock
from dragoman.host.models.base import ToolUse
from dragoman.host.naming import HostNames
from dragoman.host.overview import place
from dragoman.host.permissions import Decision
from dragoman.host.reading import command_line, installed, this_machine
from dragoman.host.recorded import Recorded, compared, recorded
from dragoman.host.remedies import NO_FILES
from dragoman.host.ruling import call_of, decide
from dragoman.model import Tool
from dragoman.protocol.naming import Name

_MARKS: Final = {True: ("ok", "green"), False: ("STOP", "red"), None: ("?", "yellow")}
_STYLES: Final = {"allow": "green", "ask": "yellow", "deny": "red", "refused": "red", "unknown": "red"}


@dataclass(frozen=True, slots=True)
class _Told:
    """One call, explained."""

    host: str
    facts: Facts
    chain: Chain
    also: tuple[str, ...] = ()  # other hosts that know the server
    then: Recorded | None = None
    differences: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a server said, and the host that heard it."""

    listed: Listed
    host: Host | None = None
    name: Name | None = None
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])


def run(options: Namespace) -> int:
    """Explain the call; returns 5 where it would not run, and 0 where it may or a person is asked."""
    quiet()
    started = time.perf_counter()
    try:
        told = asyncio.run(_explained(options))
    except DragomanError as exc:
        return output.fail(exc, json=options.json)
    told = replace(told, seconds=time.perf_counter() - started)
    if options.json:
        output.envelope(ok=True, value=_record(told))
    else:
        _paint(told, Brush.for_stdout())
    return failure.DONE if told.chain.verdict in ("allow", "ask") else failure.DENIED


async def _explained(options: Namespace) -> _Told:
    then = None if options.trace is None else recorded(options.trace, options.name)
    text = options.name if then is None else then.called
    host, files, found, also = _host(options, text, then=then)
    base, words = given(options) if then is None else (dict(then.arguments), [])
    lock = _lock(options.folder)
    asked = await _ask(options, files, found=found, text=text, lock=lock)
    try:
        name = asked.name or _named(host, found[0][0], tool=found[0][1])
        tool = asked.tools.get(name.tool)
        values = arguments.assemble(words, {} if tool is None else tool.input_schema, base=base)
        facts = _facts(files, asked, name=name, values=values, options=options)
        facts = replace(facts, locked=lock is not None and name.server in lock.servers)
    finally:
        if asked.host is not None:
            await asked.host.close()
    chain = explain(facts)
    differences = () if then is None else tuple(compared(then, facts))
    return _Told(host, facts, chain, also, then, differences)


# Which host, which tool ----------------------------------------------------------------------------------


def _read(reading: Reading) -> HostFiles:
    """The files; where they are explained as trusted, what waits for an approval has it."""
    files = reading()
    if not reading.trusted:
        return files
    waiting: dict[str, ServerConfig] = {}
    for item in files.setup.servers:
        if item.state == "pending":
            waiting.setdefault(item.config.name, item.config)
    return files.approve(waiting, why="a person has to approve it first; explained as if one had (--trusted)")


def _reading(options: Namespace, host: str) -> Reading:
    return Reading(
        host=host,
        machine=this_machine(options.folder),
        trusted=options.trusted,
        interactive=not options.headless,
        mode=options.mode,
        more=tuple(command_line(options.mcp_config)) if host == "claude-code" else (),
    )


def _host(
    options: Namespace, text: str, *, then: Recorded | None
) -> tuple[str, HostFiles, list[tuple[str, str]], tuple[str, ...]]:
    """The host whose files decide, what the text may mean there, and others that know the server too."""
    hosts = [options.host] if options.host else installed(this_machine(options.folder))
    if options.mcp_config and not options.host and "claude-code" not in hosts:
        hosts.insert(0, "claude-code")
    if not hosts:
        folder = Path(options.folder).resolve()
        raise UsageError(f"no host has files in {folder} or in the home folder", hint=NO_FILES)
    read = {host: _read(_reading(options, host)) for host in hosts}
    known = {host: found for host, files in read.items() if (found := candidates(files, text))}
    if not known:
        raise UsageError(f"{text!r} is no tool of a server that is configured{_hint(read, text)}")
    # A host whose model has this very name comes before one in which it only can be meant, and before it the
    # one whose file is on record.
    ranked = sorted(
        known,
        key=lambda host: (
            not _is_on_record(read[host], known[host], then=then),
            not _is_its(host, known[host], text=text),
        ),
    )
    return ranked[0], read[ranked[0]], known[ranked[0]], tuple(ranked[1:])


def _is_on_record(files: HostFiles, found: Sequence[tuple[str, str]], *, then: Recorded | None) -> bool:
    standing = [files.servers[server] for server, _ in found]
    return then is not None and any(str(item.config.origin) == then.config for item in standing)


def _is_its(host: str, found: Sequence[tuple[str, str]], *, text: str) -> bool:
    return any(text == name.model for name in HostNames(host, found))


def _used(files: HostFiles, server: str) -> bool:
    standing = files.servers.get(server)
    return standing is not None and standing.state == "active"


def _hint(read: Mapping[str, HostFiles], text: str) -> str:
    near = list(dict.fromkeys(name for files in read.values() for name in nearest(files, text)))
    if near:
        return f"; did you mean the server {' or '.join(map(repr, near[:3]))}?"
    servers = list(dict.fromkeys(name for files in read.values() for name in files.servers))
    listed = ", ".join(servers) or "none"
    return f"; the servers are {listed}. A tool is named SERVER:TOOL, or as the model has it"


def _named(host: str, server: str, *, tool: str) -> Name:
    """The name of a tool that nobody has listed."""
    return next(iter(HostNames(host, [(server, tool)])), Name.of(server, tool))


def _lock(folder: str) -> Lock | None:
    path = Path(folder) / FILE
    return read_lock(path) if path.exists() else None


# Asking the server ---------------------------------------------------------------------------------------


async def _ask(
    options: Namespace,
    files: HostFiles,
    *,
    found: Sequence[tuple[str, str]],
    text: str,
    lock: Lock | None,
) -> _Asked:
    """Have the servers that may be meant list their tools, and find the one that is."""
    if options.offline:
        return _Asked(Listed(asked=False, why="as you said (--offline)"))
    servers = list(dict.fromkeys(server for server, _ in found if _used(files, server)))
    if not servers:
        return _Asked(Listed(asked=False, why="it is not in use"))
    only = tuple(item for item in files.setup if item.config.name in _entries(files, servers))
    few = replace(files, setup=replace(files.setup, servers=only))
    host = Host(lambda: few, lock=lock)
    why = ""
    try:
        async with asyncio.timeout(options.timeout):
            await host.connect()
    except TimeoutError:
        why = f"not within {options.timeout:g} seconds"
    except DragomanError as exc:
        why = str(exc)
    name = _find(host, found, text=text)
    server = name.server if name is not None else servers[0]
    session = host.sessions.get(server)
    if session is None or session.state != "connected":
        why = why or (session.why if session is not None else "")
        return _Asked(Listed(why=why or "it is not connected"), host)
    hidden = next((host.names.left_out[pair] for pair in found if pair in host.names.left_out), "")
    return _Asked(Listed(tools=tuple(session.tools), hidden=hidden), host, name, session.tools)


def _entries(files: HostFiles, servers: Sequence[str]) -> set[str]:
    """The names that servers have in their files; a host with two of one name tells them apart by more."""
    return {files.servers[name].config.name for name in servers}


def _find(host: Host, found: Sequence[tuple[str, str]], *, text: str) -> Name | None:
    """The tool that is meant, among those that are listed."""
    by_model = host.names.find(text)
    if by_model is not None:
        return by_model
    named = [host.names.of(server, tool) for server, tool in found]
    return next((name for name in named if name is not None), None)


# What is known -------------------------------------------------------------------------------------------


def _facts(
    files: HostFiles, asked: _Asked, *, name: Name, values: Mapping[str, Any], options: Namespace
) -> Facts:
    tool = asked.tools.get(name.tool)
    judged = None
    if asked.host is not None and tool is not None:
        judged = asked.host.judged(ToolUse("explain", name.model, values))
    return Facts(
        files=files,
        name=name,
        listed=asked.listed,
        decision=_decision(files, name, tool=tool, values=values),
        arguments=values,
        judged=judged,
        others=dict(_others(options, files, name=name, tool=tool, values=values)),
    )


def _decision(files: HostFiles, name: Name, *, tool: Tool | None, values: Mapping[str, Any]) -> Decision:
    return decide(files, call_of(name, values, tool=tool), now=time.time())


def _others(
    options: Namespace, files: HostFiles, *, name: Name, tool: Tool | None, values: Mapping[str, Any]
) -> Iterator[tuple[str, Decision]]:
    """Decisions on the same call, were one thing else otherwise."""
    reading = _reading(options, files.host)
    situations: list[tuple[str, Reading]] = []
    if files.interactive:
        situations.append(("where nobody can be asked", replace(reading, interactive=False)))
    if not files.trusted:
        situations.append(("in a trusted folder", replace(reading, trusted=True)))
    for what, other in situations:
        yield what, _decision(_read(other), name, tool=tool, values=values)


# What is told --------------------------------------------------------------------------------------------


def _record(told: _Told) -> dict[str, Any]:
    facts, chain = told.facts, told.chain
    decision = facts.decision
    record: dict[str, Any] = {
        "host": told.host,
        "name": facts.name.model,
        "server": facts.name.server,
        "tool": facts.name.tool,
        "verdict": chain.verdict,
        "text": chain.text,
        "chain": [link.record() for link in chain.links],
        "decision": {
            "effect": decision.effect,
            "why": decision.why,
            "rule": None if decision.rule is None else _rule(decision.rule),
            "lost": [_rule(rule) for rule in decision.lost],
            "hidden": decision.hidden,
        },
        "other_hosts": told.also,
        "ms": round(told.seconds * 1000),
    }
    if told.then is not None:
        record["recorded"] = told.then.record()
        record["differences"] = told.differences
    return record


def _rule(rule: Rule) -> dict[str, Any]:
    return {"effect": rule.effect, "text": rule.text, "scope": rule.scope, "source": place(rule.origin)}


def _paint(told: _Told, brush: Brush) -> None:
    facts, chain = told.facts, told.chain
    title = f"{facts.name.model}: {facts.name.tool!r} of server {facts.name.server!r}, as {told.host} decides"
    _line(brush, title, style="bold")
    if told.then is not None:
        _field(brush, "then", text=told.then.text, style="")
        for detail in told.then.details:
            _field(brush, "", text=detail)
    for link in chain.links:
        mark, style = _MARKS[link.ok]
        _field(brush, link.step, text=link.text, mark=mark, style=style)
        for detail in link.details:
            _field(brush, "", text=detail)
        if link.remedy:
            _field(brush, "", text=f"try: {link.remedy}")
    for text in told.differences:
        _field(brush, "changed", text=text, style="yellow")
    if told.also:
        _field(brush, "also in", text=f"{', '.join(told.also)} (--host)")
    _line(brush, f"=> {chain.text}", style=_STYLES[chain.verdict])


def _line(brush: Brush, text: str, *, style: str) -> None:
    for number, line in enumerate(brush.wrapped(text, brush.width - 4)):
        output.line(brush(style, line if number == 0 else f"   {line}"))


def _field(brush: Brush, label: str, *, text: str, mark: str = "", style: str = "") -> None:
    """A label, a mark and a text, wrapped beside them on a terminal and on one line in a pipe."""
    start = f"  {label.ljust(LABEL + 1)} {mark.ljust(4)} "
    shown = start.replace(mark, brush(style, mark), 1) if mark and style else start
    for number, line in enumerate(brush.wrapped(text, max(20, brush.width - len(start) - 1))):
        head = shown if number == 0 else " " * len(start)
        output.line((head + line).rstrip())
