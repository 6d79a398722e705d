"""What is taken out of a trace's lines before they are hashed and written.

By the names of members, by JSONPath, by the look of values, as header lines, and by value. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

from dragoman.errors import UsageError
from dragoman.host.trace.paths import query
from dragoman.protocol.secrets import FORMS, blotted, plain, secret_member
from dragoman.schema.shapes import is_array, is_object

Redact: TypeAlias = Callable[[str, Any], Any]
"""Given a member's name and value, what to write in place of the value."""

HIDDEN: Final = "[redacted]"
Forms: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

OWN: Final = frozenset({"kind", "call", "at", "ms", "turn", "definition"})
"""Members that a line is known by: they are made here, and kept as they are."""

DEEP: Final = "[nested too deeply to be kept]"

_SHORT: Final = 1024  # characters
_DIGIT: Final = re.compile("[0-9]")
_DEEPEST: Final = 100
_RECALLED: Final = 8  # characters from which on a secret is looked for elsewhere too
_WORD: Final = 16
_REMEMBERED: Final = 256  # secrets at most: each is looked for in every text

# Texts in which a name says it: HTTP headers, environments, options, JSON and what is like it, also where one
# text stands within another, so that its quotes and line ends are escaped. As in `FORMS`, each is linear.
_NOT_YET: Final = rf"(?!{re.escape(HIDDEN)})"
_CALLED: Final = r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|private[_-]?key|access[_-]?key"
_MARKS: Final = ("passw", "passphrase", "secret", "token", "key")
_LINES: Final[Forms] = (
    (
        (
            r"(?im)(?:^|(?<=\\[nr]))[ \t]*"
            r"(?:(?:proxy-)?authorization|(?:set-)?cookie|x-api-key|x-auth-token)[ \t]*:[ \t]*"
            r"(?P<secret>[^\s\\](?:[^\r\n\\]|\\(?![nr\"\\]))*)"
        ),
        ("authorization", "cookie", "x-api-key", "x-auth-token"),
    ),
    (
        rf"(?i)\b[A-Z0-9_]*{_CALLED})[ \t]*=[ \t]*\\*[\"']?(?P<secret>{_NOT_YET}[^\s&\"'#;,\\]{{4,}})",
        _MARKS,
    ),
    (
        (
            rf"(?i)(?<![\w-])--[A-Z0-9-]*{_CALLED})[ \t]+\\*[\"']?"
            rf"(?P<secret>{_NOT_YET}[^\s\"'\\-][^\s\"'\\]{{3,}})"
        ),
        _MARKS,
    ),
    (
        # No numbers: those are a user and a group.
        rf"(?<!\S)(?:-u|--user)[ \t]+[^\s:\"'\\]+:(?P<secret>{_NOT_YET}(?![0-9]+\b)[^\s\"'\\]{{4,}})",
        ("-u ", "--user "),
    ),
    (
        (
            rf"(?i)(?<!\\)\\*[\"'][A-Z0-9_.-]*{_CALLED}|authorization|cookie)\\*[\"']\s*:\s*(?P<quote>\\*[\"'])?"
            rf"(?P<secret>{_NOT_YET}(?(quote)(?:[^\"'\\\n]|\\[^\"'\n])+|[0-9][0-9.]{{3,}}))"
        ),
        (*_MARKS, "authorization", "cookie"),
    ),
    (
        (
            rf"(?im)(?:^|(?<=\\n))[ \t]*(?:-[ \t]+)?[A-Z0-9_.-]*{_CALLED})[ \t]*:[ \t]+[\"']?"
            rf"(?P<secret>{_NOT_YET}[^\s\"'\\]{{4,}})[\"']?[ \t]*(?=$|\\[nr\"])"
        ),
        _MARKS,
    ),
    (
        # What a schema refuses of a call, as the model is told.
        (
            rf"(?im)(?:^|(?<=\\n)|(?<=\"))(?:- )?[A-Z0-9_.\[\]-]*{_CALLED})[A-Z0-9_.\[\]-]{{0,80}}: "
            rf"expected [^\n]{{0,300}}?; received (?P<secret>{_NOT_YET}(?:[^\n\\]|\\[^n\n])+)"
        ),
        _MARKS,
    ),
)


def redact(name: str, value: Any) -> Any:
    """The value, or `[redacted]` where the member's name says that it is a secret."""
    return HIDDEN if secret_member(name) and not isinstance(value, bool | None) else value


def cover(value: Any, hook: Redact) -> Any:
    """A copy of a JSON value with `hook` applied to every member of every object in it."""
    return _cover(value, hook, depth=0)


def _cover(value: Any, hook: Redact, *, depth: int) -> Any:
    if depth > _DEEPEST:
        return DEEP
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return {name: _cover(hook(name, member), hook, depth=depth + 1) for name, member in table.items()}
    if isinstance(value, list | tuple):
        return [_cover(item, hook, depth=depth + 1) for item in cast("list[Any]", value)]
    return value


