"""What a person can do about an entry that is not in use, or that will not start, in each host's own words.

Pure. It says where the switch is and turns none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman.host.config.record import Standing

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
