"""The files of a case of Claude Code, in the ways in which cases write them."""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman.host.config import claude
from dragoman.host.config.record import Scope, Setup, Situation, Source
from dragoman.host.naming import connector

from .forms import Case, listed, situation, source, table

SCOPES: Final[tuple[Scope, ...]] = ("managed", "cli", "local", "project", "user")
_OWN: Final = (
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
    "enableAllProjectMcpServers",
    "skipDangerousModePermissionPrompt",
)
_SETTINGS: Final = ("strictPluginOnlyCustomization", "disableClaudeAiConnectors", "allowAllClaudeAiMcps")
_LISTS: Final = (
    *_SETTINGS,
    "allowedMcpServers",
    "deniedMcpServers",
    "allowManagedMcpServersOnly",
    "managedMcpServers",
)
_BARE: Final = ("managed-mcp.json", "managed-settings.json", ".mcp.json", "~/.claude.json", "--settings")


def setup(given: Case, **more: Any) -> tuple[Setup, Situation]:
    """What the files of a case come to, and in which situation."""
    strict = "--strict-mcp-config" in listed(given.get("argv")) or given.get("--strict-mcp-config") is True
    told = situation(given, strict=strict or given.get("strict") is True, **more)
    return claude.read(sources(given), told), told


def sources(given: Case) -> list[Source]:
    """The files of a case."""
    files = dict(table(given.get("files")))
    accounts = [name for name in files if "connector" in name]
    found = [
        _file(name, content)
        for name, content in files.items()
        if name not in accounts and not _named_by_option(name, given)
    ]
    found += [_file(name, given[name]) for name in _BARE if name in given]
    found += [
        _file(name, given[name]) for name in given if name.startswith(("plugin ", ".claude/", "~/.claude/"))
    ]
    found += _options(given, files)
    found += _scopes(given)
    found += _connectors(given.get("connectors"))
    for name in accounts:
        own = re.sub(r"^.*connectors? *", "", name)
        found += _connectors({own: files[name]} if own else files[name])
    found += _settings(given)
    if "entry" in given:
        found.append(_entry(given))
    return found


def _named_by_option(name: str, given: Case) -> bool:
    """Whether a file is none of the project's own: one of an option, or a folder's above the project."""
    folder, slash, last = name.rpartition("/")
    elsewhere = (
        last == ".mcp.json" and bool(slash) and not name.startswith("plugin ") and "/plugins/" not in name
    )
    return name in listed(given.get("argv")) or (elsewhere and folder not in (situation(given).folder, "."))


def _options(given: Case, files: dict[str, Any]) -> list[Source]:
    """What `--mcp-config` adds: JSON, or one of the files."""
    told = [given["--mcp-config"]] if "--mcp-config" in given else []
    waiting = False
    for word in listed(given.get("argv")):
        name, equals, value = str(word).partition("=")
        if name == "--mcp-config" and equals:
            told.append(value)
        elif waiting and not str(word).startswith("--"):
            told.append(word)
        waiting = word == "--mcp-config" or (waiting and not str(word).startswith("--"))
    return [_file("--mcp-config", files.get(item, item) if isinstance(item, str) else item) for item in told]


def _scopes(given: Case) -> list[Source]:
    """Servers by scope: `{"local": {"s": {...}}}`, or the same below `scopes`."""
    found: list[Source] = []
    for scope, servers in {**_by_scope(given), **table(given.get("scopes"))}.items():
        content = servers if "mcpServers" in table(servers) else {"mcpServers": servers}
        if scope == "local":
            folder = situation(given).folder
            found.append(
                source({"projects": {folder: content}}, "~/.claude.json", scope="user", kind="state")
            )
        elif scope == "plugin":
            found.append(source(content, "plugin p/.mcp.json", scope="plugin", name="p"))
        else:
            found.append(source(content, f"{scope} servers", scope="user" if scope == "user" else "project"))
    return found


def _by_scope(given: Case) -> dict[str, Any]:
    names = [name for name in ("local", "project", "user", "plugin") if isinstance(given.get(name), dict)]
    return {name: given[name] for name in names if "server" not in given and "rules" not in given}


