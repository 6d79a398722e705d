"""Codex's `config.toml`: layers that are put together field by field, and requirements over them.

Pure. One error in what the layers come to, and the whole configuration does not load. Nothing in an
entry is expanded: variables are named, and read when the server starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dragoman.host.config import fields
from dragoman.host.config.codex_requirements import requirement
from dragoman.host.config.fields import Bad
from dragoman.host.config.headers import is_name, is_value
from dragoman.host.config.located import Node
from dragoman.host.config.record import (
    Effect,
    Problem,
    Rule,
    Scope,
    ServerConfig,
    Setup,
    Situation,
    Source,
    Standing,
    named,
)
from dragoman.host.config.tables import Given, merged, path, read_root, read_table, seconds
from dragoman.host.config.toml import TomlError, parse

HOST: Final = "codex"

_ORDER: Final[tuple[Scope, ...]] = ("system", "cloud", "user", "profile", "project", "cli", "managed")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_STDIO: Final = ("args", "env", "env_vars", "cwd")
_HTTP: Final = (
    *("bearer_token_env_var", "bearer_token", "http_headers", "env_http_headers", "http_headers_helper"),
    *("oauth", "oauth_resource", "auth", "scopes"),
)
_MODES: Final[Mapping[str, Effect]] = {"auto": "ask", "prompt": "ask", "writes": "ask", "approve": "allow"}
_SETTINGS: Final = ("approval_policy", "sandbox_mode")
# What the project's own file may not say: above all whether the project is trusted.
_NOT_PROJECT: Final = ("projects", "profiles", "profile")


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to.

    Kinds of sources: `config` (scopes system, cloud, user, profile, project, cli, managed; of one scope
    the later given is stronger, as a file nearer to the working folder is), `requirements`, and `plugin`
    (a plugin's `.mcp.json`).
    """
    layers, failure = _layers(list(named(sources, "config")))
    if failure is not None:
        return Setup(HOST, problems=(failure,), failure=failure)
    trusted = _trusted(layers, situation)
    used = [(source, node) for source, node in layers if trusted or source.scope != "project"]
    root = Node({}, 1, 1)
    for _, node in used:
        root = merged(root, node)
    settings: dict[str, Any] = {"trusted": trusted}
    settings |= {name: value for name, value in _chosen(root).items() if isinstance(value, str)}
    try:
        servers = _servers(root)
    except Bad as bad:
        failure = fields.problem(bad, used[-1][0].file if used else "config.toml")
        return Setup(HOST, problems=(failure,), failure=failure, settings=settings)
    plugins, problems = _plugins(sources)
    held = requirement(list(named(sources, "requirements")))
    standing = [
        _standing(config, _files(config.name, used), held=held(config)) for config in (*servers, *plugins)
    ]
    standing += [] if trusted else _waiting(layers)
    return Setup(HOST, tuple(standing), problems=(*problems, *held.problems), settings=settings)


def _chosen(root: Node) -> dict[str, Any]:
    """What is set about approval, by the profile that is chosen or else for all."""
    profile = path(root, "profile")
    own = None if profile is None else path(root, "profiles", str(profile.value))
    chosen = {name: path(own, name) or path(root, name) for name in _SETTINGS}
    return {name: node.value for name, node in chosen.items() if node is not None}


def _layers(sources: Sequence[Source]) -> tuple[list[tuple[Source, Node]], Problem | None]:
    """The files from the weakest to the strongest, read."""
    ranked = sorted(sources, key=lambda source: _ORDER.index(source.scope) if source.scope in _ORDER else 0)
    layers: list[tuple[Source, Node]] = []
    for source in ranked:
        try:
            node = parse(source.text, source.file)
        except TomlError as exc:
            return [], fields.unreadable(exc, source.file)
        if source.scope == "project":
            kept = {name: member for name, member in node.members.items() if name not in _NOT_PROJECT}
            value = {name: member.value for name, member in kept.items()}
            node = Node(value, node.line, node.column, members=kept, names=node.names, file=node.file)
        layers.append((source, node))
    return layers, None


def _trusted(layers: Sequence[tuple[Source, Node]], situation: Situation) -> bool:
    if situation.trusted is not None:
        return situation.trusted
    for source, node in reversed(layers):
        level = path(node, "projects", situation.folder, "trust_level")
        if source.scope != "project" and level is not None:
            return bool(level.value == "trusted")
    return False


def _waiting(layers: Sequence[tuple[Source, Node]]) -> list[Standing]:
    """The servers of a project that nobody has trusted: they are not there, and a person may want to know."""
    standing: list[Standing] = []
    for source, node in layers:
        table = path(node, "mcp_servers")
        if source.scope != "project" or table is None:
            continue
        found = read_table(table, source, entry=_entry).servers
        standing += [
            Standing(config, "untrusted", "the folder is not trusted", config.origin) for config in found
        ]
    return standing


def _files(name: str, layers: Sequence[tuple[Source, Node]]) -> list[str]:
    return [source.file for source, node in layers if path(node, "mcp_servers", name) is not None]


def _standing(config: ServerConfig, files: Sequence[str], *, held: Standing | None) -> Standing:
    if _NAME.fullmatch(config.name) is None:
        return Standing(config, "blocked", "expected a name of letters, digits, `_` and `-`", config.origin)
    if not config.enabled:
        return Standing(config, "disabled", "`enabled` is false", config.origin)
    if held is not None:
        return held
    return Standing(config, "active", f"fields of {', '.join(files)}" if len(files) > 1 else "")


# Entries -------------------------------------------------------------------------------------------------


