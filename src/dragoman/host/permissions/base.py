"""What every host's rules decide on, and what a decision is.

Pure, and knows no host: a call with all that rules may look at, and the answer with its reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dragoman.host.config.record import Effect, Rule, Setup
from dragoman.protocol.naming import Name

Hook: TypeAlias = Literal["", "allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may run or not.

    `annotations` and `meta` are the tool's own, which its server says of itself. `hook` is what a hook
    of the host said before; `connector` what an organisation set for a tool of an account's connector.
    """

    name: Name
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hook: Hook = ""
    connector: Literal["", "ask", "blocked"] = ""

    @property
    def server(self) -> str:
        """The server, by its name in the configuration."""
        return self.name.server

    @property
    def tool(self) -> str:
        """The tool, by the server's own name for it."""
        return self.name.tool


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may run.

    `rule` is the one that decided, None where none matched; `lost` are those that matched too and
    were weaker. `why` is a sentence for a person, with the rule's place. `answer` is what a person said
    who was asked, None while nobody was. A tool that is `hidden` is not shown to the model; with
    `review`, the result is shown to a person before the model sees it. A yes counts for this call alone
    where the question is asked `once`: its host asks each time, whatever was said before.
    """

    effect: Effect
    why: str
    rule: Rule | None = None
    lost: tuple[Rule, ...] = ()
    answer: bool | None = None
    hidden: bool = False
    review: bool = False
    once: bool = False


def unruled(*, can_ask: bool) -> Decision:
    """No rule matches: a person is asked, and where there is none the answer is no."""
    if can_ask:
        return Decision("ask", "no rule matches, so a person is asked")
    return Decision("deny", "no rule matches, and there is nobody to ask")


def asked(
    why: str,
    *,
    can_ask: bool,
    rule: Rule | None = None,
    lost: tuple[Rule, ...] = (),
    once: bool | None = None,
) -> Decision:
    """A person is asked, and where there is none the answer is no.

    Each time, if `once`; where that is not said, if it is a rule that asks.
    """
    if can_ask:
        return Decision("ask", why, rule, lost, once=rule is not None if once is None else once)
    return Decision("deny", f"{why}, and there is nobody to ask", rule, lost)


def said(rule: Rule) -> str:
    """A rule and its place, in words."""
    return f"{rule.text} ({rule.origin})"


def ruled(rule: Rule, *, can_ask: bool, lost: tuple[Rule, ...] = ()) -> Decision:
    """What a rule says."""
    if rule.effect == "ask":
        return asked(f"{said(rule)} asks first", can_ask=can_ask, rule=rule, lost=lost)
    return Decision(rule.effect, said(rule), rule, lost, hidden=rule.effect == "deny")


def unlisted(setup: Setup, call: Call) -> Decision | None:
    """The refusal of a tool that its server's entry does not let the host have; None for all others."""
    config = setup.active.get(call.server)
    if config is None or config.lists(call.tool):
        return None
    return Decision("deny", f"{call.tool!r} is not among the tools of {config.origin}", hidden=True)
