"""Cases of all other hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dragoman.host.config.expand import environment, expand
from dragoman.host.config.record import Setup, Situation, Source
from dragoman.host.dialects import DIALECTS
from dragoman.host.naming import VSCODE_TOOLS, HostNames, vscode_prefixes

from .expecting import Child, Effect, Fact, Mentions, Present, Says
from .forms import HOME, Case, call, facts, listed, present, situation, source, table

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


def run(host: str, kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of this host and kind."""
    if kind == "naming":
        return _naming(host, given)
    if kind == "permission":
        return _permission(host, given)
    if kind == "limits":
        return _limits(given)
    if kind == "env" and "value" in given:
        return _value(host, given)
    return _files(host, given)


# Files ---------------------------------------------------------------------------------------------------


def _sources(host: str, given: Case) -> list[Source]:
    key, kind = _ROOTS[host]
    found: list[Source] = []
    for name in ("entry", "json entry"):
        content = {key: {"s": _completed(host, given[name])}} if name in given else None
        found += [] if content is None else [source(content, "file", scope="user", kind=kind)]
    if key in given:
        found.append(source({key: given[key]}, "file", scope="user", kind=kind))
    if f"workspace {key}" in given:
        found.append(source({key: given[f"workspace {key}"]}, "workspace", scope="project", kind=kind))
    for name, content in {**given, **table(given.get("files"))}.items():
        if name.endswith((".json", ".yaml", ".jsonc")) and "permission" not in name and content != name:
            found.append(_file(host, name, content=content))
    return found


def _file(host: str, name: str, *, content: Any) -> Source:
    kind = _ROOTS[host][1]
    scope: Any = "user" if name.startswith(("~", "/")) or "mcp_settings" in name else "project"
    if host == "vscode" and name == ".mcp.json":
        kind = "root"
    if host == "continue" and name.endswith(".yaml"):
        kind = "config"
    return source(content, name, scope=scope, kind=kind)


def _gemini(given: Case, files: list[Source]) -> list[Source]:
    """The settings that a case names without a file."""
    more: dict[str, Any] = {}
    if given.get("folder_trust_enabled") is True:
        more["security"] = {"folderTrust": {"enabled": True}}
    for name in ("mcp", "tools", "admin"):
        if name in given:
            more[name] = given[name]
    extra = {name: given[name] for name in ("includeTools", "excludeTools") if name in given}
    if extra:
        more["mcpServers"] = {"s": {"command": "x", **extra}}
    return [source(more, "~/.gemini/settings.json", scope="user", kind="settings"), *files] if more else files


def _setup(host: str, given: Case) -> tuple[Setup, Situation]:
    told = situation(given)
    if "folder_trusted" in given:
        told = situation(given, trusted=given["folder_trusted"] is True)
    files = _sources(host, given)
    if host == "gemini-cli":
        files = _gemini(given, files)
    if host == "vscode" and any(name.startswith("chat.") for name in given):
        settings = {name: value for name, value in given.items() if name.startswith("chat.")}
        files.append(source(settings, "settings.json", scope="user", kind="settings"))
        files += _server(given)
    return DIALECTS[host].read(files, told), told


def _server(given: Case) -> list[Source]:
    """The server of a case about lists of servers."""
    server = table(given.get("server"))
    if not server:
        return []
    argv = server.get("command")
    entry: dict[str, Any] = {name: server[name] for name in ("url", "type") if name in server}
    if argv is not None:
        words = [argv] if isinstance(argv, str) else listed(argv)
        entry |= {"command": words[0], "args": words[1:]}
    content = {"servers": {str(server.get("name", "s")): entry}}
    return [source(content, "profile mcp.json", scope="user")]


def _files(host: str, given: Case) -> dict[str, Any]:
    setup, told = _setup(host, given)
    out: dict[str, Any] = {
        "servers": {name: facts(config, told.env) for name, config in setup.active.items()},
        "file": Present(setup.failure is None),
        "config": Present(setup.failure is None),
    }
    names = [standing.config.name for standing in setup]
    left = [problem.server for problem in setup.problems if problem.server is not None]
    first = next(iter([*names, *left]), "s")
    out["server"] = present(setup, first)
    if not setup.servers:
        return out
    config = setup.servers[0].config
    out |= facts(config, told.env)
    if host == "continue":
        out["env"] = dict(config.env)  # a template is what the host makes of it
    out["oauth"] = Says(config.sign_in, "start|auto") if config.sign_in else Fact("none")
    out["visible"] = [tool for tool in listed(given.get("tools")) if config.lists(str(tool))]
    full, _ = expand(config, told.env)
    out["child_env"] = Child(environment(full, told.env))
    out["warnings"] = Mentions([text for standing in setup for text in standing.config.warnings])
    standing = setup.servers[0].state
    out["decision"] = Says(standing, "^allow" if standing == "active" else "not allowed|block|den")
    return out


def _value(host: str, given: Case) -> dict[str, Any]:
    name = str(given.get("file", "file"))
    key = "mcpServers" if name == ".mcp.json" else _ROOTS[host][0]
    content = {key: {"s": _completed(host, {"command": "x", "args": [given["value"]]})}}
    setup = DIALECTS[host].read([_file(host, name, content=content)], situation(given))
    full, _ = expand(setup.servers[0].config, situation(given).env)
    return {"value": full.args[-1]}


def _completed(host: str, entry: Any) -> Any:
    """An entry with what it needs to be one, where a case leaves that out."""
    given = table(entry)
    if host == "opencode" and not given.keys() & {"type", "url", "command"}:
        return {"type": "remote", "url": "https://x.example/mcp", **given}
    if host == "opencode" and "args" in given:
        return {"type": "local", "command": [given["command"], *given["args"]]}
    return entry