def _servers(root: Node) -> list[ServerConfig]:
    """The servers of all layers together. Raises Bad for the first entry that is none."""
    table = fields.block(root, "mcp_servers")
    if table is None:
        return []
    servers: list[ServerConfig] = []
    for name, node in table.members.items():
        try:
            fields.need(node, "a table")
            servers.append(_entry(Given(name, node, fields.origin(node, ""), "user")))
        except Bad as bad:
            raise Bad(f"mcp_servers.{name}: {bad.text}", bad.node) from None
    return servers


def _entry(given: Given) -> ServerConfig:
    node = given.node
    stdio = _is_stdio(node)
    rules = _rules(given)
    listed = "enabled_tools" in node.members
    headers, header_env, warnings = _headers(node)
    startup = seconds(node, "startup_timeout_sec")
    if startup is None:
        startup = seconds(node, "startup_timeout_ms", scale=0.001, unit="milliseconds")
    return ServerConfig(
        name=given.name,
        transport="stdio" if stdio else "http",
        origin=given.origin,
        command=fields.text(node, "command") if stdio else None,
        args=fields.words(node, "args"),
        env=fields.table(node, "env"),
        env_names=_env_names(node),
        cwd=fields.maybe(node, "cwd"),
        url=None if stdio else fields.text(node, "url"),
        headers=headers,
        header_env=header_env,
        bearer_env=fields.maybe(node, "bearer_token_env_var"),
        timeout=seconds(node, "tool_timeout_sec"),
        startup_timeout=startup,
        enabled=fields.flag(node, "enabled", default=True),
        required=fields.flag(node, "required"),
        only_tools=fields.words(node, "enabled_tools") if listed else None,
        without_tools=fields.words(node, "disabled_tools"),
        rules=rules,
        warnings=warnings,
        host=HOST,
        scope=given.scope,
        sign_in=not stdio,
        syntax=HOST,
        raw=node.value,
    )


def _headers(node: Node) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """The headers, and those whose values are variables; what cannot be sent is skipped, and told of."""
    fixed, named = fields.table(node, "http_headers"), fields.table(node, "env_http_headers")
    bad = [f"`http_headers`: {name!r} is skipped: no name of a header" for name in fixed if not is_name(name)]
    bad += [
        f"`env_http_headers`: {name!r} is skipped: no name of a header" for name in named if not is_name(name)
    ]
    bad += [
        f"`http_headers`: {name!r} is skipped: a value on one line is expected"
        for name, value in fixed.items()
        if is_name(name) and not is_value(value)
    ]
    kept = {name: value for name, value in fixed.items() if is_name(name) and is_value(value)}
    return kept, {name: value for name, value in named.items() if is_name(name)}, tuple(bad)


def _is_stdio(node: Node) -> bool:
    """By which of the two keys is there; what belongs to the other transport is an error."""
    if "bearer_token" in node.members:
        text = "`bearer_token`: a token may not stand in the file: use `bearer_token_env_var`"
        raise Bad(text, node.members["bearer_token"])
    stdio, http = "command" in node.members, "url" in node.members
    if stdio and http:
        raise Bad("`command` and `url`: expected one of the two", node.members["url"])
    if not stdio and not http:
        raise Bad("expected `command` or `url`", node)
    for name in _HTTP if stdio else _STDIO:
        if name in node.members:
            text = f"`{name}` is for servers with `{'url' if stdio else 'command'}`"
            raise Bad(text, node.members[name])
    return stdio


def _env_names(node: Node) -> tuple[str, ...]:
    found = node.members.get("env_vars")
    if found is None:
        return ()
    if not isinstance(found.value, list):
        raise Bad(f"`env_vars`: {fields.wrong('a list', found.value)}", found)
    names: list[str] = []
    for item in found.items:
        if isinstance(item.value, str):
            names.append(item.value)
            continue
        fields.need(item, "a name, or a table with `name`")
        source = fields.maybe(item, "source")
        if source not in (None, "local", "remote"):
            raise Bad("`env_vars`: `source`: expected local or remote", item)
        name = fields.text(item, "name")
        names += [] if source == "remote" else [name]
    return tuple(names)


def _rules(given: Given) -> tuple[Rule, ...]:
    """Approval modes: of the server's tools, and of single ones."""
    node, name = given.node, given.name
    rules: list[Rule] = []
    found = fields.choice(node, "default_tools_approval_mode", among={mode: mode for mode in _MODES})
    if found is not None:
        rules.append(_rule(node.members["default_tools_approval_mode"], found, given=given))
    tools = fields.block(node, "tools")
    for tool, member in () if tools is None else tools.members.items():
        fields.need(member, f"a table for `mcp_servers.{name}.tools.{tool}`")
        mode = fields.choice(member, "approval_mode", among={mode: mode for mode in _MODES})
        if mode is not None:
            rules.append(_rule(member.members["approval_mode"], mode, given=given, tool=tool))
    return tuple(rules)


def _rule(node: Node, mode: str, *, given: Given, tool: str | None = None) -> Rule:
    key = f"mcp_servers.{given.name}." + (
        "default_tools_approval_mode" if tool is None else f"tools.{tool}.approval_mode"
    )
    where = fields.origin(node, given.origin.file)
    detail = {"server": given.name, "tool": tool, "mode": mode}
    return Rule(_MODES[mode], f"{key} = {json.dumps(mode)}", where, given.scope, detail)


# Plugins -------------------------------------------------------------------------------------------------


def _plugins(sources: Sequence[Source]) -> tuple[list[ServerConfig], list[Problem]]:
    """Servers of plugins' `.mcp.json`: wrapped or bare, with a `type` or without, each failing alone."""
    servers: list[ServerConfig] = []
    problems: list[Problem] = []
    for source in named(sources, "plugin"):
        root, bad = read_root(source, comments=False)
        problems += bad
        read_ = read_table(path(root, "mcpServers") or root, source, entry=_entry)
        servers += read_.servers
        problems += read_.problems
    return servers, problems
