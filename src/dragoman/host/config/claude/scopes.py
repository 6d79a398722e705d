"""What Claude Code's files come to together: which entry of a name is used, and what holds it back.

Pure: `read` is handed the texts of all files. The order of an entry's trials: organisation's file, strict
command line, lists of the organisation, switched off, approval, then its place among those of its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dragoman.host.config import fields
from dragoman.host.config.claude.approval import Approvals
from dragoman.host.config.claude.entries import (
    HOST,
    Brought,
    read_manifest,
    read_servers,
    read_table,
    servers_of,
)
from dragoman.host.config.claude.policy import Entry, Lists, entries, literal, refusal, unfit
from dragoman.host.config.claude.settings import Settings, read_settings
from dragoman.host.config.fields import Bad
from dragoman.host.config.located import JsonError, Node, parse
from dragoman.host.config.record import (
    Origin,
    Problem,
    Scope,
    ServerConfig,
    ServerFile,
    Setup,
    Situation,
    Source,
    Standing,
    named,
)

# The first of a name is used, whole. A run's own `--mcp-config` stands before everything.
_ORDER: Final[tuple[Scope, ...]] = ("cli", "managed", "local", "project", "user", "plugin", "connector")
_PLUGIN_ONLY: Final = "strictPluginOnlyCustomization"
_EXCLUSIVE: Final = "exclusive"
_CONNECTORS: Final = "ENABLE_CLAUDEAI_MCP_SERVERS"


@dataclass(frozen=True, slots=True)
class _Files:
    """The files, read."""

    settings: tuple[Settings, ...]
    state: Node | None  # ~/.claude.json
    state_file: str
    exclusive: Source | None  # managed-mcp.json
    servers: tuple[ServerConfig, ...]
    given: tuple[ServerConfig, ...]  # managedMcpServers
    problems: tuple[Problem, ...]


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to.

    Kinds of sources: `servers` (`.mcp.json`; scope `cli` for `--mcp-config`, `plugin` with the plugin's name
    and its CLAUDE_PLUGIN_ROOT), `manifest` (a plugin's `plugin.json`), `state` (`~/.claude.json`), `settings`
    (scopes managed, cli, local, project, user) and `exclusive` (`managed-mcp.json`).
    """
    files = _read_files(sources, situation)
    rules = tuple(rule for item in files.settings for rule in item.rules)
    trusted = _trusted(files, situation)
    settings = {**_mode(files.settings, trusted=trusted), "trusted": trusted}
    failure = _failure(files, sources, strict=situation.strict)
    if failure is not None:
        return Setup(HOST, (), rules, files.problems, failure, settings)
    standings, problems = _stand(files, situation, trusted=trusted)
    return Setup(HOST, standings, rules, (*files.problems, *problems), settings=settings)


# Reading -------------------------------------------------------------------------------------------------


def _read_files(sources: Sequence[Source], situation: Situation) -> _Files:
    settings = tuple(read_settings(source) for source in named(sources, "settings"))
    problems = [problem for item in settings for problem in item.problems]
    servers: list[ServerConfig] = []
    state, state_file = None, ""
    for source in named(sources, "state"):
        state_file = source.file
        try:
            state = parse(source.text)
            read = _state_servers(state, source.file, situation=situation)
        except JsonError as exc:
            read = ServerFile(problems=(fields.unreadable(exc, source.file),))
        except Bad as bad:
            read = ServerFile(problems=(fields.problem(bad, source.file),))
        servers += read.servers
        problems += read.problems
    for source in (*named(sources, "servers"), *named(sources, _EXCLUSIVE)):
        read = read_servers(source.text, source.file, brought=_brought(source, situation))
        servers += read.servers
        problems += read.problems
    for source in named(sources, "manifest"):
        read = read_manifest(source.text, source.file, brought=_brought(source, situation))
        servers += read.servers
        problems += read.problems
    given, unfitting = _given(settings)
    exclusive = next(named(sources, _EXCLUSIVE), None)
    return _Files(settings, state, state_file, exclusive, tuple(servers), given, (*problems, *unfitting))


def _brought(source: Source, situation: Situation) -> Brought:
    scope: Scope = "managed" if source.kind == _EXCLUSIVE else source.scope
    if scope != "plugin":
        return Brought(scope)
    folder = {"CLAUDE_PROJECT_DIR": situation.folder} if situation.folder else {}
    return Brought(scope, source.name, {**folder, **source.variables})


