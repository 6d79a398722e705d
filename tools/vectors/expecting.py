"""Whether what was found is what a case expects: values as they are, words by what they say.

A case's expectation is written for people in places: `deny (tool hidden from the model)`, `fails to load
(no transport)`. What of it can be decided is decided, and what cannot is said to be not understood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

_UNSAID: Final = re.compile(
    r"\b(?:undocumented|unspecified|unknown|not (?:stated|documented|specified)|uncertain|unclear)\b",
    re.IGNORECASE,
)
NOT_UNDERSTOOD: Final = "(not understood)"

_UNORDERED: Final = frozenset(
    {"servers", "suppressed", "connected", "warnings", "visible", "dropped", "skipped", "excluded", "kept"}
)
WORDS: Final = frozenset({"note", "reason", "comment", "why"})  # for people, about the members beside them

_OUT: Final = (
    *("error", "errors", "disabled", "skipped", "blocked", "dropped", "rejected", "denied", "untrusted"),
    *("filtered", "fails", "fail", "refused", "ignored", "left out", "excluded", "hidden", "removed"),
    *("pending", "mixed", "suppressed", "unsupported", "startup", "never", "not", "no", "invalid"),
    *("missing", "lost", "off", "bad", "prompt", "prompts", "dialog", "waits", "needs approval", "shadowed"),
)
_IN: Final = (
    *("enabled", "load", "connect", "active", "used", "accept", "ok", "start", "allow", "kept", "shown"),
    *(
        "visible",
        "present",
        "http",
        "stdio",
        "sse",
        "approved",
        "works",
        "valid",
        "parse",
        "fine",
        "runs",
        "pass",
        "includ",
    ),
)
_MAYBE: Final = ("may", "can", "might", "possibly", "could")
_STATES: Final = {
    "active": ("approved", "loads", "loaded", "enabled", "connected", "allowed", "active", "used"),
    "pending": (
        "pending",
        "prompt",
        "asks",
        "dialog",
        "not approved",
        "unapproved",
        "await",
        "needs",
        "wait",
    ),
    "rejected": ("rejected", "disabled", "denied", "refused", "off"),
    "disabled": ("disabled", "off"),
    "blocked": ("blocked", "excluded", "not allowed", "denied"),
    "untrusted": ("untrusted", "not loaded", "not started"),
    "shadowed": ("shadowed", "suppressed"),
}
_EFFECTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("allow", "allowed", "allows", "run", "runs", "approve", "approved", "auto"), "allow"),
    **dict.fromkeys(("ask", "asks", "asked", "confirm", "prompt", "prompts", "prompted"), "ask"),
    **dict.fromkeys(("deny", "denied", "denies", "exclude", "excluded", "refuse", "refused"), "deny"),
    **dict.fromkeys(("blocked", "rejected", "reject", "block", "disallow"), "deny"),
    **dict.fromkeys(("hidden", "invisible", "absent"), "hidden"),
}


def differs(expect: Mapping[str, Any], got: Mapping[str, Any], *, unsure: bool = False) -> str | None:
    """The first member in which the two differ, in words; None if they agree.

    A case that is `unsure` may say of a member that nobody knows; of that one nothing is expected.
    """
    said = {name: wanted for name, wanted in expect.items() if name not in WORDS}
    told = {name: wanted for name, wanted in said.items() if not (unsure and _unsaid(wanted))}
    if said and not told:
        return None
    said = told
    if not said:
        return f"nothing to compare in {dict(expect)!r}; {NOT_UNDERSTOOD}"
    for name, wanted in said.items():
        if name not in got:
            return f"{name}: expected {wanted!r}; {NOT_UNDERSTOOD}"
        if not agrees(name, wanted, found=got[name]):
            return f"{name}: expected {wanted!r}; got {got[name]!r}"
    return None


def _unsaid(wanted: object) -> bool:
    return isinstance(wanted, str) and _UNSAID.search(wanted) is not None


def agrees(name: str, wanted: object, *, found: object) -> bool:
    """Whether one member agrees."""
    if isinstance(found, Fact):
        return found.fits(wanted)
    first, second = _members(wanted), _members(found)
    if first is not None and second is not None:
        return _tables(name, first, second)
    one, other = _items(wanted), _items(found)
    if one is not None and other is not None:
        return _lists(name, one, other)
    numbers = (int, float)
    same = type(wanted) is type(found) or (type(wanted) in numbers and type(found) in numbers)
    return same and bool(wanted == found)


def _members(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _items(value: object) -> list[object] | None:
    return [*cast("list[object]", value)] if isinstance(value, list) else None


def _tables(name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Servers and files have to be the same ones; of a record only what is expected is looked at."""
    if name in ("env", "headers"):
        wanted = {key: value for key, value in wanted.items() if value is not None or key in found}
    if name in ("servers", "env", "headers", "skipped", "errors") and wanted.keys() != found.keys():
        return False
    return all(key in found and agrees(key, value, found=found[key]) for key, value in wanted.items())


