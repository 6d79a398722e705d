"""What is found of servers, names and contents, of which a case may say more than one thing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from .expecting import WORDS, Fact, Present, agrees


class Servers(Fact):
    """The servers that are used, by name, and what became of the others: a table, or names alone."""

    def __init__(
        self, used: Mapping[str, Any], others: Mapping[str, Fact], names: Sequence[str] = ()
    ) -> None:
        super().__init__(used)
        self.others = others
        self.names = names or tuple(used)

    def __repr__(self) -> str:
        return f"{self.value!r} and not {dict(self.others)!r}"

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, list):
            return sorted(self.names) == sorted(str(name) for name in cast("list[object]", wanted))
        if not isinstance(wanted, Mapping):
            return Present(bool(self.value)).fits(wanted)
        table = cast("Mapping[str, Any]", wanted)
        return self.value.keys() <= table.keys() and all(
            self._one(name, value) for name, value in table.items()
        )

    def _one(self, name: str, wanted: Any) -> bool:
        if name in self.value:
            facts = self.value[name]
            return agrees(name, wanted, found=facts if isinstance(wanted, Mapping) else Present(True))
        other = self.others.get(name)
        if other is None:
            return wanted is None
        if not isinstance(wanted, Mapping):
            return other.fits(wanted)
        said = {key: value for key, value in cast("Mapping[str, Any]", wanted).items() if key not in WORDS}
        return bool(said) and said.keys() <= _STANDING and all(other.fits(value) for value in said.values())


_STANDING: Final = frozenset(
    {"state", "status", "server", "enabled", "loaded", "connected", "loads", "used", "error", "decision"}
)


class Length(Fact):
    """Something that is there, of which only the length, or a pattern, is asked."""

    def fits(self, wanted: Any) -> bool:
        return (
            wanted in (self.value, str(self.value))
            or re.search(rf"\b{self.value}\b", str(wanted)) is not None
        )


class Blocks(Fact):
    """Content as a list of blocks; a single text may be said as that text, as the API takes it."""

    def __init__(self, value: Any, kind: str = "text") -> None:
        super().__init__(value)
        self.kind = kind

    def fits(self, wanted: Any) -> bool:
        return agrees("content", self._as_list(wanted), found=self._as_list(self.value))

    def _as_list(self, value: Any) -> Any:
        return [{"type": self.kind, "text": value}] if isinstance(value, str) else value


class Json(Fact):
    """A text that is JSON, however it is laid out."""

    def fits(self, wanted: Any) -> bool:
        try:
            return bool(wanted == self.value or json.loads(str(wanted)) == json.loads(str(self.value)))
        except ValueError:
            return False
