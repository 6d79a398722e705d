"""URI templates (RFC 6570) read backwards: which variables a URI gives to a template.

Linear in the length of the URI for any template, with no backtracking. What a variable gives is
decoded once, and never a way out of the place where it stands. It refuses to know what a URI is of.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

from dragoman.errors import UsageError

MAX_URI: Final = 8192  # characters; a longer one is no resource's

_KEPT: Final = "%:/?#[]@!$&'()*+,;=-._~"  # RFC 3986: reserved, unreserved, and what is encoded already
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_START: Final = _LETTERS | _DIGITS | {"_"}
_NAME: Final = _START | {"."}
_SCHEME: Final = _LETTERS | _DIGITS | {"+", "-", "."}
_DOTS: Final = frozenset({".", ".."})


class _Variable(Struct, frozen=True):
    """`{x}`; with `slash` `{/x}`, which may be absent; with `wide` `{+x}`, which may hold slashes."""

    name: str
    slash: bool = False
    wide: bool = False


_Part = str | _Variable
_Row = list[int]


class UriTemplate:
    """A template, ready to be matched.

    `{x}` is one segment or a part of one; `{+x}` may hold slashes; `{/x}` is a segment that may be
    absent; `{?q,page}` and `{&page}`, at the end, are a query of which every part may be absent.

    Raises:
        UsageError: it is no URI template, or uses what cannot be read backwards.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts, self._query = _Reader(text).read()
        self._fixed = ""
        if self._query and "?" in "".join(part for part in self._parts if isinstance(part, str)):
            self._parts, self._fixed = _split_query(text, self._parts)
        self._stop = frozenset("?#") if self._query else frozenset[str]()
        path = [part for part in self._parts if isinstance(part, _Variable)]
        self.variables = (*(part.name for part in path), *self._query)
        """Their names, in their order."""
        self.optional = frozenset({*(part.name for part in path if part.slash), *self._query})
        """Those that a URI need not give."""
        self._check()

    def __repr__(self) -> str:
        return f"<UriTemplate {self.text}>"

    def _check(self) -> None:
        start = self._parts[0] if self._parts else ""
        if not isinstance(start, str) or not has_scheme(start):
            raise UsageError(f"{self.text!r} needs a scheme, as in notes://{{name}}")
        for name in self.variables:
            if self.variables.count(name) > 1:
                raise UsageError(f"{self.text!r} has {{{name}}} twice")
        for left, right in zip(self._parts, self._parts[1:], strict=False):
            if isinstance(left, _Variable) and isinstance(right, _Variable) and not right.slash:
                raise UsageError(f"{self.text!r}: nothing tells {{{left.name}}} from {{{right.name}}}")

    def match(self, uri: str) -> dict[str, str] | None:
        """What `uri` gives to each variable, percent-decoded once; None if it does not fit.

        Where several readings fit, `{x}` takes as little and `{+x}` as much as it can. Never given:
        to `{x}` a slash, not even an encoded one; to `{x}` and `{+x}` a segment `.` or `..`, a
        leading slash, a backslash or a NUL. So none of them leads out of a folder.
        """
        if len(uri) > MAX_URI:
            return None
        uri = encoded(uri)
        query = ""
        if self._query:
            uri, mark, query = uri.partition("?")
            if mark and not query:
                return None
        given = self._path(uri)
        asked = self._asked(query)
        return None if given is None or asked is None else given | asked

    def _path(self, uri: str) -> dict[str, str] | None:
        first = self._parts[0]
        last = self._parts[-1]
        if not uri.startswith(str(first)) or (isinstance(last, str) and not uri.endswith(last)):
            return None
        rows = self._rows(uri)
        if rows is None:
            return None
        found: dict[str, str] = {}
        at = 0
        for part, row in zip(self._parts, rows, strict=True):
            end = row[at]
            if isinstance(part, _Variable) and end > at:
                value = _safe(uri[at + part.slash : end], wide=part.wide)
                if value is None:
                    return None
                found[part.name] = value
            at = end
        return found

    def _rows(self, uri: str) -> list[_Row] | None:
        """For each part, from each place: where the part ends if all the rest fits from there, or -1."""
        after = [-1] * len(uri) + [len(uri)]
        rows: list[_Row] = []
        for part in reversed(self._parts):
            if isinstance(part, str):
                after = _literal_row(uri, part, after=after)
            else:
                after = _variable_row(uri, part, after=after, stop=self._stop)
            rows.append(after)
        rows.reverse()
        return None if rows[0][0] < 0 else rows

    def _asked(self, query: str) -> dict[str, str] | None:
        """What the query gives; None for one that this template does not make."""
        found: dict[str, str] = {}
        if self._fixed:
            if query != self._fixed and not query.startswith(f"{self._fixed}&"):
                return None
            query = query[len(self._fixed) + 1 :]
        for pair in query.split("&") if query else ():
            name, equals, raw = pair.partition("=")
            value = _decoded(raw)
            if name not in self._query or name in found or not equals or value is None or "\0" in value:
                return None
            found[name] = value
        return found