def _connectors(told: Any) -> list[Source]:
    """The servers of an account, which are in no file."""
    told = [told] if "url" in table(told) and "name" in table(told) else told
    pairs = [(str(item.get("name")), item) for item in map(table, listed(told))] or list(table(told).items())
    servers = {
        name if name.startswith("claude.ai ") else connector(name): {"type": "http", **table(entry)}
        for name, entry in pairs
    }
    for entry in servers.values():
        entry.pop("name", None)
    content = {"mcpServers": servers}
    return [source(content, "the account", scope="connector")] if servers else []


def _settings(given: Case) -> list[Source]:
    """Settings that a case gives without a file's name."""
    found: list[Source] = []
    managed = {**table(given.get("managed")), **{name: given[name] for name in _LISTS if name in given}}
    managed = {name: value for name, value in managed.items() if value is not None}
    if managed and "server" not in given:
        found.append(source(managed, "managed-settings.json", scope="managed", kind="settings"))
    own = {name: given[name] for name in _OWN if name in given}
    if own:
        found.append(source(own, "~/.claude/settings.json", scope="user", kind="settings"))
    found += [item for scope in SCOPES[1:] if (item := scoped(given, scope)) is not None]
    told = table(given.get("settings"))
    for scope in SCOPES:
        if scope in told:
            found.append(source(told[scope], f"{scope} settings", scope=scope, kind="settings"))
    if told and not told.keys() & set(SCOPES):
        found.append(source(told, "~/.claude/settings.json", scope="user", kind="settings"))
    if "approved" in given:
        content = {"enabledMcpjsonServers": given["approved"]}
        found.append(source(content, "~/.claude/settings.json", scope="user", kind="settings"))
    return found


def scoped(given: Case, scope: Scope) -> Source | None:
    """The settings of one scope, where a case names them so."""
    name = f"{scope}_settings"
    return source(given[name], f"{scope} settings", scope=scope, kind="settings") if name in given else None


def _entry(given: Case) -> Source:
    content = {"mcpServers": {"s": given["entry"]}}
    told = {
        "CLAUDE_PLUGIN_ROOT": given.get("plugin_root"),
        "CLAUDE_PLUGIN_DATA": given.get("plugin_data"),
        "CLAUDE_PROJECT_DIR": given.get("project_dir"),
    }
    values = {f"user_config.{name}": value for name, value in table(given.get("user_config")).items()}
    origin = str(given.get("source", given.get("from", given.get("scope", "user"))))
    plugin = any(given.get(name) is not None for name in ("plugin_root", "plugin_data", "plugin"))
    if not plugin and not values and origin != "plugin":
        if origin in ("project", ".mcp.json"):
            return source(content, ".mcp.json", scope="project")
        return source(content, "~/.claude.json", scope="user", kind="servers")
    variables = {name: str(value) for name, value in {**told, **values}.items() if value is not None}
    return source(content, "plugin p/.mcp.json", scope="plugin", name="p", variables=variables)


def _file(name: str, content: Any) -> Source:
    if re.search(r"(?:^|/)\.claude\.json$", name) is not None:
        return source(content, name, scope="user", kind="state")
    if "managed-mcp.json" in name:
        return source(content, name, scope="managed", kind="exclusive")
    if "--mcp-config" in name:
        return source(content, name, scope="cli")
    if name.endswith("plugin.json"):
        return source(content, name, scope="plugin", kind="manifest", name=_plugin(name))
    if name.startswith("plugin ") or "/plugins/" in name:
        return source(content, name, scope="plugin", name=_plugin(name))
    if name.endswith(".mcp.json"):
        return source(content, name)
    if "settings" not in name:
        raise ValueError(f"file {name!r} is none that is known of this host")
    words: tuple[tuple[str, Scope], ...] = (("managed", "managed"), ("--settings", "cli"), ("local", "local"))
    person: Scope = "user" if name.startswith("~") else "project"
    scopes: list[Scope] = [scope for word, scope in words if word in name]
    return source(content, name, scope=scopes[0] if scopes else person, kind="settings")


def _plugin(name: str) -> str:
    parts = [
        part
        for part in re.split(r"[ /]", name)
        if part not in ("plugin", "plugin.json", ".mcp.json", ".claude-plugin")
    ]
    return parts[-1] if parts else "p"
