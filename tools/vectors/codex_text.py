"""Codex' files as cases write them: TOML, or pieces of it on one line with words around them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.host.config.record import Scope, Source
from dragoman.host.config.toml import TomlError, parse

from .forms import Case, table

_LABEL: Final = re.compile(
    r"\s*(?:the )?(?P<who>no requirements|requirements|managed|session|cli|system|/etc/codex|user|global|home"
    r"|~/\.codex|\$CODEX_HOME|project|workspace|\.codex|/p/\.codex|profile|config)(?![\w-]*\s*=)"
)
_SCOPES: Final[dict[str, Scope]] = {
    **dict.fromkeys(("config", "user", "global", "home", "~/.codex", "$CODEX_HOME"), "user"),
    **dict.fromkeys(("project", "workspace", ".codex", "/p/.codex"), "project"),
    **dict.fromkeys(("system", "/etc/codex"), "system"),
    **dict.fromkeys(("session", "cli"), "cli"),
    "managed": "managed",
    "profile": "profile",
}
_FILES: Final[dict[str, str]] = {
    "config.toml": "user",
    "config": "user",
    "user": "user",
    "project": "project",
}
_WORDS: Final = re.compile(
    r"\b(?:(?P<full>(?:danger-)?full[- ]access)|(?P<outer>external[- ]sandbox)"
    r"|sandbox(?:[_ ]mode)?[ =:]+\"?(?P<mode>[a-z-]+)\"?|(?P<first>read-only|workspace-write) sandbox)"
)
_TOP: Final = re.compile(r"(?:approval_policy|sandbox_mode|projects|mcp_servers|profile|profiles|model)\b")
_HEADER: Final = re.compile(r"\[\[?\s*(?P<path>[A-Za-z_][\w.\"/ -]*?)\s*\]\]?(?=\s|$|[A-Za-z_(;,])")
_KEY: Final = re.compile(r"(?P<key>[A-Za-z_][\w-]*(?:\.(?:[\w-]+|\"[^\"]*\"))*)\s*=\s*")
_DOTTED: Final = re.compile(r"(?P<table>mcp_servers(?:\.(?:[\w-]+|\"[^\"]*\"))+)\.[\w-]+ =")
_HTTP: Final = re.compile(
    r"^(?:bearer_token_env_var|http_headers|env_http_headers|http_headers_helper|oauth)"
)
SERVER: Final = frozenset(
    {"default_tools_approval_mode", "enabled_tools", "disabled_tools", "supports_parallel_tool_calls"}
    | {"startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "enabled", "required", "env_vars"}
)
"""Members of an input that are keys of a server."""
SETTINGS: Final = frozenset({"approval_policy", "sandbox_mode"})


@dataclass
class Layer:
    """One file: whose it is, and its tables by their headers; `text` where it is TOML as it stands."""

    scope: str
    tables: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    text: str | None = None

    def keys(self, server: str) -> list[str]:
        """The keys that the layer has of a server."""
        return self.tables.get(f"mcp_servers.{server}", [])

    def source(self) -> Source:
        """The layer as a file."""
        top = self.tables.get("", [])
        blocks = [f"[{header}]\n" + "\n".join(lines) for header, lines in self.tables.items() if header]
        text = self.text if self.text is not None else "\n".join([*top, *blocks])
        if self.scope == "requirements":
            return Source(text, "requirements.toml", "managed", "requirements")
        scope: Any = self.scope
        return Source(text, f"{self.scope} config.toml", scope, "config")


def layers(given: Case, *, server: str = "a", bare: bool = False) -> list[Source]:
    """The files of a case. Where a server has no transport it gets one, unless its table stands `bare`."""
    found: list[Layer] = []
    for name, content in _texts(given):
        found += _read(str(content), name, server=server)
    loose = {name: given[name] for name in SERVER if name in given}
    loose |= {name: given[name] for name in SETTINGS if name in given}
    if loose or not found:
        found.insert(0, _loose(loose, server))
    if not bare:
        _complete(found, server)
    return [layer.source() for layer in found]


def trusted(given: Case) -> bool | None:
    """Whether the project is trusted: as a member says, or the words; None for what the files say."""
    if "trusted" in given:
        return given["trusted"] is True
    text = " ".join(str(content) for _, content in _texts(given))
    if re.search(r"\b(?:not|never|no)[ -]trust|untrusted", text):
        return False
    return None if "trust_level" in text else True


def _texts(given: Case) -> Iterator[tuple[str, Any]]:
    """The texts of a case, each with the words that say whose it is."""
    if "toml" in given:
        yield "", given["toml"]
    for name in given:
        if name.endswith(".toml") or name in (
            "requirements",
            "config",
            "user",
            "project",
            "system",
            "managed",
        ):
            yield name, given[name]
    for block in ("layers", "files"):
        for name, content in table(given.get(block)).items():
            yield name, content


def _read(text: str, name: str, *, server: str) -> list[Layer]:
    if name:
        label = _LABEL.match(name)
        if label is None:
            raise ValueError(f"file {name!r} is none that is known of this host")
        return [_layer(text, label["who"], server=server)]
    if _is_toml(text) or ("\n" in text and ";" not in text and _LABEL.match(text) is None):
        return [_layer(text, "user", server=server)]
    return _joined(_parts(text, server))


def _parts(text: str, server: str) -> Iterator[Layer]:
    """The files that a text speaks of, one after the other."""
    for part in _split(text):
        label = _LABEL.match(part)
        who = "user" if label is None else label["who"]
        layer = _layer(part if label is None else part[label.end() :], who, server=server)
        if layer.scope == "requirements" and "empty" in part and not layer.tables:
            layer.tables[""] = ["mcp_servers = {}"]
        if who.startswith("no ") or (label is not None and re.search(r"\b(?:absent|missing|unset)\b", part)):
            continue
        # Words about whom to trust are no file; a file of whose words nothing is TOML is a wrong one.
        about = label is not None or re.search(r"trust|sandbox|default|server|tool", part) is not None
        if layer.tables or not about:
            yield layer if layer.tables else Layer("user", text=part)


def _joined(layers: Iterable[Layer]) -> list[Layer]:
    """The files, what is said of one in several places put together."""
    merged: list[Layer] = []
    for layer in layers:
        same = next((other for other in merged if other.scope == layer.scope and layer.text is None), None)
        if same is None or same.text is not None:
            merged.append(layer)
            continue
        for header, lines in layer.tables.items():
            same.tables.setdefault(header, []).extend(lines)
    return merged


def _is_toml(text: str) -> bool:
    try:
        parse(text, "case")
    except TomlError:
        return False
    return True


def _layer(text: str, who: str, *, server: str) -> Layer:
    scope = "requirements" if who.endswith("requirements") else _SCOPES.get(who, "user")
    if _is_toml(text) and "\n[" in f"\n{text.strip()}" and scope != "requirements":
        first = text.strip().partition("\n[")[0]
        if text.strip().startswith("[mcp_servers") or _TOP.match(first) is not None:
            return _tabled(Layer(scope), text, server=server)
    if "\n" in text.strip() and not _is_toml(text) and ";" not in text:
        return Layer(scope, text=text)
    return _tabled(Layer(scope), text, server=server)


def _tabled(layer: Layer, text: str, *, server: str) -> Layer:
    """Sort the pieces of a text into tables."""
    text, sandbox = _sandbox(text)
    header = "" if layer.scope == "requirements" else f"mcp_servers.{server}"
    for piece in _pieces(text):
        if piece.startswith("["):
            path = piece.strip("[] ")
            header = path if _TOP.match(path) is not None else f"mcp_servers.{server}.{path}"
            layer.tables.setdefault(header, [])
        elif (dotted := _DOTTED.match(piece)) is not None:
            # A key of a server by its whole path stands in that server's own table.
            layer.tables.setdefault(dotted["table"], []).append(piece[dotted.end("table") + 1 :])
        elif _TOP.match(piece) is not None:
            layer.tables.setdefault("", []).append(piece)
        else:
            layer.tables.setdefault(header, []).append(piece)
    if sandbox:
        layer.tables.setdefault("", []).append(f'sandbox_mode = "{sandbox}"')
    return layer


def _sandbox(text: str) -> tuple[str, str]:
    """A text without what it says of the sandbox in words, and that."""
    found = _WORDS.search(text)
    if found is None or re.search(r"sandbox_mode\s*=", text) is not None:
        return text, ""
    mode = found["mode"] or found["first"] or ""
    if found["full"] or mode == "danger-full-access":
        mode = "danger-full-access"
    if found["outer"]:
        mode = "external-sandbox"
    return text[: found.start()] + text[found.end() :], mode


def _pieces(text: str) -> Iterator[str]:
    """Headers and keys with their values, in order; words between them are passed over."""
    at = 0
    while at < len(text):
        begins = at == 0 or text[at - 1] in " \n\t],;:("
        header = _HEADER.match(text, at) if begins else None
        if header is not None:
            yield header[0]
            at = header.end()
            continue
        key = _KEY.match(text, at) if begins else None
        if key is None:
            at += 1
            continue
        end = _value(text, key.end())
        yield f"{key['key']} = {text[key.end() : end]}"
        at = end


_PIECE: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[\[\]{}]|[^\[\]{}\"']")


def _value(text: str, at: int) -> int:
    """Where a value that begins here ends: a string, what stands in brackets, or a word."""
    depth = 0
    for piece in _PIECE.finditer(text, at):
        sign = piece[0]
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign, 0)
        if not depth and sign in " \n,;" and piece.start() > at:
            return piece.start()
        if not depth and (sign in "]}" or len(sign) > 1 or sign in ('""', "''")):
            return piece.end()
    return len(text)


def _split(text: str) -> list[str]:
    """The parts between semicolons outside of quotes."""
    parts = re.findall(r"(?:[^;\"']|\"[^\"]*\"|'[^']*')+", text)
    return [part for part in parts if part.strip()]


def _loose(members: dict[str, Any], server: str) -> Layer:
    layer = Layer("user", {f"mcp_servers.{server}": []})
    for name, value in members.items():
        header = "" if name in SETTINGS else f"mcp_servers.{server}"
        layer.tables.setdefault(header, []).append(f"{name} = {json.dumps(value)}")
    return layer


def _complete(found: list[Layer], server: str) -> None:
    """Give each server that has no transport in any layer one, in the first layer that names it."""
    files = [layer for layer in found if layer.scope != "requirements" and layer.text is None]
    headers = [header for layer in files for header in layer.tables if header.startswith("mcp_servers.")]
    named = list(dict.fromkeys(header.split(".")[1] for header in headers))
    named += [] if named or not files else [server]
    for name in named:
        keys = [line for layer in files for line in layer.keys(name)]
        if any(re.match(r"(?:command|url)\s*=", line) for line in keys):
            continue
        http = any(_HTTP.match(line) for line in keys)
        first = next(
            (layer for layer in files if any(h.split(".")[1:2] == [name] for h in layer.tables)), files[0]
        )
        own = first.tables.setdefault(f"mcp_servers.{name}", [])
        own.insert(0, 'url = "https://x.example/mcp"' if http else 'command = "x"')
        first.tables = {
            **{h: v for h, v in first.tables.items() if not h},
            **{h: v for h, v in first.tables.items() if h},
        }