def _state_servers(root: Node, file: str, *, situation: Situation) -> ServerFile:
    """The servers of `~/.claude.json`: the person's, and those that are for this project alone."""
    fields.need(root)
    servers: list[ServerConfig] = []
    problems: list[Problem] = []
    project = _project(root, situation)
    for node, scope in ((root, "user"), (project, "local")):
        if node is None or "mcpServers" not in node.members:
            continue
        read = read_table(servers_of(node), file, brought=Brought("user" if scope == "user" else "local"))
        servers += read.servers
        problems += read.problems
    return ServerFile(tuple(servers), tuple(problems))


def _project(state: Node | None, situation: Situation) -> Node | None:
    projects = None if state is None else state.members.get("projects")
    return None if projects is None else projects.members.get(situation.folder)


def _given(settings: Sequence[Settings]) -> tuple[tuple[ServerConfig, ...], list[Problem]]:
    """`managedMcpServers` of managed settings; an entry that may not be there is dropped alone."""
    servers: list[ServerConfig] = []
    problems: list[Problem] = []
    for item in settings:
        node = item.node("managedMcpServers")
        if node is None or item.scope != "managed":
            continue
        file = item.source.file
        if not isinstance(node.value, dict):
            text = f"`managedMcpServers`: {fields.wrong('an object', node.value)}"
            problems.append(Problem(text, fields.origin(node, file)))
            continue
        read = read_table(node, file, brought=Brought("managed"))
        problems += read.problems
        for config in read.servers:
            why = unfit(config)
            if why is None:
                servers.append(config)
            else:
                text = f"server {config.name!r} is left out of `managedMcpServers`: {why}"
                problems.append(Problem(text, config.origin, config.name))
    return tuple(servers), problems


def _mode(settings: Sequence[Settings], *, trusted: bool) -> dict[str, object]:
    """The default permission mode, of the strongest file that sets one.

    A folder without trust sets none, and no project's file can switch all questions off.
    """
    order: tuple[Scope, ...] = ("managed", "cli", "local", "project", "user")
    for scope in order:
        for item in settings:
            block = item.node("permissions")
            mode = None if block is None else block.members.get("defaultMode")
            if item.scope != scope or mode is None or not isinstance(mode.value, str):
                continue
            if _heard(scope, mode.value, trusted=trusted):
                return {
                    "defaultMode": mode.value,
                    "defaultMode.origin": fields.origin(mode, item.source.file),
                }
    return {}


def _heard(scope: Scope, mode: str, *, trusted: bool) -> bool:
    if scope == "project":
        return trusted and mode != "bypassPermissions"
    return trusted or scope != "local"


def _trusted(files: _Files, situation: Situation) -> bool:
    if situation.trusted is not None:
        return situation.trusted
    project = _project(files.state, situation)
    accepted = None if project is None else project.members.get("hasTrustDialogAccepted")
    return accepted is not None and accepted.value is True


def _failure(files: _Files, sources: Sequence[Source], *, strict: bool) -> Problem | None:
    """With an organisation's own file there is no adding to it for one run: the program ends."""
    if files.exclusive is None:
        return None
    added = next(named(sources, "servers", "cli"), None)
    if strict:
        text = f"`--strict-mcp-config` is refused where there is {files.exclusive.file}"
        return Problem(text, Origin(files.exclusive.file))
    if added is not None:
        text = f"`--mcp-config` is refused where there is {files.exclusive.file}"
        return Problem(text, Origin(added.file))
    return None


# Standing ------------------------------------------------------------------------------------------------


def _stand(
    files: _Files, situation: Situation, *, trusted: bool
) -> tuple[tuple[Standing, ...], list[Problem]]:
    lists, problems = _lists(files.settings)
    approvals = Approvals(
        settings=files.settings,
        project=_project(files.state, situation),
        file=files.state_file,
        situation=situation,
        trusted=trusted,
    )
    plugin_only = _plugin_only(files.settings)
    ranked = sorted((*files.given, *files.servers), key=lambda config: _rank(config, files))
    standing: list[Standing] = []
    for config in ranked:
        held = (
            _elsewhere(config, files, situation=situation, plugin_only=plugin_only)
            or _barred(config, files, lists=lists, situation=situation)
            or approvals.held(config)
        )
        if held is None:
            winner = _winner(config, standing)
            held = None if winner is None else Standing(config, "shadowed", _loses(winner), winner.origin)
        standing.append(held or Standing(config))
    return tuple(standing), problems


def _rank(config: ServerConfig, files: _Files) -> tuple[int, int]:
    exclusive = files.exclusive is not None and config.origin.file == files.exclusive.file
    return (-1, 0) if exclusive else (_ORDER.index(config.scope), 0)


