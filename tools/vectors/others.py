"""Cases of all other hosts: their files, lists of servers, and tools that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from dragoman.host.config.expand import environment, expand
from dragoman.host.config.record import Setup, Situation, Source
from dragoman.host.dialects import DIALECTS
from dragoman.host.naming import VSCODE_TOOLS

from . import models, paths
from .claude import children
from .expecting import Fact, Says, State
from .forms import Case, facts, is_list, is_table, listed, outcome, present, situation, source, table
from .naming import host_name
from .other_rules import permission

# Under which key a host's file has its servers, and what kind of file that is.
_ROOTS: Final = {
    "cursor": ("mcpServers", "servers"),
    "vscode": ("servers", "servers"),
    "gemini-cli": ("mcpServers", "settings"),
    "opencode": ("mcp", "config"),
    "zed": ("context_servers", "settings"),
    "cline": ("mcpServers", "servers"),
    "roo-code": ("mcpServers", "servers"),
    "continue": ("mcpServers", "servers"),
    "claude-desktop": ("mcpServers", "servers"),
    "copilot-cli": ("mcpServers", "servers"),
}
_FILE: Final = re.compile(r"\.(?:json|jsonc|yaml|yml|toml)$|^profile |^user-profile ")
_PLACES: Final[dict[str, str]] = {
    **dict.fromkeys(("user", "global", "home", "profile"), "user"),
    **dict.fromkeys(("workspace", "project", "local"), "project"),
    **dict.fromkeys(("system", "system settings", "system override"), "system"),
    **dict.fromkeys(("system defaults", "defaults", "system_defaults"), "cloud"),
}


def run(host: str, kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of this host and kind."""
    if kind == "parse" and any(name in given for name in ("os", "platform")):
        kind = "path"
    if host not in _ROOTS:
        raise ValueError(f"host {host!r} is not known: expected one of {', '.join(DIALECTS)}")
    if kind in ("naming", "tool-name"):
        return host_name(host, given)
    if kind == "limits":
        return _limits(given)
    if kind in ("path", "paths", "file", "files", "location"):
        return paths.found(host, given)
    if kind == "permission" or (kind == "tool-filter" and _asks(given)):
        return permission(host, given, files=_sources(host, given))
    if kind == "env" and "value" in given:
        return _value(host, given)
    if kind in ("result", "schema"):
        return models.run(host, kind, given)
    if kind in _KINDS:
        return _files(host, given, kind=kind)
    known = ("naming", "permission", "limits", "path", *_KINDS)
    raise ValueError(f"kind {kind!r} is not known of this host: expected one of {', '.join(known)}")


def _asks(given: Case) -> bool:
    """Whether a case about tools asks of a call, or of approvals, rather than which tools there are."""
    return any(name in given for name in ("call", "calls", "argv")) or "autoApprove" in str(
        given.get("entry")
    )


_KINDS: Final = (
    *("parse", "env", "precedence", "trust", "approval", "timeout", "tool-filter", "server-policy", "policy"),
)


# Files ---------------------------------------------------------------------------------------------------


def _sources(host: str, given: Case) -> list[Source]:
    """The files of a case: entries, tables of servers, files by place, and files by name."""
    return [*_entries(host, given), *_placed(host, given), *_named(host, given)]


def _entries(host: str, given: Case) -> list[Source]:
    key, kind = _ROOTS[host]
    names = [name for name in ("entry", "json entry", "json_entry") if name in given]
    found = [
        source({key: {"s": _completed(host, given[name])}}, "file", scope="user", kind=kind) for name in names
    ]
    if f"{key}.servers" in given:
        content = {key: {"servers": given[f"{key}.servers"]}}
        found.append(source(content, "file", scope="user", kind=kind))
    if key not in given:
        return found
    if host == "continue" and is_list(given[key]):
        return [*found, source(_yaml(given[key]), "config.yaml", scope="user", kind="config")]
    content = {key: given[key]}
    version = str(given.get("version", given.get("V", "")))
    if host == "opencode" and "2" in version and "servers" not in table(given[key]):
        content = {key: {"servers": given[key]}}
    if host == "vscode" and is_list(given.get("inputs")):
        content["inputs"] = given["inputs"]
    return [*found, source(content, "file", scope="user", kind=kind)]


def _placed(host: str, given: Case) -> list[Source]:
    """Files that are named by whose they are: `workspace mcpServers`, or `user` with a table."""
    key, kind = _ROOTS[host]
    found: list[Source] = []
    for place, scope in _PLACES.items():
        names = [name for name in (f"{place} {key}", f"{place}_{key}") if name in given]
        found += [_scoped({key: given[name]}, place, scope=scope, kind=kind) for name in names]
        inner = given.get(place)
        if is_table(inner):
            whole = key in inner or host in ("gemini-cli", "opencode")
            found.append(_scoped(inner if whole else {key: inner}, place, scope=scope, kind=kind))
    return found


