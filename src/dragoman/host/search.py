"""Search among deferred tools: BM25 over their names, descriptions and arguments, or a pattern. Pure.

Texts are cut where identifiers are (`getUserName`, `get_user_name`), and scripts that set no spaces, or
glue particles to their words, into pairs of characters. It knows no host and no model.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from msgspec import UNSET

from dragoman.errors import UsageError
from dragoman.host.models.base import Shown
from dragoman.schema.errors import SchemaError
from dragoman.schema.shapes import is_object
from dragoman.schema.validate import Validator

LIMIT: Final = 5
"""How many tools one search gives, if nothing else is said."""
LONGEST_PATTERN: Final = 200
"""Characters of a pattern, as Anthropic's tool search has it."""

# The two constants of BM25 at the values that its literature has as usual.
_SATURATION: Final = 1.2
_LENGTH: Final = 0.75
# A word of a tool's name says more of it than one of the description of an argument.
_NAME: Final = 4.0
_DESCRIPTION: Final = 1.0
_ARGUMENT: Final = 1.0
_ARGUMENT_TEXT: Final = 0.5

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Marks above and below letters are no letters to `re`: the scripts that write vowels so are named.
_WORD: Final = re.compile("(?:[^\\W_]|[\u0300-\u036f\u0900-\u109f\u1780-\u17ff])+")
# Han, kana, Hangul, Thai, Lao, Khmer, Myanmar: what is between two spaces there is more than a word.
_PAIRED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Found:
    """A tool that a search gave. The higher the `score`, the better it fits; of a pattern it is 1."""

    tool: Shown
    score: float


@dataclass(frozen=True, slots=True)
class _Document:
    tool: Shown
    weights: Mapping[str, float]
    length: float


class ToolIndex:
    """The tools of all servers, to be searched. The same tools give the same answers in any order."""

    def __init__(self, tools: Iterable[Shown]) -> None:
        self._documents = [_document(tool) for tool in sorted(tools, key=lambda tool: tool.name)]
        self._with: Counter[str] = Counter()
        for document in self._documents:
            self._with.update(document.weights.keys())
        total = sum(document.length for document in self._documents)
        self._average = total / len(self._documents) if total else 1.0

    def __len__(self) -> int:
        """How many tools there are."""
        return len(self._documents)

    def search(self, query: str, *, limit: int = LIMIT) -> list[Found]:
        """The tools that fit a query best, best first; of equals, by name. None fits: an empty list."""
        terms = list(dict.fromkeys(words(query)))
        found = [Found(document.tool, self._score(document, terms)) for document in self._documents]
        hits = [item for item in found if item.score > 0] or self._beginning(terms)
        return sorted(hits, key=lambda item: (-item.score, item.tool.name))[:limit]

    def match(self, pattern: str, *, limit: int = LIMIT) -> list[Found]:
        """The tools in whose name, description or arguments a regular expression is found, by name.

        It runs in time linear in the text. Case counts unless the pattern begins with `(?i)`.

        Raises:
            UsageError: the pattern is too long or none.
        """
        if len(pattern) > LONGEST_PATTERN:
            raise UsageError(
                f"pattern: expected at most {LONGEST_PATTERN} characters; received {len(pattern)}"
            )
        finder = Validator({"type": "string", "pattern": pattern})
        try:
            finder.check()
        except SchemaError as exc:
            raise UsageError(f"pattern {pattern!r}: expected a regular expression: {exc}") from None
        hits = [item.tool for item in self._documents if any(map(finder.is_valid, _texts(item.tool)))]
        return [Found(tool, 1.0) for tool in hits[:limit]]

    def _score(self, document: _Document, terms: Iterable[str]) -> float:
        score = 0.0
        norm = _SATURATION * (1 - _LENGTH + _LENGTH * document.length / self._average)
        for term in terms:
            weight = document.weights.get(term)
            if weight is not None:
                score += self._rarity(term) * weight * (_SATURATION + 1) / (weight + norm)
        return score

    def _rarity(self, term: str) -> float:
        having = self._with[term]
        return math.log(1 + (len(self._documents) - having + 0.5) / (having + 0.5))

    def _beginning(self, terms: Iterable[str]) -> list[Found]:
        """For a query of which no word is known: the tools with words that begin like one of its own."""
        begun = [term for term in terms if len(term) > 1]
        return [
            Found(document.tool, float(count))
            for document in self._documents
            if (count := sum(any(word.startswith(term) for word in document.weights) for term in begun))
        ]


def words(text: str) -> Iterator[str]:
    """The words of a text or an identifier, folded so that forms of one word meet."""
    plain = unicodedata.normalize("NFKC", _CAMEL.sub(" ", unicodedata.normalize("NFKC", text))).casefold()
    for found in _WORD.finditer(plain):
        at = 0
        word = found[0]
        for run in _PAIRED.finditer(word):
            if run.start() > at:
                yield _singular(word[at : run.start()])
            yield from _pairs(run[0])
            at = run.end()
        if at < len(word):
            yield _singular(word[at:])


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
        return
    for first, second in pairwise(run):
        yield first + second
    # A single ideograph is a word of its own often enough.
    yield from _HAN.findall(run)


def _singular(word: str) -> str:
    """An English word without the `s` that makes it many; others are too short, or end otherwise."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return (
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
    )


def _document(tool: Shown) -> _Document:
    weights: dict[str, float] = {}
    for text, weight in _weighted(tool):
        for word in words(text):
            weights[word] = weights.get(word, 0.0) + weight
    return _Document(tool, weights, sum(weights.values()))


def _weighted(shown: Shown) -> Iterator[tuple[str, float]]:
    tool = shown.tool
    yield shown.name if tool.name in shown.name else f"{shown.name} {tool.name}", _NAME
    if tool.title is not UNSET:
        yield tool.title, _NAME
    if tool.description is not UNSET:
        yield tool.description, _DESCRIPTION
    for name, schema in _properties(tool.input_schema):
        yield name, _ARGUMENT
        said = schema.get("description")
        if isinstance(said, str):
            yield said, _ARGUMENT_TEXT


def _texts(shown: Shown) -> Iterator[str]:
    return (text for text, _ in _weighted(shown))


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    properties = schema.get("properties")
    for name, member in properties.items() if is_object(properties) else ():
        yield name, member if is_object(member) else {}
