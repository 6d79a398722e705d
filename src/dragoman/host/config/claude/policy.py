"""An organisation's lists of servers in Claude Code's form: `allowedMcpServers` and `deniedMcpServers`.

Pure, and used by another host whose matching differs in the ways of `Matching`. Allow entries are read
narrowly and deny entries widely: where two programs could see two hosts in one URL, nothing is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from dragoman.host.config import fields
from dragoman.host.config.located import Node
from dragoman.host.config.record import Origin, Problem, ServerConfig
from dragoman.host.config.references import SYNTAXES, Replacing, named
from dragoman.host.config.wildcard import fits

Key: TypeAlias = Literal["serverUrl", "serverCommand", "serverName"]

_KEYS: Final[tuple[Key, ...]] = ("serverUrl", "serverCommand", "serverName")
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_PARTS: Final = re.compile(r"(?P<scheme>[^:/?#]*)://(?P<host>[^/?#]*)(?P<path>.*)", re.DOTALL)
_CROSSING: Final = re.compile(r"[/@\\?#]")
_PORTS: Final = {"http": ":80", "https": ":443", "ws": ":80", "wss": ":443"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One valid entry of a list: which key it has, its value, and where it stands."""

    key: Key
    value: str | tuple[str, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Matching:
    """How a host matches.

    `name_for_any`: an entry with a name admits a server of any transport, even where there are entries
    for its URL or its command. `fold_path`: the whole URL is matched without regard to case. `user`: who
    is named before the host is a part of it, which no `*` stands for.
    """

    name_for_any: bool = False
    fold_path: bool = False
    user: bool = False


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of all files together. `allowed` is None where no file has one: then all are allowed.

    `env` are variables that the organisation sets, for references in the lists.
    """

    allowed: tuple[Entry, ...] | None = None
    denied: tuple[Entry, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])


def entries(node: Node | None, file: str, *, deny: bool) -> tuple[list[Entry], list[Problem]]:
    """The valid entries of a list; each of the others is dropped alone, and told of."""
    found: list[Entry] = []
    problems: list[Problem] = []
    if node is not None and not isinstance(node.value, list):
        return [], [Problem(fields.wrong("a list of entries", node.value), fields.origin(node, file))]
    for item in () if node is None else node.items:
        where = fields.origin(item, file)
        why = _fault(item.value, deny=deny)
        if why is not None:
            problems.append(Problem(f"an entry for servers is dropped: {why}", where))
            continue
        key = _key(item)
        inner = item.members[key]
        words = tuple(str(word.value) for word in inner.items)
        found.append(Entry(key, words if inner.items else str(inner.value), where))
    return found, problems


def _key(node: Node) -> Key:
    for key in _KEYS:
        if node.members.get(key) is not None:
            return key
    return "serverName"


def _fault(value: Any, *, deny: bool) -> str | None:
    if not isinstance(value, dict):
        return fields.wrong("an object", value)
    table = cast("dict[str, Any]", value)
    has = [key for key in _KEYS if key in table]
    if len(has) != 1:
        return f"expected exactly one of {', '.join(_KEYS)}"
    inner = table[has[0]]
    if has[0] == "serverCommand":
        argv = cast("list[object]", inner) if isinstance(inner, list) else []
        good = bool(argv) and all(isinstance(word, str) for word in argv)
        return None if good else "`serverCommand`: expected a list of strings, the program and its arguments"
    if not isinstance(inner, str) or not inner.strip():
        return f"`{has[0]}`: expected a string that is not empty"
    if has[0] == "serverName" and not deny and _SAFE_NAME.fullmatch(inner) is None:
        return "`serverName`: expected letters, digits, `_` and `-` alone"
    return None


# Deciding ------------------------------------------------------------------------------------------------


def refusal(
    config: ServerConfig, lists: Lists, *, env: Mapping[str, str], matching: Matching | None = None
) -> tuple[str, Origin | None] | None:
    """Why the lists do not let a server be used, and the entry that says so; None if they do.

    Deny first, and nothing overrides it. `env` is what references in the server's entry and in the lists
    are replaced from.
    """
    how = matching or Matching()
    server = _Server.of(config, env)
    env = {**env, **lists.env}
    for entry in lists.denied:
        if _hits(entry, server, env=env, deny=True, how=how):
            return f"denied by {entry.key}", entry.origin
    if lists.allowed is None:
        return None
    own: Key = "serverCommand" if server.command is not None else "serverUrl"
    # A name counts only where no entry, of those that are valid, is about commands or about URLs.
    by_name = how.name_for_any or all(entry.key != own for entry in lists.allowed)
    for entry in lists.allowed:
        if (entry.key == own or (entry.key == "serverName" and by_name)) and _hits(
            entry, server, env=env, deny=False, how=how
        ):
            return None
    return "not on the list of allowed servers", None


@dataclass(frozen=True, slots=True)
class _Server:
    name: str
    command: tuple[str, ...] | None
    url: str

    @classmethod
    def of(cls, config: ServerConfig, env: Mapping[str, str]) -> _Server:
        there = Replacing(SYNTAXES[config.syntax], env, config.variables, remote=config.command is None)
        if config.command is None:
            return cls(config.name, None, there.text(config.url or ""))
        return cls(config.name, tuple(there.text(word) for word in (config.command, *config.args)), "")


def _hits(entry: Entry, server: _Server, *, env: Mapping[str, str], deny: bool, how: Matching) -> bool:
    if entry.key == "serverName":
        return entry.value == server.name  # names are never expanded
    replacing = Replacing(SYNTAXES["claude-code"], env, {}, remote=False)
    if entry.key == "serverCommand":
        wanted = tuple(replacing.text(word) for word in entry.value)
        return server.command is not None and wanted == server.command
    if server.command is not None:
        return False
    pattern = str(entry.value)
    full = replacing.text(pattern)
    if not deny and named("claude-code", pattern) and not _same_reach(pattern, full):
        return False
    if deny:
        return _url(full, server.url, wide=True, how=how) or _url(full, server.url, wide=False, how=how)
    return _url(full, server.url, wide=False, how=how)


def _same_reach(pattern: str, full: str) -> bool:
    """Whether replacing references changed nothing but words inside the path."""
    before, after = _PARTS.fullmatch(pattern), _PARTS.fullmatch(full)
    if before is None or after is None or "${" in full:
        return False
    if (before["scheme"], before["host"]) != (after["scheme"], after["host"]):
        return False
    same = all(before["path"].count(sign) == after["path"].count(sign) for sign in "/?#*")
    return same and ".." not in after["path"]


def _url(pattern: str, url: str, *, wide: bool, how: Matching) -> bool:
    """Whether a URL fits a pattern; `wide` as one text, else part by part."""
    if how.fold_path:
        pattern, url = pattern.lower(), url.lower()
    wanted = _PARTS.fullmatch(pattern)
    if wide or wanted is None:
        # Without a scheme in it a pattern is no more than a text, and only denies, unless it means all.
        return not pattern.strip("*") or (wide and fits(_lowered(pattern), _lowered(url)))
    parts = _split(url)
    if parts is None:
        return False
    scheme, host, path = parts
    if how.user:
        user = _PARTS.fullmatch(url)
        if user is None or user["host"].rpartition("@")[0] != wanted["host"].rpartition("@")[0]:
            return False
    return (
        fits(wanted["scheme"].lower(), scheme)
        and fits(_host(wanted["host"], scheme), host)
        and (not wanted["path"] or fits(wanted["path"], path))
    )


def _split(url: str) -> tuple[str, str, str] | None:
    """Scheme, host with port, and the rest, as whoever connects will read them."""
    try:
        found = urlsplit(url)
        name, port = found.hostname, found.port
    except ValueError:
        return None
    if not name or not found.scheme or _CROSSING.search(name):
        return None
    authority = name if ":" not in name else f"[{name}]"
    # The text behind the host, not what the parser made of it: a path is matched as it is sent.
    rest = url.partition("://")[2]
    path = rest[len(found.netloc) :] or "/"
    return found.scheme, _host(authority if port is None else f"{authority}:{port}", found.scheme), path


def _host(text: str, scheme: str) -> str:
    """A host in the form in which two that are the same are equal."""
    text = text.lower().removesuffix(_PORTS.get(scheme, ":"))
    name, colon, port = text.rpartition(":")
    if colon and port.isdigit():
        return f"{name.removesuffix('.')}:{port}"
    return text.removesuffix(".")


def _lowered(url: str) -> str:
    """A URL or a pattern with scheme and host in small letters, without the dot behind a host."""
    found = _PARTS.fullmatch(url)
    if found is None:
        return url
    host = _host(found["host"], found["scheme"].lower())
    return f"{found['scheme'].lower()}://{host}{found['path'] or '*' if '*' in url else found['path'] or '/'}"


# An organisation's own servers -----------------------------------------------------------------------------


def unfit(config: ServerConfig) -> str | None:
    """Why a server may not be one that managed settings give to everyone; None if it may."""
    if config.transport not in ("http", "sse"):
        return "expected a server of type http or sse"
    if not (config.url or "").lower().startswith("https://"):
        return "expected an https URL"
    if _SAFE_NAME.fullmatch(config.name) is None:
        return "expected a name of letters, digits, `_` and `-`"
    for member in ("command", "args", "env", "headersHelper"):
        if member in config.raw:
            return f"`{member}` may not be there"
    if any("${" in text for text in _strings(config.raw.values())):
        return "references to variables may not be there"
    return None


def _strings(values: Iterable[object]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from _strings(cast("Mapping[str, object]", value).values())
        elif isinstance(value, Sequence):
            yield from _strings(cast("Sequence[object]", value))


def literal(config: ServerConfig) -> bool:
    """Whether an entry refers to no variable."""
    return not any("${" in text for text in _strings(config.raw.values()))
