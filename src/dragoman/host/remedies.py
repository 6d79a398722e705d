"""What a person can do about an entry that is not in use, or that will not start, in each host's own words.

Pure. It says where the switch is and turns none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman.host.config.record import Standing
from dragoman.protocol.naming import Name

NO_FILES: Final = (
    "write servers into .mcp.json (Claude Code), .codex/config.toml (Codex), .cursor/mcp.json (Cursor) "
    "or another host's file, or name another folder"
)
"""What to do where no host has a file with servers."""

_TRUST: Final[Mapping[str, str]] = {
    "codex": 'add [projects."{folder}"] with trust_level = "trusted" to ~/.codex/config.toml',
    "gemini-cli": "trust the folder: `/permissions trust` in gemini",
    "copilot-cli": "trust the folder when `copilot` asks at its start in it",
    "claude-code": "trust the folder when `claude` asks at its start in it",
}
_APPROVE: Final[Mapping[str, str]] = {
    "claude-code": 'start `claude` in the folder and approve it, or add "{name}" to '
    "`enabledMcpjsonServers` in .claude/settings.local.json",
    "cursor": "switch it on in Cursor's settings, under MCP",
    "vscode": "start it once by `MCP: List Servers` and trust it",
}
_DISABLED: Final[Mapping[str, str]] = {
    "claude-code": "take it out of `disabledMcpServers` ({by})",
    "codex": "take `enabled = false` out of the entry ({at})",
    "opencode": "take `enabled` or `disabled` out of the entry ({at})",
    "zed": "take `enabled` out of the entry ({at})",
}
_BLOCKED: Final[Mapping[str, str]] = {
    "claude-desktop": "add it under Settings > Connectors, or run it through a program such as mcp-remote",
}


def remedy(standing: Standing, *, host: str, folder: str = "") -> str:
    """What to do so that the entry is used; "" where nothing is amiss or nothing can be done here."""
    by = standing.by or standing.config.origin
    text = _text(standing, host)
    return text.format(folder=folder, name=standing.config.name, by=by, at=standing.config.origin)


def _text(standing: Standing, host: str) -> str:
    match standing.state:
        case "untrusted":
            return _TRUST.get(host, "trust the folder in the host")
        case "pending":
            return _APPROVE.get(host, "approve it in the host")
        case "rejected":
            return "take it out of the list ({by})"
        case "disabled":
            return _DISABLED.get(host, "take `disabled` out of the entry ({at})")
        case "blocked" if standing.by is not None:
            return _BLOCKED.get(host, "whoever keeps {by} decides about it")
        case "blocked":
            return _BLOCKED.get(host, "")
        case _:
            return ""


def unset(names: tuple[str, ...]) -> str:
    """What to do about variables without a value."""
    which = ", ".join(names)
    return f"set {which} in the environment that the host is started in"


_ALLOW: Final[Mapping[str, str]] = {
    "claude-code": 'add "{rule}" to `permissions.allow` in .claude/settings.local.json',
    "codex": 'set `approval_mode = "approve"` in [mcp_servers.{server}.tools.{tool}] of config.toml',
    "cursor": 'add "{server}:{tool}" to `mcpAllowlist` in ~/.cursor/permissions.json',
    "vscode": "say `always` when VS Code asks",
    "gemini-cli": 'add a rule with mcpName = "{server}", toolName = "{tool}" and decision = "allow" '
    "to a file in ~/.gemini/policies",
    "zed": 'set `agent.tool_permissions.tools["{rule}"].default` to "allow" in settings.json',
    "cline": 'add "{tool}" to `autoApprove` of the entry',
    "roo-code": 'add "{tool}" to `alwaysAllow` of the entry',
    "copilot-cli": "start it with --allow-tool '{server}({tool})'",
    "opencode": 'set `permission["{model}"]` to "allow" in opencode.json, behind all that match it',
}


def allowing(host: str, name: Name) -> str:
    """How a person lets a tool run without a question in a host; "" where that is not known."""
    text = _ALLOW.get(host, "")
    return text.format(rule=name.canonical, server=name.server, tool=name.tool, model=name.model)
