"""The names by which each host's model sees tools, and the way back, kept in a table and never parsed.

Pure. What is known of each host is one row of `CONVENTIONS`; where nothing is known of what a host does
with two tools of one name, the second and all further ones end in a hash, so that each has its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1, sha256
from typing import Final

from dragoman.protocol.naming import LIMIT, PREFIX, Name, Names, clean

VSCODE_TOOLS: Final = 128
"""How many tools VS Code gives to a model in one request, before it groups them."""

_CODEX: Final = re.compile(r"[^A-Za-z0-9_]")
_GEMINI: Final = re.compile(r"[^A-Za-z0-9_.:-]")
_RUNS: Final = re.compile(r"[^A-Za-z0-9_-]+")
_CURSOR_LIMIT: Final = 60
_GEMINI_LIMIT: Final = 63
_GEMINI_PREFIX: Final = "mcp_"
_VSCODE_PREFIX_LIMIT: Final = 18


@dataclass(frozen=True, slots=True)
class Convention:
    """How one host names tools.

    `plain` is the name before there are others; `limit` the longest one. `tail` is what a name that met
    another, or is too long where the host does not cut it in a way of its own, ends in, of the raw pair.
    `rule` is the name that the host's permission rules mean. `refused` says why a tool is left out.
    """

    plain: Callable[[str, str], str]
    limit: int = LIMIT
    tail: Callable[[str, str], str] | None = None
    rule: Callable[[str, str], str] | None = None
    refused: Callable[[str, str], str | None] | None = None


class HostNames:
    """The names of a host's tools. The same set of tools gives the same names in any order.

    `left_out` has the tools that the host does not show, and why. For VS Code the order of `servers` is
    that of its prefixes; where it is not given, servers are taken by name. A tool of `keep`, an earlier
    table, has the name that it had there, and no other tool ever gets it.
    """

    def __init__(
        self,
        host: str,
        tools: Iterable[tuple[str, str]],
        *,
        servers: Sequence[str] | None = None,
        keep: HostNames | None = None,
    ) -> None:
        self.host = host
        self.left_out: dict[tuple[str, str], str] = {}
        self._names = Names()
        # What was ever given out.
        self._given: dict[tuple[str, str], Name] = {}
        convention = CONVENTIONS.get(host)
        pairs = sorted(set(tools))
        if convention is not None and convention.refused is not None:
            for pair in pairs:
                if (why := convention.refused(*pair)) is not None:
                    self.left_out[pair] = why
        kept = [pair for pair in pairs if pair not in self.left_out]
        if host == "vscode":
            convention = _vscode(kept, servers)
        before, names_before = ({}, None) if keep is None else keep.history()
        if convention is None:
            self._names = Names(kept, keep=names_before)
            names: Iterable[Name] = self._names
        else:
            taken = frozenset(name.model for name in before.values())
            fresh = _apart((pair for pair in kept if pair not in before), convention, kept=taken)
            names = (*before.values(), *fresh)
        self._given = {(name.server, name.tool): name for name in names}
        self._by_tool = {pair: self._given[pair] for pair in kept}
        self._by_model = {name.model: name for name in self._by_tool.values()}

    def history(self) -> tuple[dict[tuple[str, str], Name], Names]:
        """All names that were ever given out, for the next table: those of tools that are gone too."""
        return self._given, self._names

    def find(self, model: str) -> Name | None:
        """The tool that a model means by this name.

        Roo Code takes `__` for its separator too, because models write it so.
        """
        found = self._by_model.get(model)
        if found is None and self.host == "roo-code":
            written = [name for text, name in self._by_model.items() if _alike(text) == _alike(model)]
            found = written[0] if len(written) == 1 else None
        return found

    def ever(self, model: str) -> Name | None:
        """The tool that this name was given to, whether it is there now or not."""
        return next((name for name in self._given.values() if name.model == model), None)

    def of(self, server: str, tool: str) -> Name | None:
        """The name of a tool of a server."""
        return self._by_tool.get((server, tool))

    def __iter__(self) -> Iterator[Name]:
        """All names, by server and tool."""
        return iter(self._by_tool.values())

    def __len__(self) -> int:
        """How many tools there are."""
        return len(self._by_tool)


def name_of(host: str, *, server: str, tool: str) -> str:
    """The name of a tool that meets no other."""
    return next(iter(HostNames(host, [(server, tool)]))).model


def registered(plugin: str, server: str) -> str:
    """The name by which Claude Code knows a plugin's server."""
    return f"plugin:{plugin}:{server}"