def _named(host: str, given: Case) -> list[Source]:
    """Files that are named as they are on a disk, those with permissions apart."""
    pairs = [(str(given["file"]), given["content"])] if "content" in given and "file" in given else []
    pairs += [(name, given[name]) for name in given if _FILE.search(name) is not None and not _is_rules(name)]
    pairs += [(name, text) for name, text in table(given.get("files")).items() if not _is_rules(name)]
    return [_file(host, name, content=content) for name, content in pairs]


def _is_rules(name: str) -> bool:
    return "permission" in name or re.search(r"(?:^|/)cli(?:-config)?\.json$", name) is not None


def _scoped(content: Any, place: str, *, scope: Any, kind: str) -> Source:
    return source(content, place, scope=scope, kind=kind)


def _yaml(entries: list[Any]) -> str:
    """Continue's list of servers, in the JSON that YAML takes too."""
    lines = ["mcpServers:"]
    for entry in entries:
        members = [f"{name}: {json.dumps(value)}" for name, value in table(entry).items()]
        lines += [f"  - {members[0]}", *(f"    {member}" for member in members[1:])]
    return "\n".join(lines) + "\n"


def _file(host: str, name: str, *, content: Any) -> Source:
    kind = _ROOTS[host][1]
    scope: Any = (
        "user" if name.startswith(("~", "/", "profile", "user")) or "mcp_settings" in name else "project"
    )
    if host == "gemini-cli" and name.startswith("/"):
        scope = "cloud" if "defaults" in name else "system"
    if host == "vscode" and name.endswith("devcontainer.json"):
        kind = "devcontainer"
    elif host == "vscode" and name.rpartition("/")[2] == ".mcp.json":
        kind = "root"
    elif host == "vscode" and name.endswith("settings.json"):
        kind = "settings"
    elif host == "continue" and name.endswith((".yaml", ".yml")):
        kind = "config"
        servers = table(content).get("mcpServers")
        content = _yaml(listed(servers)) if isinstance(servers, list) else content
    elif host == "cursor" and "cli" in name:
        kind = "cli"
    return source(content, name, scope=scope, kind=kind)


def _gemini(given: Case, files: list[Source]) -> list[Source]:
    """The settings that a case names without a file."""
    more: dict[str, Any] = {}
    if "folder_trust_enabled" in given:
        more["security"] = {"folderTrust": {"enabled": given["folder_trust_enabled"] is True}}
    for name in ("mcp", "tools", "admin"):
        if is_table(given.get(name)):
            more[name] = given[name]
    for name in given:
        block, dot, member = name.partition(".")
        if dot and block in ("mcp", "tools", "admin"):
            more.setdefault(block, {})[member] = given[name]
    extra = {name: given[name] for name in ("includeTools", "excludeTools", "trust") if name in given}
    if extra:
        more["mcpServers"] = {"s": {"command": "x", **extra}}
    return [source(more, "~/.gemini/settings.json", scope="user", kind="settings"), *files] if more else files


def _setup(host: str, given: Case) -> tuple[Setup, Situation]:
    told = situation(given)
    if given.get("first_start") is True or given.get("config_changed") is True:
        told = replace(told, trusted=False)
    files = _sources(host, given)
    if host == "gemini-cli":
        files = _gemini(given, files)
    if host == "vscode":
        files += _vscode_lists(given)
    if "server" in given:
        files += _server(host, given)
    return DIALECTS[host].read(files, told), told


def _vscode_lists(given: Case) -> list[Source]:
    settings = {name: given[name] for name in given if name.startswith("chat.")}
    settings |= table(given.get("settings"))
    for name in ("allowedServers", "deniedServers"):
        for own in (name, name.removesuffix("Servers")):
            if own in given:
                settings[f"chat.mcp.{name}"] = given[own]
    return [source(settings, "settings.json", scope="user", kind="settings")] if settings else []


def _server(host: str, given: Case) -> list[Source]:
    """The server of a case about lists of servers."""
    server: dict[str, Any] = table(given["server"]) or {"name": given["server"], "command": "x"}
    argv = server.get("command")
    entry: dict[str, Any] = {name: server[name] for name in ("url", "type") if name in server}
    if argv is not None:
        words = [argv] if isinstance(argv, str) else listed(argv)
        entry |= {"command": words[0], "args": [*words[1:], *listed(server.get("args"))]}
    key, kind = _ROOTS[host]
    return [source({key: {str(server.get("name", "s")): entry}}, "profile mcp.json", scope="user", kind=kind)]


