"""What is taken out of recorded frames: secrets by the names they stand under, by their look, and by value.

Pure. A frame keeps its shape; a schema that describes a `password` stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from dragoman.protocol.secrets import NAMES, PATTERNS, blotted, plain
from dragoman.schema.shapes import is_array, is_object

REDACTED: Final = "[redacted]"

_RECALLED: Final = 8  # characters from which on a secret is looked for elsewhere too


class Redaction:
    """Rules by which frames are redacted; the common ones, and yours.

    `names` are further members whose text or number is a secret, `patterns` regular expressions (the group
    `secret`, or the whole match), `values` texts to take out wherever they are. What was found under a
    name is taken out of all later frames too.

    Raises:
        ValueError: a pattern is none.
    """

    def __init__(
        self, names: Iterable[str] = (), *, patterns: Iterable[str] = (), values: Iterable[str] = ()
    ) -> None:
        self._names = NAMES | {plain(name) for name in names}
        try:
            self._patterns = [re.compile(pattern) for pattern in (*PATTERNS, *patterns)]
        except re.error as exc:
            raise ValueError(f"pattern {exc.pattern!r}: {exc.msg}") from None
        self._values = {value for value in values if value}

    def __call__(self, value: Any) -> Any:
        """The JSON value with its secrets replaced by `[redacted]`."""
        self._learn(value)
        return self._clean(value)

    def _learn(self, value: Any) -> None:
        if is_object(value):
            for name, inner in value.items():
                if plain(name) in self._names and isinstance(inner, str) and len(inner) >= _RECALLED:
                    if inner != REDACTED:
                        self._values.add(inner)
                self._learn(inner)
        elif is_array(value):
            for inner in value:
                self._learn(inner)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if is_array(value):
            return [self._clean(inner) for inner in value]
        if is_object(value):
            return {name: self._member(name, inner) for name, inner in value.items()}
        return value

    def _member(self, name: str, value: Any) -> Any:
        secret = isinstance(value, str | int | float) and not isinstance(value, bool)
        return REDACTED if secret and plain(name) in self._names else self._clean(value)

    def text(self, text: str) -> str:
        """The text with its secrets replaced."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        for pattern in self._patterns:
            text = pattern.sub(_redacted, text)
        return text


def _redacted(found: re.Match[str]) -> str:
    return blotted(found, REDACTED)