def connector(name: str) -> str:
    """The name by which Claude Code knows the server of an account's connector."""
    return f"claude.ai {name}"


def prompt_command(server: str, prompt: str) -> str:
    """What a person types in Claude Code for a server's prompt: its name stays as declared."""
    return f"/{PREFIX}{clean(server)}__{prompt}"


def vscode_prefixes(labels: Iterable[str]) -> list[str]:
    """The beginnings of VS Code's names, one a label, in the order in which they are given out."""
    taken: set[str] = set()
    prefixes: list[str] = []
    for label in labels:
        safe = re.sub(r"[^a-z0-9_.-]+", "_", label.lower())
        count, prefix = 1, _prefix(safe, "")
        while prefix in taken:
            count += 1
            prefix = _prefix(safe, str(count))
        taken.add(prefix)
        prefixes.append(prefix)
    return prefixes


def _prefix(safe: str, number: str) -> str:
    room = _VSCODE_PREFIX_LIMIT - len(_GEMINI_PREFIX) - len(number) - 1
    return f"{_GEMINI_PREFIX}{safe[:room]}{number}_"


# Telling names apart ---------------------------------------------------------------------------------------


def _apart(pairs: Iterable[tuple[str, str]], convention: Convention, *, kept: frozenset[str]) -> list[Name]:
    """Names for these tools, none of them one of those that are `kept` for others."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for pair in pairs:
        groups.setdefault(_fitted(pair, convention), []).append(pair)
    alone = {text for text, group in groups.items() if len(group) == 1 and text not in kept}
    taken = {*kept, *alone}
    names: list[Name] = []
    for text, group in groups.items():
        for pair in group:
            model = text if text in alone else _tailed(pair, convention, taken=taken)
            taken.add(model)
            names.append(Name(model, (convention.rule or convention.plain)(*pair), *pair))
    return sorted(names, key=lambda name: (name.server, name.tool))


def _fitted(pair: tuple[str, str], convention: Convention) -> str:
    plain = convention.plain(*pair)
    return plain if len(plain) <= convention.limit else _cut(plain, pair, convention=convention)


def _cut(plain: str, pair: tuple[str, str], *, convention: Convention) -> str:
    tail = (convention.tail or _sha256)(*pair)
    return plain[: convention.limit - len(tail) - 1] + "_" + tail


def _tailed(pair: tuple[str, str], convention: Convention, *, taken: set[str]) -> str:
    plain = convention.plain(*pair)
    model = _cut(plain, pair, convention=convention)
    digits = 8
    while model in taken:  # a tool that is itself called like another one's name with a hash
        digits += 8
        model = plain[: convention.limit - digits - 1] + "_" + _raw_sha256(*pair)[:digits]
    return model


def _raw_sha256(server: str, tool: str) -> str:
    return sha256(f"{len(server)}:{server}:{tool}".encode("utf-8", "surrogatepass")).hexdigest()


def _sha256(server: str, tool: str) -> str:
    return _raw_sha256(server, tool)[:8]


# The hosts -------------------------------------------------------------------------------------------------


def _sha1(text: str) -> str:
    return sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _codex_part(part: str) -> str:
    return _CODEX.sub("_", part) or "_"


def _codex(server: str, tool: str) -> str:
    return f"{PREFIX}{_codex_part(server)}__{_codex_part(tool)}"


def _codex_tail(server: str, tool: str) -> str:
    # The namespace and the connector are as the server and empty for one of a configuration file.
    return _sha1(f"{server}\0{server}\0\0{tool}\0{tool}")[:12]


def _gemini(server: str, tool: str) -> str:
    joined = _GEMINI.sub("_", f"{server}_{tool}")
    name = joined if joined.startswith(_GEMINI_PREFIX) else _GEMINI_PREFIX + joined
    return name if len(name) <= _GEMINI_LIMIT else f"{name[:30]}...{name[-30:]}"


def _cline(server: str, tool: str) -> str:
    raw = f"{server}__{tool}"
    safe = _RUNS.sub("_", raw)
    return raw if safe == raw and len(raw) <= LIMIT else f"{safe[:55]}_{_sha1(raw)[:8]}"


def _roo_part(part: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9_-]", "", re.sub(r"\s+", "_", part))
    safe = re.sub(r"--+", "-", safe)
    if not safe:
        return "_unnamed" if part else "_"
    return safe if safe[0].isalpha() or safe[0] == "_" else f"_{safe}"


def _roo(server: str, tool: str) -> str:
    return f"mcp--{_roo_part(server)}--{_roo_part(tool)}"[:LIMIT]


def _alike(name: str) -> str:
    return name.replace("-", "_").lower()


def _continue(server: str, tool: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "_", server.lower()).strip("_")
    return tool if tool.startswith(slug) else f"{slug}_{tool}"


def _opencode(server: str, tool: str) -> str:
    return f"{clean(server)}_{clean(tool)}"


def _too_long(server: str, tool: str) -> str | None:
    if len(server) + len(tool) < _CURSOR_LIMIT:
        return None
    return (
        f"the names of server and tool are {len(server) + len(tool)} long together; below {_CURSOR_LIMIT} fit"
    )


def _unfit(server: str, tool: str) -> str | None:
    if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool) is not None:
        return None
    return f"server {server!r}: expected a tool's name of 1 to 64 characters of A-Z a-z 0-9 _ -"


def _vscode(pairs: Iterable[tuple[str, str]], servers: Sequence[str] | None) -> Convention:
    labels = list(dict.fromkeys(servers if servers is not None else (server for server, _ in pairs)))
    labels += sorted({server for server, _ in pairs} - set(labels))
    prefixes = dict(zip(labels, vscode_prefixes(labels), strict=True))

    def plain(server: str, tool: str) -> str:
        return (prefixes[server] + tool).replace(".", "_")[:LIMIT]

    return Convention(plain, rule=lambda server, tool: f"{server}/{tool}")


def _zed_rule(server: str, tool: str) -> str:
    return f"mcp:{server}:{tool}"


def _plain(server: str, tool: str) -> str:
    return f"{PREFIX}{clean(server)}__{clean(tool)}"


CONVENTIONS: Final[Mapping[str, Convention]] = {
    "codex": Convention(_codex, tail=_codex_tail),
    "gemini-cli": Convention(_gemini, limit=_GEMINI_LIMIT),
    "cursor": Convention(_plain, rule=lambda server, tool: f"{server}:{tool}", refused=_too_long),
    "cline": Convention(_cline),
    "roo-code": Convention(_roo),
    "continue": Convention(_continue, limit=10_000),
    "opencode": Convention(_opencode),
    "zed": Convention(_plain, rule=_zed_rule),
    "claude-desktop": Convention(_plain, refused=_unfit),
    "copilot-cli": Convention(_plain, rule=lambda server, tool: f"{server}({tool})"),
}
"""Hosts that are not here name tools as Claude Code does (`dragoman.protocol.naming`)."""


@dataclass(frozen=True, slots=True)
class ApiNames:
    """What a model's API takes for the name of a tool: a pattern, and the longest one."""

    pattern: re.Pattern[str]
    limit: int = LIMIT

    def accepts(self, name: str) -> bool:
        """Whether a name may be in a request."""
        return len(name) <= self.limit and self.pattern.fullmatch(name) is not None


_LETTERS: Final = re.compile(r"[A-Za-z0-9_-]+")
API_NAMES: Final[Mapping[str, ApiNames]] = {
    "anthropic-messages": ApiNames(_LETTERS),
    "openai-responses": ApiNames(_LETTERS),
    "openai-chat": ApiNames(_LETTERS),
    # Newer texts say 128, and errors said 64: the shorter one is taken by both.
    "gemini": ApiNames(re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")),
}
