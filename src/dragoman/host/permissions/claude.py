"""Claude Code's rules: deny beats ask beats allow, whichever rule is longer or written first.

Pure. Rules come in with the place they stand at, and "ask" goes out to whoever can ask.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import msgspec

from dragoman.host.config.record import Effect, Problem, Rule, Setup, Situation
from dragoman.host.config.wildcard import fits as glob
from dragoman.host.definition import INTERACTION
from dragoman.host.permissions.base import Call, Decision, asked, unruled
from dragoman.protocol.naming import PREFIX, Name, clean

_ORDER: Final[tuple[Effect, ...]] = ("deny", "ask", "allow")
_EXPONENT: Final = 1e21  # from here on JavaScript writes numbers with one
_ANCHORED: Final = re.compile(r"mcp__(?P<server>[^*]+?)__(?P<tool>.+)", re.DOTALL)


def decide(
    name: Name | str,
    arguments: Mapping[str, Any],
    *,
    rules: Iterable[Rule],
    can_ask: bool,
    trusted: bool = True,
    mode: str = "default",
) -> Decision:
    """Decide on one call.

    `name` is a tool's entry in the table of names, or the full name `mcp__server__tool` of a tool whose
    server has no `__` in it. With nobody to ask, "ask" becomes "deny". While the folder is not
    `trusted`, allow rules of its project file do not count; its deny and ask rules do. `mode` is a
    permission mode of Claude Code; those it does not know decide as "default".
    """
    call = Call(_split(name) if isinstance(name, str) else name, arguments)
    return weigh(call, rules=rules, can_ask=can_ask, trusted=trusted, mode=mode)


def judge(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """Decide on one call by all that Claude Code's files say."""
    trusted = bool(setup.settings.get("trusted", situation.trusted is not False))
    mode = situation.mode or str(setup.settings.get("defaultMode", "default"))
    return weigh(call, rules=setup.rules, can_ask=situation.interactive, trusted=trusted, mode=mode)


def answered(decision: Decision, call: Call, *, yes: bool, by: Literal["person", "program"]) -> Decision:
    """What becomes of a question when it is answered.

    A program that answers in a person's place, as a permission-prompt tool does, cannot say yes for a tool
    that asks for the person.
    """
    if decision.effect != "ask":
        return decision
    if by == "program" and call.meta.get(INTERACTION) is True:
        why = f"{decision.why}; a program cannot answer for the person"
        return replace(decision, effect="deny", why=why, answer=False)
    why = f"{decision.why}; the answer was {'yes' if yes else 'no'}"
    return replace(decision, effect="allow" if yes else "deny", why=why, answer=yes)


def weigh(call: Call, *, rules: Iterable[Rule], can_ask: bool, trusted: bool, mode: str) -> Decision:
    """The order of things: hooks, deny, what has to be asked, the mode, allow, and then a person."""
    matching = [
        rule
        for rule in rules
        if _counts(rule, trusted=trusted) and matches(rule, call.name, arguments=call.arguments)
    ]
    if call.hook == "deny":
        return Decision("deny", "a hook of the host refused the call", lost=tuple(matching))
    first = {effect: next((r for r in matching if r.effect == effect), None) for effect in _ORDER}
    if (rule := first["deny"]) is not None:
        return _ruled(rule, matching)
    if call.connector == "blocked":
        why = "the organisation has blocked this tool of the connector"
        return Decision("deny", why, lost=tuple(matching), hidden=True)
    if (must := _must_ask(call, first["ask"])) is not None:
        return _asking(must, first["ask"], matching=matching, can_ask=can_ask, mode=mode)
    if mode == "bypassPermissions":
        return Decision("allow", "the mode is bypassPermissions, and no rule denies", lost=tuple(matching))
    if (rule := first["allow"]) is not None:
        return _ruled(rule, matching)
    if call.hook == "allow":
        return Decision("allow", "a hook of the host allowed the call, and no rule is against it")
    if mode == "dontAsk":
        return Decision("deny", "no rule matches, and the mode is dontAsk")
    return unruled(can_ask=can_ask)


def _must_ask(call: Call, rule: Rule | None) -> str | None:
    """Why a person is asked whatever else is allowed; None if nothing says so."""
    if rule is not None:
        return f"{_place(rule)} asks first"
    if call.meta.get(INTERACTION) is True:  # the JSON true, and no text that looks like it
        return f"the tool's `_meta` has {INTERACTION}, so a person is asked each time"
    if call.connector == "ask":
        return "the organisation has set this tool of the connector to ask"
    return "a hook of the host asks first" if call.hook == "ask" else None


def _asking(why: str, rule: Rule | None, *, matching: Sequence[Rule], can_ask: bool, mode: str) -> Decision:
    lost = tuple(other for other in matching if rule is None or other.effect != rule.effect)
    if mode == "dontAsk":
        return Decision("deny", f"{why}, and the mode is dontAsk", rule, lost)
    return asked(why, can_ask=can_ask, rule=rule, lost=lost, once=True)


def hidden(name: Name | str, rules: Iterable[Rule]) -> Rule | None:
    """The rule that takes the tool out of the model's sight: a deny without parentheses."""
    tool = _split(name) if isinstance(name, str) else name
    for rule in rules:
        if rule.effect == "deny" and "(" not in rule.text and matches(rule, tool, arguments={}):
            return rule
    return None