class Redaction:
    """Rules by which lines are redacted: the common ones, and yours.

    `names` are further members whose values are secrets, `paths` JSONPath queries (RFC 9535) over a line,
    such as `$.block.input.card` or `$..iban`; `patterns` regular expressions (the group `secret`, or the
    whole match), `values` texts to take out wherever they are, `headers` further names of headers. What was
    found under a name or by a path is taken out of other texts too, as far as the last 256 of them go.

    Raises:
        UsageError: a path or a pattern is none, or paths are given and jsonpath-rfc9535 is not installed.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        *,
        paths: Iterable[str] = (),
        patterns: Iterable[str] = (),
        values: Iterable[str] = (),
        headers: Iterable[str] = (),
    ) -> None:
        named = tuple(headers)
        self._names = frozenset(plain(name) for name in (*names, *named))
        self._queries = [query(path) for path in paths]
        try:
            own = [(re.compile(pattern), ("",)) for pattern in patterns]
        except re.error as exc:
            raise UsageError(f"pattern {exc.pattern!r}: {exc.msg}") from None
        self._forms: list[tuple[re.Pattern[str], tuple[str, ...]]] = [
            (re.compile(pattern), marks) for pattern, marks in (*FORMS, *_LINES)
        ]
        self._forms += own
        self._forms += [
            (re.compile(rf"(?im)^[ \t]*{re.escape(name)}[ \t]*:[ \t]*(?P<secret>\S.*)$"), (name.lower(),))
            for name in named
        ]
        marks = sorted({mark for _, several in self._forms for mark in several})
        # One look at a short text, which most are; at a long one, a look for each mark is faster.
        self._marked = re.compile("|".join(map(re.escape, marks)), re.IGNORECASE)
        self._values = {value: None for value in values if value}
        self._seen: dict[str, None] = {}  # in the order in which they were found

    def __call__(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a line with `[redacted]` in place of its secrets."""
        kept: dict[str, Any] = cover(line, self._member)
        for wanted in self._queries:
            for place in wanted.places(kept):
                self._hide(kept, place)
        return {name: value if name in OWN else self._clean(value) for name, value in kept.items()}

    def _member(self, name: str, value: Any) -> Any:
        if not (secret_member(name) or plain(name) in self._names):
            return self._pairs(value) if isinstance(value, list | tuple) else value
        if value is None or isinstance(value, bool):
            return value
        self._learn(value)
        return HIDDEN

    def _pairs(self, value: Any) -> Any:
        """Headers as lists of pairs, or of objects with name and value; options with theirs behind them."""
        items = [self._pair(item) for item in cast("list[Any]", value)]
        for at, word in enumerate(items[:-1]):
            if isinstance(word, str) and word.startswith("-") and isinstance(items[at + 1], str):
                option = word.lstrip("-")
                if option.replace("-", "").replace("_", "").isalnum() and not items[at + 1].startswith("-"):
                    items[at + 1] = self._member(option, items[at + 1])
        return items

    def _pair(self, item: Any) -> Any:
        if is_array(item) and len(item) == 2 and isinstance(item[0], str):
            return [item[0], self._member(item[0], item[1])]
        if is_object(item) and isinstance(item.get("value"), str):
            name = item.get("name", item.get("key"))
            if isinstance(name, str):
                return {**item, "value": self._member(name, item["value"])}
        return item

    def _learn(self, value: Any, *, depth: int = 0) -> None:
        """Remember a secret, to know it again in another text."""
        if is_object(value) or is_array(value):
            if depth > _DEEPEST:
                return
            for inner in value.values() if is_object(value) else value:
                if (
                    not isinstance(inner, str) or _DIGIT.search(inner) is not None
                ):  # what is none is no secret
                    self._learn(inner, depth=depth + 1)
            return
        if not isinstance(value, str) or len(value) < _RECALLED or value == HIDDEN:
            return
        if value.isalpha() and len(value) < _WORD:
            return  # `"token": "required"` is no reason to take a word out of every text
        self._seen.pop(value, None)
        self._seen[value] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]

    def _hide(self, line: dict[str, Any], place: tuple[str | int, ...]) -> None:
        if not place:
            line.clear()
            line["line"] = HIDDEN
            return
        holder = cast("dict[str | int, Any]", line)  # or a list, which is asked in the same way
        for part in place[:-1]:
            if not isinstance(holder[part], dict | list):
                return  # an earlier rule has hidden what is around it
            holder = holder[part]
        self._learn(holder[place[-1]])
        holder[place[-1]] = HIDDEN

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if is_array(value):
            return [self._clean(inner) for inner in value]
        if is_object(value):
            return {self._key(name): self._clean(inner) for name, inner in value.items()}
        return value

    def _key(self, name: str) -> str:
        return name if len(name) < _RECALLED else self.text(name)

    def text(self, text: str) -> str:
        """A text with its secrets replaced."""
        for known in (self._values, self._seen):
            for value in known:
                if value in text:
                    text = text.replace(value, HIDDEN)
        if len(text) < _SHORT and self._marked.search(text) is None:
            return text
        low = text.lower()
        for pattern, marks in self._forms:
            if any(mark in low for mark in marks):
                text = pattern.sub(_hidden, text)
        return text


def _hidden(found: re.Match[str]) -> str:
    return blotted(found, HIDDEN)
