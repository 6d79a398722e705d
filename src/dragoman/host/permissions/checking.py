"""Rules of any host that can never match, each with the reason and its place. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from dragoman.host.config.record import Problem, Rule, Setup
from dragoman.host.permissions import claude, cursor, gemini
from dragoman.host.permissions.base import Call
from dragoman.host.permissions.copilot import matches as copilot_matches
from dragoman.protocol.naming import Name


def never(setup: Setup, names: Collection[Name] = ()) -> Iterator[Problem]:
    """Warn of rules that match nothing.

    `names` are the tools of the servers that answer, as far as they are known: a rule for one of those
    servers that matches none of their tools is told of too.
    """
    if setup.host == "claude-code":
        servers = [standing.config.name for standing in setup]
        yield from claude.check(setup.rules, servers=list(dict.fromkeys(servers)), names=names)
        return
    faults = _FAULTS.get(setup.host)
    for rule in setup.rules:
        reason = None if faults is None else faults(rule)
        reason = reason or _absent(setup, rule, names=names)
        if reason is not None:
            yield Problem(f"{rule.effect} rule {rule.text!r} never matches: {reason}", rule.origin)
    yield from _listed(setup, names)


_FAULTS: Final[Mapping[str, Callable[[Rule], str | None]]] = {
    "cursor": cursor.fault,
    "gemini-cli": gemini.fault,
}


def _absent(setup: Setup, rule: Rule, *, names: Collection[Name]) -> str | None:
    """Why a rule of a host that names single tools meets none: a misspelt server or tool."""
    wanted = rule.detail.get("tool") if setup.host == "zed" else None
    if isinstance(wanted, str) and wanted.startswith("mcp:"):
        server = wanted.split(":")[1]
        return _missing(
            setup, server, met=any(wanted == f"mcp:{n.server}:{n.tool}" for n in names), names=names
        )
    if setup.host == "copilot-cli" and "(" in rule.text:
        server = rule.text.partition("(")[0].strip()
        if not any(standing.config.name == server for standing in setup):
            return None  # a tool of the program itself
        return _missing(
            setup, server, met=any(copilot_matches(rule, Call(name)) for name in names), names=names
        )
    return None


def _missing(setup: Setup, server: str, *, met: bool, names: Collection[Name]) -> str | None:
    configured = list(dict.fromkeys(standing.config.name for standing in setup))
    if server not in configured:
        return f"no server of that name is configured; there is {', '.join(configured) or 'none'}"
    if any(name.server == server for name in names) and not met:
        return f"server {server!r} has no such tool"
    return None


def _listed(setup: Setup, names: Collection[Name]) -> Iterator[Problem]:
    """Tools that an entry names and its server does not have."""
    answering = {name.server for name in names}
    tools = {(name.server, name.tool) for name in names}
    for config in setup.active.values():
        if config.name not in answering:
            continue
        words = [(word, "tools that there are") for word in config.only_tools or ()]
        words += [(word, "tools that there are not") for word in config.without_tools]
        for word, which in words:
            if (config.name, word) not in tools:
                text = f"server {config.name!r}: {word!r}, among its {which}, is no tool of it"
                yield Problem(text, config.origin, config.name)
        for rule in config.rules:
            tool = rule.detail.get("tool")
            if isinstance(tool, str) and (config.name, tool) not in tools:
                yield Problem(
                    f"{rule.text!r} never matches: server {config.name!r} has no such tool", rule.origin
                )
