"""Whether what was found is what a case expects: values as they are, words by what they say.

A case's expectation is written for people in places: `deny (tool hidden from the model)`, `fails to load
(no transport)`. What of it can be decided is decided, and what cannot is said to be not understood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

NOT_UNDERSTOOD: Final = "(not understood)"

_WORDS: Final = frozenset({"note", "reason"})  # for people, about the members beside them

_OUT: Final = (
    *("error", "not loaded", "not connected", "disabled", "skipped", "blocked", "dropped", "rejected"),
    *("filtered", "fails", "refused", "ignored", "not started", "not configured", "left out", "excluded"),
    *("pending", "not allowed", "mixed", "suppressed", "unsupported", "startup", "does not", "never", "not"),
)
_IN: Final = (
    *("enabled", "load", "connect", "active", "used", "accept", "ok", "start", "allow", "kept", "shown"),
    *("visible", "present", "http", "stdio", "sse", "approved", "works"),
)
_STATES: Final = {
    "active": ("approved", "loads", "enabled", "connected", "allowed", "active", "used"),
    "pending": ("pending", "prompt", "asks"),
    "rejected": ("rejected",),
    "disabled": ("disabled", "off"),
    "blocked": ("blocked", "excluded", "not allowed"),
    "untrusted": ("untrusted", "not loaded"),
    "shadowed": ("shadowed", "suppressed"),
}
_EFFECTS: Final = {"exclude": "deny", "confirm": "ask", "refused": "deny", "prompt": "ask", "run": "allow"}


def differs(expect: Mapping[str, Any], got: Mapping[str, Any]) -> str | None:
    """The first member in which the two differ, in words; None if they agree."""
    said = {name: wanted for name, wanted in expect.items() if name not in _WORDS}
    if not said:
        return f"nothing to compare in {dict(expect)!r}; {NOT_UNDERSTOOD}"
    for name, wanted in said.items():
        if name not in got:
            return f"{name}: expected {wanted!r}; {NOT_UNDERSTOOD}"
        if not agrees(name, wanted, found=got[name]):
            return f"{name}: expected {wanted!r}; got {got[name]!r}"
    return None


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
    if name in ("servers", "env", "headers", "skipped") and wanted.keys() != found.keys():
        return False
    return all(key in found and agrees(key, value, found=found[key]) for key, value in wanted.items())


def _lists(name: str, wanted: list[object], found: list[object]) -> bool:
    if name in ("servers", "suppressed", "connected", "warnings", "visible"):
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
    """A decision: `allow`, `ask`, `deny` or `hidden`, and whether the tool is out of sight."""

    def __init__(self, value: str, *, hidden: bool = False) -> None:
        super().__init__(value)
        self.hidden = hidden

    def __repr__(self) -> str:
        return f"{self.value}{' (hidden)' if self.hidden else ''}"

    def fits(self, wanted: Any) -> bool:
        text = str(wanted).lower()
        word = re.split(r"[\s(:;,]", text, maxsplit=1)[0]
        word = _EFFECTS.get(word, word)
        if word == "hidden":
            return self.hidden
        return word == self.value and (self.hidden or "hidden" not in text)


class Present(Fact):
    """Whether a server is there and used, or why not."""

    def __init__(self, used: bool, why: str = "") -> None:  # it is the one value
        super().__init__(used)
        self.why = why

    def __repr__(self) -> str:
        return "used" if self.value else f"not used: {self.why}"

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, bool):
            return wanted is self.value
        words = re.findall(r"[a-z]+", str(wanted).lower())
        text = " ".join(words)
        if any(re.search(rf"\b{word}\b", text) for word in _OUT):
            return not self.value
        return bool(self.value) and any(re.search(rf"\b{word}", text) for word in _IN)


class State(Fact):
    """How an entry fares."""

    def fits(self, wanted: Any) -> bool:
        text = str(wanted).lower()
        # What is said first counts: "pending-approval until the dialog is accepted".
        first = re.split(r"[\s(]until|;|,", text, maxsplit=1)[0]
        words = ("without prompt", "without asking")
        if any(word in first for word in words):
            return bool(self.value == "active")
        return any(word in first for word in _STATES.get(str(self.value), ()))


class Transport(Fact):
    """A transport, and whether the old one is tried where it is not spoken."""

    def __init__(self, value: str, *, then_sse: bool) -> None:
        super().__init__(value)
        self.then_sse = then_sse

    def __repr__(self) -> str:
        return f"{self.value}{', then sse' if self.then_sse else ''}"

    def fits(self, wanted: Any) -> bool:
        text = str(wanted).lower().replace("_", " ")
        http = "http" in text or "streamable" in text
        both = http and "sse" in text
        if both or http:
            return self.value == "http" and self.then_sse is both
        return text.split()[:1] == [self.value]


class Mentions(Fact):
    """Warnings: agrees if there are some where a case expects some, each saying a word of those expected."""

    def fits(self, wanted: Any) -> bool:
        texts = [str(text).lower() for text in self.value]
        if isinstance(wanted, bool):
            return wanted is bool(texts)
        expected = cast("list[object]", wanted) if isinstance(wanted, list) else [wanted]
        if not expected:
            return not texts
        return all(any(_shares(str(one), text) for text in texts) for one in expected)


def _shares(wanted: str, text: str) -> bool:
    words = re.findall(r"[a-z_0-9]{4,}", wanted.lower()) or [wanted.lower()]
    return any(word in text for word in words)


class Child(Fact):
    """The environment of a program: only the variables that a case names, null for one that is not there."""

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, list):
            return all(name in self.value for name in cast("list[object]", wanted))
        table = cast("Mapping[str, Any]", wanted)
        return all(self.value.get(name) == value for name, value in table.items())


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