def _files(host: str, given: Case, *, kind: str) -> dict[str, Any]:
    setup, told = _setup(host, given)
    out = outcome(setup, told.env)
    setup = _answered(setup, table(given.get("inputs")) or table(given.get("input_values")))
    names = [standing.config.name for standing in setup]
    left = [problem.server for problem in setup.problems if problem.server is not None]
    first = next(iter([*names, *left]), "s")
    out["server"] = present(setup, first)
    out["decision"] = out["server"]
    if not setup.servers:
        return out
    config = setup.servers[0].config
    out = {**facts(config, told.env), **{name: value for name, value in out.items() if name != "loads"}}
    if host == "opencode" and out["timeout_ms"] is None:
        # The one time of an entry, which is that for the list of its tools.
        out |= {
            "timeout_ms": Either(out["startup_ms"]),
            "timeout_s": out["startup_s"],
            "timeout": out["startup_s"],
        }
    if host == "continue":
        out["env"] = dict(config.env)  # a template is what the host makes of it
    if host == "continue" or (config.env_file is None and "envFile" in config.raw):
        out["envFile"] = Says(config.raw.get("envFile"), "ignored|unsupported|not|stdio only")
    tools = [str(table(tool).get("name", tool)) for tool in listed(given.get("tools"))]
    out["visible"] = [tool for tool in tools if config.lists(tool)]
    if host == "copilot-cli":
        out["tools"] = _Listed(config.only_tools)
    out |= {tool: Says(tool, "visible|shown" if config.lists(tool) else "hidden|filtered") for tool in tools}
    full, _ = expand(config, told.env)
    out |= children(environment(full, told.env))
    standing = setup.servers[0].state
    if kind in ("server-policy", "policy"):
        out["decision"] = Says(
            standing, "^allow|load" if standing == "active" else "not |block|den|exclu|disab"
        )
    out["state"] = State(standing)
    out["prompts"] = _asked(config.raw)
    return out


def _answered(setup: Setup, inputs: Mapping[str, Any]) -> Setup:
    """The same with what a person said when VS Code asked for inputs."""
    told = {f"input:{name}": str(value) for name, value in inputs.items()}
    servers = (
        replace(item, config=replace(item.config, variables={**item.config.variables, **told}))
        for item in setup
    )
    return replace(setup, servers=tuple(servers))


class _Listed(Fact):
    """The tools that an entry has: None for all."""

    def fits(self, wanted: Any) -> bool:
        if self.value is None:
            return wanted in (["*"], "*") or "all" in str(wanted).lower().split()
        if not self.value and isinstance(wanted, str):
            return re.search(r"\b(?:none|no)\b", wanted.lower()) is not None
        return is_list(wanted) and wanted == list(self.value)


class Either(Fact):
    """A value, among others that a case may name beside it."""

    def fits(self, wanted: Any) -> bool:
        return (
            wanted == self.value or re.search(rf"\b{self.value}\b", str(wanted).replace(" ", "")) is not None
        )


def _asked(entry: Mapping[str, Any]) -> list[str]:
    """The inputs that an entry asks a person for."""
    return list(dict.fromkeys(re.findall(r"\$\{input:([^}]+)\}", json.dumps(dict(entry)))))


def _value(host: str, given: Case) -> dict[str, Any]:
    name = str(given.get("file", "file"))
    key = "mcpServers" if name == ".mcp.json" else _ROOTS[host][0]
    entry = {"command": "x", "args": [given["value"]]}
    content = {key: {"s": _completed(host, entry)}}
    told = situation(given)
    setup = DIALECTS[host].read([_file(host, name, content=content)], told)
    full, missing = expand(setup.servers[0].config, told.env)
    return {**outcome(setup, told.env), "value": full.args[-1], "missing": list(missing)}


def _completed(host: str, entry: Any) -> Any:
    """An entry with what it needs to be one, where a case leaves that out."""
    given = table(entry)
    if host == "opencode" and not given.keys() & {"type", "url", "command"}:
        if given.keys() & {"environment", "cwd"}:
            return {"type": "local", "command": ["x"], **given}
        return {"type": "remote", "url": "https://x.example/mcp", **given}
    if host == "opencode" and "args" in given:
        return {"type": "local", "command": [given["command"], *given["args"]]}
    return entry


def _limits(given: Case) -> dict[str, Any]:
    names = ("enabled_tools", "tools", "tool_count", "count")
    told = next((given[name] for name in names if name in given), 0)
    tools = told if isinstance(told, int) else len(listed(told))
    over = tools > VSCODE_TOOLS
    if given.get("virtual_tools") is True:
        raise ValueError("virtual tools, which group what is too many, are not part of what is matched")
    said = Says(tools, "refused|error|400|too many" if over else "accepted|sent|ok|fine|allow")
    return {"request": said, "accepted": not over, "max": VSCODE_TOOLS, "limit": VSCODE_TOOLS}