def _winner(config: ServerConfig, standing: Sequence[Standing]) -> ServerConfig | None:
    """The entry that is used in place of this one: of the same name, for a plugin's of the same endpoint."""
    for item in standing:
        if item.state != "active":
            continue
        by_endpoint = config.scope in ("plugin", "connector")
        if item.config.name == config.name or (by_endpoint and _endpoint(item.config) == _endpoint(config)):
            return item.config
    return None


def _endpoint(config: ServerConfig) -> tuple[str | None, ...]:
    return (config.url, config.command, *config.args)


def _loses(winner: ServerConfig) -> str:
    return f"the entry of scope {winner.scope} in {winner.origin} is used"


def _elsewhere(
    config: ServerConfig, files: _Files, *, situation: Situation, plugin_only: Origin | None
) -> Standing | None:
    """Whether something else than this entry's file is all that counts."""
    if config.scope == "connector" and (off := _connectors_off(files.settings, situation)) is not None:
        return Standing(config, "disabled", *off)
    if files.exclusive is not None and not _beside(config, files):
        why = f"{files.exclusive.file} is there: only its servers are used"
        return Standing(config, "blocked", why, Origin(files.exclusive.file))
    if situation.strict and config.scope != "cli":
        return Standing(config, "shadowed", "only servers of `--mcp-config` are used")
    if plugin_only is not None and config.scope in ("user", "project", "local"):
        return Standing(
            config, "blocked", f"`{_PLUGIN_ONLY}` is set: plugins alone bring servers", plugin_only
        )
    return None


def _connectors_off(settings: Sequence[Settings], situation: Situation) -> tuple[str, Origin | None] | None:
    """Who has switched an account's connectors off: any of the files, or the environment."""
    for item, node in _nodes(settings, "disableClaudeAiConnectors"):
        if node.value is True:
            return "`disableClaudeAiConnectors` is true", fields.origin(node, item.source.file)
    if situation.env.get(_CONNECTORS, "").strip().lower() in ("false", "0"):
        return f"{_CONNECTORS} is false", None
    return None


def _beside(config: ServerConfig, files: _Files) -> bool:
    """Whether an entry may be there beside the organisation's own file."""
    allows = any(
        item.scope == "managed" and item.value("allowAllClaudeAiMcps") is True for item in files.settings
    )
    return config.scope == "managed" or (config.scope == "connector" and allows)


def _barred(config: ServerConfig, files: _Files, *, lists: Lists, situation: Situation) -> Standing | None:
    """Whether the organisation's lists are against it; what it gives itself needs no list to allow it."""
    own = files.exclusive is not None and config.origin.file == files.exclusive.file
    if config in files.given or (own and literal(config)):
        lists = replace(lists, allowed=None)
    refused = refusal(config, lists, env=situation.env)
    return None if refused is None else Standing(config, "blocked", *refused)


def _plugin_only(settings: Sequence[Settings]) -> Origin | None:
    for item in settings:
        node = item.node(_PLUGIN_ONLY)
        if item.scope == "managed" and node is not None:
            if node.value is True or any(part.value == "mcp" for part in node.items):
                return fields.origin(node, item.source.file)
    return None


def _lists(settings: Sequence[Settings]) -> tuple[Lists, list[Problem]]:
    """The lists of all files together; of allowlists the managed one alone, where it says so."""
    locked = any(
        item.scope == "managed" and item.value("allowManagedMcpServersOnly") is True for item in settings
    )
    problems: list[Problem] = []
    allowed: list[Entry] = []
    denied: list[Entry] = []
    is_set = False
    for item, node in _nodes(settings, "allowedMcpServers"):
        if locked and item.scope != "managed":
            continue
        found, bad = entries(node, item.source.file, deny=False)
        is_set = True
        allowed += found
        problems += bad
    for item, node in _nodes(settings, "deniedMcpServers"):
        found, bad = entries(node, item.source.file, deny=True)
        denied += found
        problems += bad
    env: dict[str, str] = {}
    for item, node in _nodes(settings, "env"):
        if item.scope == "managed":
            env |= {name: part.value for name, part in node.members.items() if isinstance(part.value, str)}
    return Lists(tuple(allowed) if is_set else None, tuple(denied), env), problems


def _nodes(settings: Sequence[Settings], name: str) -> Iterator[tuple[Settings, Node]]:
    for item in settings:
        node = item.node(name)
        if node is not None:
            yield item, node
