"""What in a tool's own words is meant for others than its user: hidden characters, orders to the model,
names that pass for another's. Pure.

These are signs and no proof: what is found is for a person to read. What is not found is not thereby safe.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from dragoman.schema.shapes import is_array, is_object

Sign: TypeAlias = Literal["hidden", "order", "look-alike"]
_DEEPEST: Final = 64
_AROUND: Final = 30  # characters of a text that a finding shows on each side

# What does not show: zero-width characters, turned text, tags (a hidden alphabet), variation selectors,
# fillers, and controls but for tabs and line ends.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff\U0001d173-\U0001d17a]+"
)
# Where such a character has its place: emoji are joined and coloured by them, some scripts join by them.
_FINE: Final = re.compile("(?<=[\u0600-\u1fff\u2190-\u2bff\U0001f000-\U0001faff])[\u200c\u200d\ufe0e\ufe0f]")
_TAGS: Final = range(0xE0020, 0xE007F)

_ORDERS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), what)
    for pattern, what in (
        (
            (
                r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|all|other|"
                r"system)\b[^.\n]{0,30}\b(?:instructions?|prompts?|rules?|messages?|tools?)"
            ),
            "tells the model to ignore what it was told",
        ),
        (
            (
                r"\b(?:do not|don't|never|without)\b[^.\n]{0,30}\b(?:tell|inform|mention|reveal|show|notify|"
                r"asking|alert)\w*\b[^.\n]{0,25}\b(?:user|human|person|anyone|them)\b"
            ),
            "tells the model to keep something from the user",
        ),
        (
            (
                r"<\s*/?\s*(?:important|system|instructions?|secret|hidden|admin|assistant|sys)\b[^>]{0,40}>|"
                r"\[/?(?:INST|SYSTEM)\]|<\|(?:im_start|system|assistant)"
            ),
            "poses as a part of the prompt",
        ),
        (
            (
                r"(?:~|\$HOME|/home/\w+|/root|/Users/\w+)/\.(?:ssh|aws|gnupg|netrc|npmrc|config|cursor|claude|codex|"
                r"kube|docker|env)\b|\bid_(?:rsa|ed25519|ecdsa)\b|/etc/(?:passwd|shadow)\b|(?<![\w.])\.env\b"
            ),
            "names a file where secrets are kept",
        ),
        (
            (
                r"\b(?:before|prior to|instead of|when(?:ever)?)\b[^.\n]{0,30}\b(?:using|calling|call|use|"
                r"invoking)\b[^.\n]{0,40}\b(?:other|another|any|every|all)\b[^.\n]{0,20}\btools?\b"
            ),
            "gives orders for the use of other tools",
        ),
        (
            (
                r"\byou (?:must|have to|should|are required to)\b[^.\n]{0,20}\b(?:always|first|immediately)\b"
                r"|\b(?:always|must)\b[^.\n]{0,15}\bcall this (?:tool|function)\b"
            ),
            "gives the model an order",
        ),
    )
)

# Letters of other scripts that look like a Latin one, and pairs that read as one letter.
_LATIN: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝьвкмнтзбгпаВЕКМНОРСТХАІЅЈαοινρτυκχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ01|!",
    "aeopcyxijshdqwbbkmht36rnaBEKMHOPCTXAISJaoivptukxABEZHIKMNOPTYXolll",
)
_PAIRS: Final = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("i", "l"))


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A sign at a place such as `description` or `inputSchema.properties.id.description`.

    `text` says what it is, `near` shows where, with what is hidden written as `U+XXXX`.
    """

    server: str
    tool: str
    place: str
    sign: Sign
    text: str
    near: str = ""

    def __str__(self) -> str:
        shown = f": {self.near}" if self.near else ""
        return f"{self.server}/{self.tool}: {self.place}: {self.text}{shown}"