def _limits(given: Case) -> dict[str, Any]:
    tools = int(given.get("enabled_tools", 0))
    return {"request": Says(tools, "refused" if tools > VSCODE_TOOLS else "accepted|sent|ok")}


# Names ---------------------------------------------------------------------------------------------------


def _naming(host: str, given: Case) -> dict[str, Any]:
    if "server_label" in given or "server_labels" in given:
        labels = listed(given.get("server_labels")) or [given["server_label"]]
        prefixes = vscode_prefixes(str(label) for label in labels)
        return {"prefix": prefixes[-1], "prefixes": prefixes}
    pair = (str(given["server"]), str(given["tool"]))
    names = HostNames(host, [pair])
    found = names.of(*pair)
    if found is None:
        return {"tool": Present(False, names.left_out[pair])}
    return {"name": found.model, "length": len(found.model), "tool": Present(True)}


# Permissions ---------------------------------------------------------------------------------------------


def _permission(host: str, given: Case) -> dict[str, Any]:
    dialect = DIALECTS[host]
    told = _mode(host, given)
    setup = dialect.read([*_sources(host, given), *_RULES[host](given)], told)
    names = [str(name) for name in listed(given.get("calls")) or listed(given.get("tools"))]
    names = names or [str(given.get("call", "s/t"))]
    decisions: list[Effect] = []
    for name in names:
        decision = dialect.judge(setup, _call(host, name, given=given), situation=told)
        decisions.append(Effect(decision.effect, hidden=decision.hidden))
    out: dict[str, Any] = {"decision": decisions[0], "decisions": list(decisions)}
    out |= dict(zip(names, decisions, strict=True))
    if host == "vscode":
        review = dialect.judge(setup, _call(host, names[0], given=given), situation=told).review
        shown = Says(review, "confirm|ask|review") if review else Says(review, "shown|none|no")
        out |= dict.fromkeys(("result", "result_confirmation", "confirm_result"), shown)
    return out


def _mode(host: str, given: Case) -> Situation:
    told = situation(given)
    cli = host == "cursor" and (
        "cli" in str(given.get("surface", "")) or any("cli" in name for name in given)
    )
    mode = "cli" if cli else str(given.get("run_mode", given.get("mode", given.get("approval_mode", ""))))
    return Situation(
        folder=told.folder,
        trusted=told.trusted,
        interactive=told.interactive and mode not in ("headless", "-p"),
        mode="" if mode in ("headless", "-p", "interactive") else mode,
        home=HOME,
    )


def _call(host: str, name: str, *, given: Case) -> Any:
    if "/" in name:
        return call(name, given, separator="/")
    if host == "continue":
        return call(f"{name.partition('_')[0]}/{name}", given, separator="/")
    if host == "opencode":
        return call(name, given, separator="_")
    return call(f"s/{name}", given, separator="/")


def _cursor(given: Case) -> list[Source]:
    found: list[Source] = []
    for name, content in given.items():
        scope: Any = (
            "managed" if "team" in name else "project" if name.startswith(("<ws>", ".cursor")) else "user"
        )
        if "cli" in name and isinstance(content, Mapping):
            found.append(source(content, name, scope=scope, kind="cli"))
        elif "permissions.json" in name:
            found.append(source(content, name, scope=scope, kind="permissions"))
        elif name == "permissions":
            found.append(source({"permissions": content}, "cli.json", scope="project", kind="cli"))
        elif "allowlist" in name:
            kind = "permissions" if scope == "managed" else "ide"
            found.append(source({"mcpAllowlist": content}, name, scope=scope, kind=kind))
    return found


def _policies(given: Case) -> list[Source]:
    """Gemini's rules as one of the person's policy files."""
    text = ""
    for rule in listed(given.get("rules")):
        text += "[[rule]]\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in table(rule).items())
    more = {name: given[name] for name in ("mcp", "tools") if name in given}
    files = [source(more, "settings.json", scope="user", kind="settings")] if more else []
    return [Source(text, "~/.gemini/policies/rules.toml", "user", "policy"), *files]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{json.dumps(name)} = {_toml(item)}" for name, item in table(value).items())
            + "}"
        )
    return json.dumps(value)


def _vscode(given: Case) -> list[Source]:
    settings = {name: value for name, value in given.items() if name.startswith("chat.")}
    return [source(settings, "settings.json", scope="user", kind="settings")]


def _opencode(given: Case) -> list[Source]:
    content = {name: given[name] for name in ("permission", "permissions") if name in given}
    return [source(content, "opencode.json", kind="config")]


def _zed(given: Case) -> list[Source]:
    content = {"agent": {"tool_permissions": given.get("tool_permissions", {})}}
    return [source(content, "settings.json", scope="user", kind="settings")]


def _continue(given: Case) -> list[Source]:
    content = {"policies": listed(given.get("policies"))}
    return [source(content, "permissions", scope="user", kind="permissions")]


def _copilot(given: Case) -> list[Source]:
    text = "\n".join(str(word) for word in listed(given.get("argv")))
    return [Source(text, "command line", "cli", "options")]


def _none(given: Case) -> list[Source]:
    del given
    return []


_RULES: Final = {
    "cursor": _cursor,
    "gemini-cli": _policies,
    "vscode": _vscode,
    "opencode": _opencode,
    "zed": _zed,
    "continue": _continue,
    "copilot-cli": _copilot,
    "cline": _none,
    "roo-code": _none,
    "claude-desktop": _none,
}