def matches(rule: Rule, name: Name, *, arguments: Mapping[str, Any]) -> bool:
    """Whether the rule speaks of this call."""
    if fault(rule.effect, rule.text) is not None:
        return False
    pattern, inside = _parts(rule.text)
    if rule.effect == "allow":
        return inside is None and _allows(pattern, name)
    if not _names(pattern, name):
        return False
    condition = None if inside is None else _condition(inside)
    # What cannot be read restricts nothing: a deny that was meant for some calls then holds for all.
    return condition is None or _has(arguments, condition)


def fault(effect: Effect, text: str) -> str | None:
    """Why a rule of this effect can never match a tool of a server; None if it can, or means other tools."""
    name, inside = _parts(text)
    if not name:
        return "expected a tool's name, or a name with (parameter:value)"
    if effect != "allow":
        return None
    if "*" in name and _ANCHORED.fullmatch(name) is None:
        return "an allow rule may have `*` only behind `mcp__<server>__`"
    if name.startswith(PREFIX) and inside is not None:
        return "an allow rule for a server's tool takes no parentheses"
    return None


def check(
    rules: Iterable[Rule], *, servers: Collection[str] = (), names: Collection[Name] = ()
) -> Iterator[Problem]:
    """Warn of rules that match nothing.

    `servers` are those of the configuration, whether they answer or not; `names` the tools of those
    that do. Rules for tools that no server has (`Bash`, `Read(...)`) are another program's business.
    """
    answering = {name.server for name in names}
    for rule in rules:
        reason = fault(rule.effect, rule.text) or _reason(rule, servers, names=names, answering=answering)
        if reason is not None:
            yield Problem(f"{rule.effect} rule {rule.text!r} never matches: {reason}", rule.origin)
        elif _unread(rule):
            text = f"{rule.effect} rule {rule.text!r} holds for every call: expected (parameter:value)"
            yield Problem(text, rule.origin)


def _unread(rule: Rule) -> bool:
    name, inside = _parts(rule.text)
    return name.startswith(PREFIX) and inside is not None and _condition(inside) is None


def _parts(text: str) -> tuple[str, str | None]:
    """A rule's name, and what stands in parentheses behind it; an open parenthesis reaches to the end."""
    name, bracket, inside = text.strip().partition("(")
    return name.strip(), inside.removesuffix(")") if bracket else None


def _condition(inside: str) -> tuple[str, str] | None:
    parameter, colon, wanted = inside.partition(":")
    return (parameter.strip(), wanted.strip()) if colon and parameter.strip() else None


def _reason(
    rule: Rule, servers: Collection[str], *, names: Collection[Name], answering: Collection[str]
) -> str | None:
    text, _ = _parts(rule.text)
    if not text.startswith(PREFIX) or text == f"{PREFIX}*":
        return None
    if any(_names(text, name) or _allows(text, name) for name in names):
        return None
    meant = [server for server in servers if f"{text}__".startswith(f"{PREFIX}{clean(server)}__")]
    if not meant:
        if "*" in text.partition("__")[2].partition("__")[0]:
            return None
        return f"no server of that name is configured; there is {', '.join(servers) or 'none'}"
    if any(server in answering for server in meant):
        return f"server {meant[0]!r} has no such tool"
    return None


def _counts(rule: Rule, *, trusted: bool) -> bool:
    return trusted or rule.effect != "allow" or rule.scope != "project"


def _ruled(rule: Rule, matching: Sequence[Rule]) -> Decision:
    lost = tuple(other for other in matching if other.effect != rule.effect)
    out_of_sight = any(item.effect == "deny" and "(" not in item.text for item in matching)
    return Decision(rule.effect, _place(rule), rule, lost, hidden=out_of_sight)


def _place(rule: Rule) -> str:
    return f"{rule.text} in permissions.{rule.effect} ({rule.origin})"


def _split(full: str) -> Name:
    server, _, tool = full.removeprefix(PREFIX).partition("__")
    return Name(full, full, server, tool)


def _allows(pattern: str, name: Name) -> bool:
    """Narrow reading: the server's part has to be this very server, whatever its name looks like."""
    if pattern == name.model or (pattern == name.canonical and not name.ambiguous):
        return True
    server = f"{PREFIX}{clean(name.server)}"
    if pattern in (server, f"{server}__*"):
        return True
    head, tail = f"{server}__", pattern[len(server) + 2 :]
    return pattern.startswith(head) and "*" in tail and glob(tail, name.canonical[len(head) :])


def _names(pattern: str, name: Name) -> bool:
    """Wide reading, for deny and ask: any of the tool's names, and any server that the text could mean."""
    whole = (name.canonical, name.model)
    if "*" in pattern:
        return any(glob(pattern, text) for text in whole)
    if pattern in whole:
        return True
    # Not so wide that `mcp` alone, or the front part of a tool's name, counts as a server's.
    longest = len(PREFIX) + len(clean(name.server))
    fits = len(PREFIX) < len(pattern) <= longest and pattern.startswith(PREFIX)
    return fits and any(text.startswith(f"{pattern}__") for text in whole)


def _has(arguments: Mapping[str, Any], condition: tuple[str, str]) -> bool:
    """Whether a top-level parameter has the value; one that is left out, an object or a list never has."""
    parameter, wanted = condition
    if parameter not in arguments:
        return False
    value = arguments[parameter]
    if isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return False
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXPONENT:
        value = int(value)  # JSON has one kind of number, and the host writes 1.0 as 1
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return glob(wanted, text)