def _lists(name: str, wanted: list[object], found: list[object]) -> bool:
    if name in _UNORDERED:
        wanted, found = sorted(wanted, key=str), sorted(found, key=str)
    return len(wanted) == len(found) and all(
        agrees(name, one, found=other) for one, other in zip(wanted, found, strict=True)
    )


class Fact:
    """Something found that a case may say in words."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)

    def fits(self, wanted: Any) -> bool:
        """Whether the words say this."""
        return bool(wanted == self.value)


class Effect(Fact):
    """A decision: `allow`, `ask`, `deny` or `hidden`, and whether the tool is out of sight.

    `reviewed` are other words for the same: who is asked instead of a person, where that is known.
    """

    def __init__(self, value: str, *, hidden: bool = False, reviewed: tuple[str, ...] = ()) -> None:
        super().__init__(value)
        self.hidden = hidden
        self.reviewed = reviewed

    def __repr__(self) -> str:
        return f"{self.value}{' (hidden)' if self.hidden else ''}"

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, Mapping):
            return all(self.fits(value) for value in cast("Mapping[str, Any]", wanted).values())
        text = str(wanted).lower()
        if any(word in text for word in self.reviewed):
            return True
        ways = text.split(" or ")
        if len(ways) > 1 and all(effect_in(way) is not None for way in ways):
            return any(self.fits(way) for way in ways)
        word = effect_in(text)
        if word == "hidden":
            return self.hidden
        if word is None:
            return False
        return word == self.value and (self.hidden or re.search(r"(?<!not )\bhidden\b", text) is None)


class Seen(Fact):
    """A tool by itself: what is decided on it, or whether it is there."""

    def __init__(self, effect: Effect) -> None:
        super().__init__(effect)

    def fits(self, wanted: Any) -> bool:
        if re.match(r"(?:visible|shown|kept|listed|offered)\b", str(wanted).lower()) is not None:
            return not self.value.hidden
        return bool(self.value.fits(wanted))


def effect_in(text: str) -> str | None:
    """The decision that words speak of: the first that is named, what is "not allowed" being no allowance."""
    text = re.sub(r"\b(?:not|never) (?:be )?(?:allowed|run|approved)\b", "denied", text.lower())
    text = re.sub(r"\bnot (?:visible|shown|listed|offered)\b", "hidden", text)
    text = re.sub(r"\b(?:no|without(?: an?y?)?) (?:prompt|question|asking|confirmation)\b", "allow", text)
    return next((_EFFECTS[word] for word in re.findall(r"[a-z]+", text) if word in _EFFECTS), None)


class Present(Fact):
    """Whether a server is there and used, or why not.

    `hurt`: something was wrong all the same, which a case may say can cost the whole. `empty`: it cost all
    that there was, and a case may call that the whole.
    """

    def __init__(
        self,
        used: bool,  # it is the one value
        why: str = "",
        *,
        hurt: bool = False,
        empty: bool = False,
    ) -> None:
        super().__init__(used)
        self.empty = empty
        self.why = why
        self.hurt = hurt

    def __repr__(self) -> str:
        return "used" if self.value else f"not used: {self.why}"

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, bool):
            return wanted is self.value
        text = re.sub(
            r"\bnot (?:filtered|excluded|hidden|dropped|blocked|disabled)\b", "kept", str(wanted).lower()
        )
        # What is said first counts: "loads (unknown keys are ignored)".
        for part in (re.split(r"[(;:,]", text, maxsplit=1)[0], text):
            said = " ".join(re.findall(r"[a-z]+", part))
            if self.hurt and any(re.search(rf"\b{word}\b", said) for word in _MAYBE):
                return True
            if any(re.search(rf"\b{word}\b", said) for word in _OUT):
                return not self.value or self.empty
            if any(re.search(rf"\b{word}", said) for word in _IN):
                return bool(self.value)
        return False


class State(Fact):
    """How an entry fares."""

    def fits(self, wanted: Any) -> bool:
        text = str(wanted).lower()
        # What is said first counts: "pending-approval until the dialog is accepted".
        first = re.split(r"[\s(]until|;|,", text, maxsplit=1)[0]
        words = ("without prompt", "without a prompt", "without asking", "no prompt")
        if any(word in first for word in words):
            return bool(self.value == "active")
        if re.search(r"\bnot (?:loaded|started|connected|used|approved)|unapproved", first):
            return bool(self.value != "active")
        return any(word in first for word in _STATES.get(str(self.value), ()))


class Transport(Fact):
    """A transport, and whether the old one is tried where it is not spoken: None where that is not known."""

    def __init__(self, value: str, *, then_sse: bool | None) -> None:
        super().__init__(value)
        self.then_sse = then_sse

    def __repr__(self) -> str:
        return f"{self.value}{', then sse' if self.then_sse else ''}"

    def fits(self, wanted: Any) -> bool:
        text = re.sub(r"[_-]", " ", str(wanted).lower())
        if text in ("remote", "local"):
            return (self.value == "stdio") is (text == "local")
        http = "http" in text or "streamable" in text
        both = http and "sse" in text and re.search(r"(?:no|never|without)[ a-z]* sse", text) is None
        if both or http:
            return self.value == "http" and self.then_sse in (both, None)
        return text.split()[:1] == [self.value]


class Mentions(Fact):
    """Warnings: agrees if there are some where a case expects some, each saying a word of those expected."""

    def fits(self, wanted: Any) -> bool:
        texts = [str(text).lower() for text in self.value]
        if isinstance(wanted, bool):
            return wanted is bool(texts)
        if wanted is None:
            return not texts
        expected = cast("list[object]", wanted) if isinstance(wanted, list) else [wanted]
        if not expected:
            return not texts
        return all(any(_shares(str(one), text) for text in texts) for one in expected)


_ALIKE: Final[Mapping[str, str]] = {"whitespace": "blanks", "spaces": "blanks", "trailing": "blanks"}


def _shares(wanted: str, text: str) -> bool:
    words: list[str] = re.findall(r"[a-z_0-9]{4,}", wanted.lower()) or [wanted.lower()]
    return any(_ALIKE.get(word, word) in text for word in words)


class Child(Fact):
    """The environment of a program: only the variables that a case names, null for one that is not there.

    Names alone are those that are there; with `without`, those that are not.
    """

    def __init__(self, value: Mapping[str, str], *, without: bool = False) -> None:
        super().__init__(value)
        self.without = without

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, str):
            words = [word for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", wanted) if word.isupper()]
            gone = self.without or _is_gone(re.sub(r"\b[A-Z0-9_]+\b", "", wanted))
            return bool(words) and all((word in self.value) is not gone for word in words)
        if isinstance(wanted, list):
            names = cast("list[str]", wanted)
            return all((name in self.value) is not self.without for name in names)
        table = cast("Mapping[str, Any]", wanted)
        return all(self._agrees(name, value) for name, value in table.items())

    def _agrees(self, name: str, value: Any) -> bool:
        if self.without or value is None or value is False or (isinstance(value, str) and _is_gone(value)):
            return name not in self.value
        if value is True or (isinstance(value, str) and value.lower() in ("present", "kept", "set")):
            return name in self.value
        return bool(self.value.get(name) == value)


def _is_gone(text: str) -> bool:
    words = ("removed", "redacted", "absent", "dropped", "not passed", "not inherited", "stripped", "unset")
    return any(word in text.lower() for word in words)


class Says(Fact):
    """Something that is said in words: agrees if each of its own words is among them."""

    def __init__(self, value: Any, *words: str) -> None:
        super().__init__(value)
        self.words = words

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, bool):
            return wanted is bool(self.value)
        text = str(wanted).lower()
        return all(re.search(word, text) is not None for word in self.words)
