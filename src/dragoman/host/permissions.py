"""May this call run? One pure function over rules, with the rule that decided and those that lost.

It knows no file and no person: rules come in with the place they stand at, and "ask" goes out to
whoever can ask. Deny beats ask beats allow; which rule is longer or written first is nothing to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from dragoman.host.config.record import Effect, Problem, Rule
from dragoman.protocol.naming import PREFIX, Name, clean

_ORDER: Final[tuple[Effect, ...]] = ("deny", "ask", "allow")
_ANCHORED: Final = re.compile(r"mcp__(?P<server>[^*]+?)__(?P<tool>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may run.

    `rule` is the one that decided, None where none matched; `lost` are those that matched too and
    were weaker. `why` is a sentence for a person, with the rule's place. `answer` is what a person said
    who was asked, None while nobody was.
    """

    effect: Effect
    why: str
    rule: Rule | None = None
    lost: tuple[Rule, ...] = ()
    answer: bool | None = None


def decide(
    name: Name | str,
    arguments: Mapping[str, Any],
    *,
    rules: Iterable[Rule],
    can_ask: bool,
    trusted: bool = True,
) -> Decision:
    """Decide on one call.

    `name` is a tool's entry in the table of names, or the full name `mcp__server__tool` of a tool whose
    server has no `__` in it. With nobody to ask, "ask" becomes "deny". While the folder is not
    `trusted`, allow rules of its project file do not count; its deny and ask rules do.
    """
    tool = _split(name) if isinstance(name, str) else name
    matching = [
        rule for rule in rules if _counts(rule, trusted=trusted) and matches(rule, tool, arguments=arguments)
    ]
    for effect in _ORDER:
        hits = [rule for rule in matching if rule.effect == effect]
        if hits:
            lost = tuple(rule for rule in matching if rule.effect != effect)
            return _ruled(effect, hits[0], lost=lost, can_ask=can_ask)
    if can_ask:
        return Decision("ask", "no rule matches, so a person is asked")
    return Decision("deny", "no rule matches, and there is nobody to ask")


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


def _ruled(effect: Effect, rule: Rule, *, lost: tuple[Rule, ...], can_ask: bool) -> Decision:
    said = f"{rule.text} in permissions.{rule.effect} ({rule.origin})"
    if effect == "ask" and not can_ask:
        return Decision("deny", f"{said} asks first, and there is nobody to ask", rule, lost)
    return Decision(effect, said, rule, lost)


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


def glob(pattern: str, text: str) -> bool:
    """Whether `text` as a whole fits `pattern`, in which `*` stands for any characters.

    Takes time in proportion to the product of both lengths, whatever the pattern.
    """
    first, *middle = pattern.split("*")
    if not middle:
        return pattern == text
    *middle, last = middle
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _has(arguments: Mapping[str, Any], condition: tuple[str, str]) -> bool:
    """Whether a top-level parameter has the value; one that is left out, an object or a list never has."""
    parameter, wanted = condition
    if parameter not in arguments:
        return False
    value = arguments[parameter]
    if isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return False
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return glob(wanted, text)
