"""The names under which a model sees tools, and the way back, kept in a table and never parsed.

Pure. A model's API takes 64 characters of `A-Za-z0-9_-`; servers and tools are called what they like.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

LIMIT: Final = 64
"""The longest name that every model's API takes."""

PREFIX: Final = "mcp__"
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS: Final = (8, 16, 32)


@dataclass(frozen=True, slots=True)
class Name:
    """One tool of one server.

    `model` is what the model sees and calls; `canonical` is the name that permission rules mean,
    `mcp__<server>__<tool>` with the server's part in the allowed characters, uncut and without a hash.
    It is `ambiguous` where two servers' tools come to the same one, as `a` with `b__c` and `a__b` with `c`.
    """

    model: str
    canonical: str
    server: str
    tool: str
    ambiguous: bool = False

    @classmethod
    def of(cls, server: str, tool: str) -> Name:
        """The name of a tool that meets no other: hashed only where it is too long."""
        plain = _plain(server, tool)
        model = plain if len(plain) <= LIMIT else _hashed(server, tool, digits=_DIGITS[0])
        return cls(model, f"{PREFIX}{clean(server)}__{tool}", server, tool)


def clean(part: str) -> str:
    """`part` with every character outside `A-Za-z0-9_-` replaced by `_`."""
    return _OTHER.sub("_", part)


class Names:
    """The table of all tools in sight. The same set of tools gives the same names in any order.

    Every name of `keep`, an earlier table, stands in this one too and means the same tool, whether
    that is among `tools` or not: a name that was given out never comes to mean another tool.
    """

    def __init__(self, tools: Iterable[tuple[str, str]] = (), *, keep: Names | None = None) -> None:
        self._by_model: dict[str, Name] = {}
        self._by_tool: dict[tuple[str, str], Name] = {}
        groups: dict[str, list[tuple[str, str]]] = {}
        kept = {(name.server, name.tool): name for name in keep or ()}
        pairs = sorted(set(tools) - kept.keys())
        self._canonical = Counter(Name.of(*pair).canonical for pair in (*kept, *pairs))
        for name in kept.values():
            self._enter(name)
        for pair in pairs:
            groups.setdefault(Name.of(*pair).model, []).append(pair)
        crowded: list[tuple[str, str]] = []
        for group in groups.values():
            # One that is spelled like this already keeps the name; those that only became like it do not.
            exact = [pair for pair in group if pair == (clean(pair[0]), clean(pair[1]))]
            keeps = group if len(group) == 1 else exact if len(exact) == 1 else []
            for pair in group:
                if pair in keeps and Name.of(*pair).model not in self._by_model:
                    self._enter(Name.of(*pair))
                else:
                    crowded.append(pair)
        for pair in crowded:
            self._enter(self._apart(*pair))

    def _apart(self, server: str, tool: str) -> Name:
        name = Name.of(server, tool)
        tries = (_hashed(server, tool, digits=digits) for digits in _DIGITS)
        return replace(name, model=next(model for model in tries if model not in self._by_model))

    def _enter(self, name: Name) -> None:
        if self._canonical[name.canonical] > 1:
            name = replace(name, ambiguous=True)
        self._by_model[name.model] = name
        self._by_tool[name.server, name.tool] = name

    def find(self, model: str) -> Name | None:
        """The tool that a model means by this name."""
        return self._by_model.get(model)

    def of(self, server: str, tool: str) -> Name | None:
        """The name of a tool of a server."""
        return self._by_tool.get((server, tool))

    def __iter__(self) -> Iterator[Name]:
        """All names, by server and tool."""
        return iter(self._by_tool[pair] for pair in sorted(self._by_tool))

    def __len__(self) -> int:
        """How many tools there are."""
        return len(self._by_model)


def _plain(server: str, tool: str) -> str:
    return f"{PREFIX}{clean(server)}__{clean(tool)}"


def _hashed(server: str, tool: str, *, digits: int) -> str:
    plain = _plain(server, tool)
    # Over the raw pair, which the separator keeps apart whatever is in it: a name's own length goes in.
    raw = f"{len(server)}:{server}:{tool}".encode("utf-8", "surrogatepass")
    return f"{plain[: LIMIT - digits - 1]}_{sha256(raw).hexdigest()[:digits]}"