def has_scheme(uri: str) -> bool:
    """Whether a URI, or what a template starts with, says its scheme (RFC 3986, 3.1)."""
    scheme, colon, _ = uri.partition(":")
    return bool(colon and scheme) and scheme[0] in _LETTERS and _SCHEME.issuperset(scheme)


def encoded(uri: str) -> str:
    """`uri` as RFC 3986 writes it: what no URI may hold is percent-encoded, and nothing twice."""
    text = quote(uri, safe=_KEPT)
    if "%" not in text:
        return text
    head, *rest = text.split("%")
    return "%".join([head, *(part[:2].upper() + part[2:] for part in rest)])


def _literal_row(uri: str, text: str, *, after: _Row) -> _Row:
    row = [-1] * len(after)
    at = uri.find(text)
    while at >= 0:
        if after[at + len(text)] >= 0:
            row[at] = at + len(text)
        at = uri.find(text, at + 1)
    return row


def _variable_row(uri: str, part: _Variable, *, after: _Row, stop: frozenset[str]) -> _Row:
    row = [-1] * len(after)
    stop = stop if part.wide else stop | {"/", "?", "#"}
    best = -1  # where a value ends that starts further on, if all between is allowed
    for at in range(len(uri) - 1, -1, -1):
        if part.slash and uri[at] == "/":
            row[at] = best
        if uri[at] in stop:
            best = -1
        elif after[at + 1] >= 0 and not (part.wide and best >= 0):
            best = at + 1
        if not part.slash:
            row[at] = best
    if part.slash:  # it may be absent
        row = [at if end < 0 and after[at] >= 0 else end for at, end in enumerate(row)]
    return row


def _safe(raw: str, *, wide: bool) -> str | None:
    """The decoded value; None if it could lead out of the place where the variable stands."""
    value = _decoded(raw)
    if value is None or "\0" in value or "\\" in value:
        return None
    segments = value.split("/")
    if _DOTS.intersection(segments) or not segments[0] or (len(segments) > 1 and not wide):
        return None
    return value


def _decoded(raw: str) -> str | None:
    """Percent-decoded once; None for a `%` without two digits, and for what is not UTF-8."""
    if "%" not in raw:
        return raw
    for part in raw.split("%")[1:]:
        if len(part) < 2 or not _HEX.issuperset(part[:2]):
            return None
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        return None


def _split_query(text: str, parts: list[_Part]) -> tuple[list[_Part], str]:
    """The parts before a literal `?`, and the literal query after it."""
    *path, last = parts
    before, mark, fixed = last.partition("?") if isinstance(last, str) else ("", "", "")
    if not mark or any("?" in part for part in path if isinstance(part, str)):
        raise UsageError(f"{text!r}: a query that goes on with {{&...}} begins with plain text, as in ?a=1")
    return [*path, *([before] if before else [])], fixed


class _Reader:
    """A template, taken apart from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[_Part] = []
        self._query: list[str] = []

    def read(self) -> tuple[list[_Part], list[str]]:
        """The parts before the query expressions, and the names in these."""
        rest = self._text
        while rest:
            literal, brace, rest = rest.partition("{")
            if "}" in literal:
                raise self._wrong("a } without its {")
            if literal and self._query:
                raise self._wrong("a query such as {?q} stands at the end")
            self._literal(literal)
            if not brace:
                break
            inside, closed, rest = rest.partition("}")
            if not closed:
                raise self._wrong("a { without its }")
            self._expression(inside)
        return self._parts, self._query

    def _literal(self, text: str) -> None:
        if not text:
            return
        text = encoded(text)
        if self._parts and isinstance(self._parts[-1], str):
            text = f"{self._parts.pop()}{text}"
        self._parts.append(text)

    def _expression(self, inside: str) -> None:
        operator = inside[:1] if inside[:1] and inside[0] not in _START else ""
        names = inside[len(operator) :].split(",")
        for name in names:
            self._check_name(name, inside)
        if operator in ("?", "&"):
            if operator == "?" and self._query:
                raise self._wrong("{?...} stands once; what follows it is {&...}")
            self._query += names
            return
        if self._query:
            raise self._wrong("a query such as {?q} stands at the end")
        if operator not in ("", "+", "/"):
            known = "{x} {+x} {/x} {?x} {&x}"
            raise self._wrong(f"{{{operator}...}} is not read here; these are: {known}")
        for at, name in enumerate(names):
            if at and operator != "/":
                self._literal(",")
            self._parts.append(_Variable(name, slash=operator == "/", wide=operator == "+"))

    def _check_name(self, name: str, inside: str) -> None:
        if name.endswith("*"):
            plain = name[:-1].lstrip("+/")
            raise self._wrong(f"{{{inside}}}: for a value that may hold slashes, write {{+{plain}}}")
        if ":" in name:
            raise self._wrong(f"{{{inside}}}: a prefix does not say what the rest was")
        if not name or not _NAME.issuperset(name):
            raise self._wrong(f"{{{inside}}} names no variable")

    def _wrong(self, what: str) -> UsageError:
        return UsageError(f"{self._text!r} is no URI template that can be matched: {what}")
