"""The input of a case: its members under one name each, and which of them nothing has looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

WORDS: Final = frozenset({"note", "comment", "reason", "description_of_case"})
"""Members that are for people."""

_ALIASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("arguments", "tool_input"), "args"),
    **dict.fromkeys(("_meta", "meta", "toolMeta"), "tool_meta"),
    **dict.fromkeys(("tool_annotations", "hints"), "annotations"),
    **dict.fromkeys(
        ("hook", "PreToolUse", "preToolUse", "hook_decision", "pretooluse_hook"), "pre_tool_use_hook"
    ),
    **dict.fromkeys(("canUseTool", "can_use_tool", "callback", "sdk_can_use_tool"), "sdk_callback"),
    **dict.fromkeys(
        ("prompt_tool", "permission_prompt_tool_returns", "permission_prompt_tool_answer"),
        "permission_prompt_tool",
    ),
    **dict.fromkeys(("mcp_config", "mcp-config", "mcpConfig"), "--mcp-config"),
    **dict.fromkeys(("strict_mcp_config", "strict-mcp-config"), "--strict-mcp-config"),
    **dict.fromkeys(("flags", "cli_args", "cli_flags", "command_line"), "argv"),
    **dict.fromkeys(("workspaceFolder", "workspace_folder", "project_folder", "folder"), "cwd"),
    **dict.fromkeys(("userHome", "user_home", "HOME"), "home"),
    **dict.fromkeys(
        ("claude.ai connectors", "claude.ai connector", "claude_ai_connectors", "connector_servers"),
        "connectors",
    ),
    "deny rules": "deny",
    **dict.fromkeys(("managed_settings", "managed settings"), "managed"),
    **dict.fromkeys(("user settings", "userSettings"), "user_settings"),
    **dict.fromkeys(("project settings", "projectSettings"), "project_settings"),
    **dict.fromkeys(("folder_trusted", "workspace_trusted"), "trusted"),
    **dict.fromkeys(("folderTrust", "folder_trust"), "folder_trust_enabled"),
    **dict.fromkeys(("runMode", "run mode"), "run_mode"),
    **dict.fromkeys(("orgToolSetting", "org_setting", "connector_tool_setting"), "org_tool_setting"),
    **dict.fromkeys(("settings file", "--settings file"), "--settings"),
}


_LIKE: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"prompt.?tool", re.IGNORECASE), "permission_prompt_tool"),
    (re.compile(r"can.?use.?tool|callback", re.IGNORECASE), "sdk_callback"),
    (re.compile(r"^(?!.*matcher).*hook", re.IGNORECASE), "pre_tool_use_hook"),
    (re.compile(r"^org_|organi[sz]ation.*setting", re.IGNORECASE), "org_tool_setting"),
)


_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("transport", "config", "entry", "parsing", "bad-entry"), "parse"),
    **dict.fromkeys(("expansion", "environment", "variables", "env-expansion"), "env"),
    **dict.fromkeys(("merge", "scope", "scopes", "layers", "files-merge"), "precedence"),
    **dict.fromkeys(("name", "names", "tool-naming"), "naming"),
    **dict.fromkeys(("permissions", "decision", "rules", "rule"), "permission"),
    **dict.fromkeys(("filter", "tools-filter", "tool-visibility"), "tool-filter"),
    **dict.fromkeys(("policy", "allowlist", "server-allowlist", "requirements", "gate"), "server-policy"),
    **dict.fromkeys(("timeouts", "time"), "timeout"),
    **dict.fromkeys(("project-approval", "approvals"), "approval"),
    **dict.fromkeys(("folder-trust", "workspace-trust"), "trust"),
    **dict.fromkeys(("hook", "hooks", "matcher"), "hook-matcher"),
    **dict.fromkeys(("outputs", "output-limit", "result-limit"), "output"),
    **dict.fromkeys(("deferral", "deferred", "deferred-tools"), "tool-search"),
    **dict.fromkeys(("schemas", "schema-conversion", "input-schema"), "schema"),
    **dict.fromkeys(("results", "result-conversion", "conversion-result"), "result"),
    **dict.fromkeys(("config-path", "config-paths", "config-file", "file-path", "location"), "path"),
}


def kind_of(kind: str) -> str:
    """A kind by the one name that it has here."""
    plain = kind.strip().lower().replace("_", "-").replace(" ", "-")
    return _KINDS.get(plain, plain)


def _own(name: str) -> str:
    """The one name of a member."""
    like = next((own for pattern, own in _LIKE if pattern.search(name)), name)
    return _ALIASES.get(name, like)


class Given(Mapping[str, Any]):
    """The members of an input. What is looked up, found or not, counts as looked at."""

    def __init__(self, members: Mapping[str, Any], *, as_written: bool = False) -> None:
        self._members: dict[str, Any] = {}
        self._written: dict[str, str] = {}
        for name, value in members.items():
            own = name if as_written else _own(name)
            own = name if own in members else own
            self._members[own] = value
            self._written[own] = name
        self._used: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._used.add(name)
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def without(self, *names: str) -> Given:
        """The same input without some members; what is looked at there is looked at here."""
        members = {name: value for name, value in self._members.items() if name not in names}
        other = Given(members, as_written=True)
        other._used = self._used
        return other

    def unread(self) -> list[str]:
        """The members that nothing has looked at, as they were written; empty ones say nothing."""
        return [
            self._written[name]
            for name, value in self._members.items()
            if name not in self._used and name not in WORDS and value not in ({}, [], None, "")
        ]
