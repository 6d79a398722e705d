"""Cases of an organisation's lists of servers, as Claude Code has them."""

from __future__ import annotations

from typing import Any, Final

from dragoman.host.config import claude
from dragoman.host.config.record import Source
from dragoman.host.naming import connector

from .claude_files import SCOPES, scoped, setup
from .expecting import Present, Says
from .findings import Servers
from .forms import Case, is_list, is_table, listed, outcome, present, situation, source, table

_LISTS: Final = ("allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly")
_OTHERS: Final = ("user", "local", "~/.claude.json", "agent", "inline agent", "subagent")


def policy(given: Case) -> dict[str, Any]:
    """Whether a server may be used."""
    if "server" not in given:
        found, told = setup(given, interactive=False)
        return outcome(found, told.env)
    server = (
        table(given["server"]) if is_table(given["server"]) else {"name": given["server"], "command": ["x"]}
    )
    managed = {**table(given.get("managed")), **{key: given[key] for key in _LISTS if key in given}}
    managed = {key: value for key, value in managed.items() if value is not None}
    if server.get("type") == "sdk":
        # What lives inside the program itself is in no file, and lists are not for it.
        return {"decision": Says("allowed", "^allow")}
    came = str(server.get("from", server.get("source", server.get("scope", "user"))))
    name = str(server.get("name", "s"))
    if came == "connector" and not name.startswith("claude.ai "):
        name = connector(name)
    files = [*_carriers(came, name, entry=_entry(server), managed=managed), *_settings(given)]
    files.append(source(managed, "managed-settings.json", scope="managed", kind="settings"))
    found = claude.read(files, situation(given, interactive=False))
    standing = found.find(f"plugin:p:{name}" if came == "plugin" else name)
    if standing is None:
        return {"decision": Says("entry dropped", "dropped|invalid|left out|skipped|ignored")}
    active = standing.state == "active"
    return {
        "decision": Says(standing.state, "^allow" if active else "block|den|not allowed|refus|reject"),
        "server": present(found, standing.config.name),
        "allowed": active,
        "servers": Servers({name: {}} if active else {}, {} if active else {name: Present(False)}),
    }


def _settings(given: Case) -> list[Source]:
    """The settings of other scopes than the organisation's."""
    told = table(given.get("settings"))
    found = [
        source(told[scope], f"{scope} settings", scope=scope, kind="settings")
        for scope in SCOPES
        if scope in told
    ]
    return [*found, *(item for scope in SCOPES[1:] if (item := scoped(given, scope)) is not None)]


def _entry(server: dict[str, Any]) -> dict[str, Any]:
    words = ("name", "from", "source", "scope", "note")
    entry = {name: value for name, value in server.items() if name not in words}
    argv = server.get("command", server.get("argv"))
    if is_list(argv):
        entry |= {"command": argv[0], "args": [*argv[1:], *listed(server.get("args"))]}
    if "url" in entry and "type" not in entry:
        entry["type"] = "http"
    return entry


def _carriers(came: str, name: str, *, entry: dict[str, Any], managed: dict[str, Any]) -> list[Source]:
    """The file that a server comes from."""
    content = {"mcpServers": {name: entry}}
    if came == "managedMcpServers":
        managed["managedMcpServers"] = {name: entry}
        return []
    if came == "managed-mcp.json":
        return [source(content, came, scope="managed", kind="exclusive")]
    if came == "connector":
        return [source(content, "the account", scope="connector")]
    if came == "plugin":
        return [source(content, "plugin p/.mcp.json", scope="plugin", name="p")]
    if came in ("--mcp-config", "cli"):
        return [source(content, "--mcp-config", scope="cli")]
    if came in ("project", ".mcp.json"):
        return [source(content, ".mcp.json", scope="project")]
    if came not in _OTHERS:
        raise ValueError(f"server: from: {came!r} is not known")
    return [source(content, ".mcp.json", scope="user")]
