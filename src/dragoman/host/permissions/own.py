"""Dragoman's own rules, over those of any host: deny beats ask beats allow, wherever a rule stands.

Pure. What a server says of its own tools counts for allowing them only where the person trusts the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dragoman.host.config.record import Effect, Origin, Problem, Rule, Setup, Situation
from dragoman.host.config.wildcard import fits
from dragoman.host.permissions.base import Call, Decision, ruled, unruled
from dragoman.schema.errors import SchemaError
from dragoman.schema.validate import Validator

_ORDER: Final[tuple[Effect, ...]] = ("deny", "ask", "allow")
# What the protocol says of a hint that is not there.
_ABSENT: Final[Mapping[str, bool]] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}


def judge(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """By the strictest rule that matches; none: ask, and deny where nobody can be asked."""
    hits = [rule for rule in setup.rules if matches(rule, call, setup=setup, now=situation.now)]
    for effect in _ORDER:
        for rule in hits:
            if rule.effect == effect:
                lost = tuple(other for other in hits if other.effect != effect)
                return ruled(rule, can_ask=situation.interactive, lost=lost)
    return unruled(can_ask=situation.interactive)


def matches(rule: Rule, call: Call, *, setup: Setup, now: float = 0.0) -> bool:
    """Whether a rule speaks of a call, now."""
    allow, detail = rule.effect == "allow", rule.detail
    if allow and rule.scope == "project" and setup.settings.get("trusted") is not True:
        return False
    if "until" in detail and now >= detail["until"]:
        return False
    # Of a grant, names and no patterns: a tool may have a `*` in its name.
    if "exactly" in detail:
        return bool(detail["exactly"] == (call.server, call.tool))
    if not (
        fits(str(detail.get("server", "*")), call.server) and fits(str(detail.get("tool", "*")), call.tool)
    ):
        return False
    trusted = call.server in setup.settings.get("trusted_servers", ())
    return _annotated(detail, call, allow=allow, trusted=trusted) and _argued(detail, call, allow=allow)


def _annotated(detail: Mapping[str, Any], call: Call, *, allow: bool, trusted: bool) -> bool:
    wanted = detail.get("annotations")
    if wanted is None:
        return True
    if allow and not trusted:
        return False
    return all(call.annotations.get(name, _ABSENT.get(name)) == value for name, value in wanted.items())


def _argued(detail: Mapping[str, Any], call: Call, *, allow: bool) -> bool:
    """Whether each argument that the rule names is there and fits its schema."""
    wanted = detail.get("arguments")
    if wanted is None:
        return True
    try:
        return not _validator(wanted).errors(dict(call.arguments))
    except SchemaError:
        return not allow


def _validator(wanted: Mapping[str, Any]) -> Validator:
    return Validator({"type": "object", "properties": dict(wanted), "required": list(wanted)})


def grant(call: Call, *, until: float | None = None) -> Rule:
    """The rule that a person's "yes, for this session" comes to: for this tool of this server alone."""
    detail: dict[str, Any] = {"exactly": (call.server, call.tool)}
    if until is not None:
        detail["until"] = until
    return Rule(
        "allow", f"allow {call.server}:{call.tool} for this session", Origin("this session"), "user", detail
    )


def stricter(first: Decision, second: Decision) -> Decision:
    """The stricter of two decisions on one call; of equals the first, which loses the second's rule."""
    winner, loser = (
        (first, second) if _ORDER.index(first.effect) <= _ORDER.index(second.effect) else (second, first)
    )
    lost = [rule for rule in (*winner.lost, loser.rule, *loser.lost) if rule is not None]
    return Decision(
        winner.effect,
        winner.why,
        winner.rule,
        tuple(rule for at, rule in enumerate(lost) if rule != winner.rule and rule not in lost[:at]),
        hidden=first.hidden or second.hidden,
        review=first.review or second.review,
        once=first.once or second.once,
    )


def check(rules: tuple[Rule, ...], *, trusted_servers: tuple[str, ...] = ()) -> Iterator[Problem]:
    """Warn of rules that can never match, or that hold for more than they say."""
    for rule in rules:
        server = str(rule.detail.get("server", "*"))
        by_hints = rule.effect == "allow" and "annotations" in rule.detail
        if by_hints and not any(fits(server, name) for name in trusted_servers):
            why = "none of its servers is in `trusted_servers`"
            yield Problem(f"{rule.text!r} never matches: {why}", rule.origin)
        wanted = rule.detail.get("arguments")
        try:
            if wanted is not None:
                _validator(wanted).errors({})
        except SchemaError as exc:
            what = "never matches" if rule.effect == "allow" else "holds for all arguments"
            yield Problem(f"{rule.text!r} {what}: `arguments` is no JSON Schema: {exc}", rule.origin)
