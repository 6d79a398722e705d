"""How each host writes an entry: what its members are called, in what units, and what it has none for.

Pure data; `entries` makes entries of it, and `targets` knows the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from dragoman.host.config.record import Wire

Fallback: TypeAlias = Literal["no", "always", "untyped"]
"""Whether the old transport is tried after Streamable HTTP: never, always, or where there is no `type`."""


@dataclass(frozen=True, slots=True)
class Form:
    """One host's entries.

    `below` are the names on the way to them. `types` has the transports that the host speaks, with its word
    for `type`, None where it is left out. Of times, the member's name and how many of its units a
    second has. Other members have their names, None where there is none. `also` are members that mean
    the same as one of those, and go when that is written.
    """

    below: tuple[str, ...]
    types: Mapping[Wire, str | None]
    fallback: Fallback = "no"
    env: str = "env"
    headers: str = "headers"
    cwd: str | None = None
    env_file: str | None = None
    timeout: tuple[str, float] | None = None
    startup: tuple[str, float] | None = None
    enabled: str | None = None
    disabled: str | None = None
    required: str | None = None
    only_tools: str | None = None
    without_tools: str | None = None
    also: tuple[str, ...] = ()

    @property
    def members(self) -> frozenset[str]:
        """The names of all members that are written, or replaced by what is."""
        times = [pair[0] for pair in (self.timeout, self.startup) if pair is not None]
        names = (self.env, self.headers, self.cwd, self.env_file, self.enabled, self.disabled)
        more = (self.required, self.only_tools, self.without_tools, "type", "command", "args", "url")
        return frozenset(name for name in (*names, *more, *times, *self.also) if name is not None)


_MCP_SERVERS: Final = ("mcpServers",)

FORMS: Final[Mapping[str, Form]] = {
    "claude-code": Form(
        _MCP_SERVERS,
        {"stdio": None, "http": "http", "sse": "sse", "ws": "ws"},
        timeout=("timeout", 1000),
    ),
    "codex": Form(
        ("mcp_servers",),
        {"stdio": None, "http": None},
        headers="http_headers",
        cwd="cwd",
        timeout=("tool_timeout_sec", 1),
        startup=("startup_timeout_sec", 1),
        enabled="enabled",
        required="required",
        only_tools="enabled_tools",
        without_tools="disabled_tools",
        also=("env_vars", "env_http_headers", "bearer_token_env_var", "bearer_token", "startup_timeout_ms"),
    ),
    "cursor": Form(
        _MCP_SERVERS,
        {"stdio": "stdio", "http": "http", "sse": "sse"},
        fallback="untyped",
        env_file="envFile",
    ),
    "vscode": Form(
        ("servers",),
        {"stdio": "stdio", "http": "http", "sse": "http"},
        fallback="always",
        cwd="cwd",
        env_file="envFile",
    ),
    "claude-desktop": Form(_MCP_SERVERS, {"stdio": None}),
    "gemini-cli": Form(
        _MCP_SERVERS,
        {"stdio": None, "http": "http", "sse": "sse"},
        fallback="untyped",
        cwd="cwd",
        timeout=("timeout", 1000),
        only_tools="includeTools",
        without_tools="excludeTools",
        also=("httpUrl", "tcp"),
    ),
    "opencode": Form(
        ("mcp",),
        {"stdio": "local", "http": "remote", "sse": "remote"},
        fallback="always",
        env="environment",
        cwd="cwd",
        timeout=("timeout", 1000),
        enabled="enabled",
    ),
    "zed": Form(
        ("context_servers",),
        {"stdio": None, "http": None},
        timeout=("timeout", 1),
        enabled="enabled",
    ),
    "cline": Form(
        _MCP_SERVERS,
        {"stdio": None, "http": "streamableHttp", "sse": "sse"},
        timeout=("timeout", 1),
        disabled="disabled",
        also=("transport", "transportType"),
    ),
    "roo-code": Form(
        _MCP_SERVERS,
        {"stdio": None, "http": "streamable-http", "sse": "sse"},
        timeout=("timeout", 1),
        disabled="disabled",
        without_tools="disabledTools",
    ),
    "continue": Form(
        _MCP_SERVERS,
        {"stdio": None, "http": "streamable-http", "sse": "sse"},
        fallback="untyped",
        cwd="cwd",
        startup=("connectionTimeout", 1000),
    ),
    "copilot-cli": Form(
        _MCP_SERVERS,
        {"stdio": "local", "http": "http", "sse": "sse"},
        cwd="cwd",
        only_tools="tools",
    ),
}

# opencode's second form, for a file that is written in it.
OPENCODE_SECOND: Final = Form(
    ("mcp", "servers"),
    {"stdio": "local", "http": "remote"},
    env="environment",
    cwd="cwd",
    disabled="disabled",
)