def inspect(server: str, tool: Mapping[str, Any]) -> list[Finding]:
    """What is suspicious in one tool, in the wire form of `tools/list`."""
    name = visible(str(tool.get("name", "")))
    found: list[Finding] = []
    for place, text in _texts(tool):
        found += (Finding(server, name, place, *sign) for sign in _signs(text, is_name=place == "name"))
    return found


def look_alikes(tools: Iterable[tuple[str, str]]) -> list[Finding]:
    """Pairs of names, of one server's tools or of different servers', that a reader takes for the same.

    `tools` are pairs of server and tool. Names that are equal are no deceit: every host tells them apart.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for server, tool in sorted(set(tools)):
        groups.setdefault(skeleton(tool), []).append((server, tool))
    found: list[Finding] = []
    for group in groups.values():
        first_server, first = group[0]
        for server, tool in group[1:]:
            if tool != first:
                text = f"looks like {visible(first)!r} of {first_server!r}"
                found.append(Finding(server, visible(tool), "name", "look-alike", text))
    return found


def skeleton(name: str) -> str:
    """What a reader sees of a name: two names with one skeleton are easily taken for each other."""
    plain = _HIDDEN.sub("", unicodedata.normalize("NFKC", name))
    plain = "".join(char for char in unicodedata.normalize("NFD", plain) if not unicodedata.combining(char))
    plain = re.sub(r"[\s._-]+", "_", plain.translate(_LATIN).lower()).strip("_")
    for pair, one in _PAIRS:
        plain = plain.replace(pair, one)
    return plain


def visible(text: str) -> str:
    """The text with what does not show written as `U+XXXX`."""
    return _HIDDEN.sub(lambda match: "".join(f"[U+{ord(char):04X}]" for char in match[0]), text)


def _signs(text: str, *, is_name: bool) -> Iterator[tuple[Sign, str, str]]:
    plain = _FINE.sub("", text)
    for match in _HIDDEN.finditer(plain):
        yield "hidden", _hidden(match[0]), _near(plain, start=match.start(), end=match.end())
    for pattern, what in _ORDERS:
        if (said := pattern.search(text)) is not None:
            yield "order", what, _near(text, start=said.start(), end=said.end())
    for word in re.findall(r"[^\W\d_]+", text):
        scripts = _scripts(word)
        if len(scripts) > 1:
            yield "look-alike", f"mixes {' and '.join(sorted(scripts))} letters in one word", visible(word)
        elif is_name and scripts - {"Latin"} and skeleton(word).isascii():
            yield "look-alike", f"{next(iter(scripts))} letters that read as Latin ones", visible(word)


def _hidden(run: str) -> str:
    said = "".join(chr(ord(char) - 0xE0000) for char in run if ord(char) in _TAGS)
    count = f"{len(run)} characters that do not show" if len(run) > 1 else "a character that does not show"
    return f"{count}, which read {said!r}" if said else count


def _scripts(word: str) -> set[str]:
    """The scripts of a word among those whose letters look alike."""
    if word.isascii():
        return {"Latin"}
    names = (unicodedata.name(char, "").partition(" ")[0] for char in word)
    return {name.title() for name in names if name in ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")}


def _near(text: str, *, start: int, end: int) -> str:
    before, after = max(0, start - _AROUND), min(len(text), end + _AROUND)
    part = " ".join(visible(text[before:after]).split())
    return f"{'…' if before else ''}{part}{'…' if after < len(text) else ''}"


def _texts(tool: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every text of a tool that a model may be shown, with its place; names of members are texts too."""
    for member in ("name", "title", "description", "inputSchema", "outputSchema", "annotations"):
        if member in tool:
            yield from _walk(tool[member], member, depth=0)


def _walk(value: Any, place: str, *, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif depth < _DEEPEST and is_object(value):
        for name, member in value.items():
            if _HIDDEN.search(name):
                yield f"{place}.{visible(name)}", name
            yield from _walk(member, f"{place}.{visible(name)}", depth=depth + 1)
    elif depth < _DEEPEST and is_array(value):
        for index, member in enumerate(value):
            yield from _walk(member, f"{place}[{index}]", depth=depth + 1)
