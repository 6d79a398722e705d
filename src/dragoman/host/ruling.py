"""The decision on a call: what the host's rules say, what Dragoman's own say, and what a person said before.

Pure. Of two words on one call the stricter holds; a yes for the session answers questions and no rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.host.config.record import Problem, Rule
from dragoman.host.dialects import dialect
from dragoman.host.files import HostFiles
from dragoman.host.naming import HostNames
from dragoman.host.permissions import own
from dragoman.host.permissions.base import Call, Decision
from dragoman.host.permissions.checking import never
from dragoman.model import Tool
from dragoman.protocol.naming import Name


def call_of(name: Name, arguments: Mapping[str, Any], *, tool: Tool | None) -> Call:
    """A call with all that rules may look at; `tool` is None where its server cannot be asked."""
    if tool is None:
        return Call(name, arguments)
    hints: dict[str, Any] = {} if tool.annotations is UNSET else msgspec.to_builtins(tool.annotations)
    return Call(name, arguments, hints, {} if tool.meta is UNSET else tool.meta)


def decide(files: HostFiles, call: Call, *, now: float = 0.0, grants: tuple[Rule, ...] = ()) -> Decision:
    """Decide on one call by all that the files say.

    `now` is seconds since the epoch; `grants` are the tools for which a person said yes for this session.
    """
    situation = files.situation(now)
    judge = dialect(files.host).judge
    decision = judge(files.setup, call, situation=situation)
    if files.outside is not None:  # nobody trusted the folder: its files can refuse, and allow nothing
        decision = own.stricter(decision, judge(files.outside, call, situation=situation))
    mine = own.judge(files.own, call, situation=situation)
    if mine.rule is not None:  # where none of them speaks of the call, it is the host's alone
        decision = own.stricter(decision, mine)
    if decision.effect != "ask" or decision.once:
        return decision
    given = next((rule for rule in grants if own.matches(rule, call, setup=files.own, now=now)), None)
    if given is None:
        return decision
    return Decision("allow", f"{decision.why}; answered yes for this session", given, decision.lost)


def hides(files: HostFiles, name: Name, *, tool: Tool | None) -> bool:
    """Whether the model does not see the tool: its host hides what is refused whatever the arguments are."""
    return decide(files, call_of(name, {}, tool=tool)).hidden


def pointless(files: HostFiles, names: HostNames) -> Iterator[Problem]:
    """Rules that never match, of the host's and of Dragoman's own, by the tools that are known."""
    yield from never(files.setup, tuple(names))
    yield from own.check(files.own.rules, trusted_servers=files.own.settings.get("trusted_servers", ()))
