"""How long each host waits: for a start, a call, a first byte, and for a call in which nothing happens.

Pure. All times are seconds; None is no limit, or none that is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoman.host.config.record import ServerConfig


@dataclass(frozen=True, slots=True)
class Limits:
    """The times of one server."""

    startup: float | None = None
    call: float | None = None
    idle: float | None = None
    first_byte: float | None = None


_CLAUDE_STARTUP: Final = 30.0
_CLAUDE_CALL: Final = 100_000.0
_CLAUDE_FIRST_BYTE: Final = 60.0
_CLAUDE_IDLE: Final = {"stdio": 1800.0}
_DEFAULTS: Final[Mapping[str, Limits]] = {
    "codex": Limits(startup=30.0, call=300.0),
    "gemini-cli": Limits(call=600.0),
    "cline": Limits(call=60.0),
    "roo-code": Limits(call=60.0),
    "zed": Limits(call=60.0),
    "opencode": Limits(startup=30.0),
    "continue": Limits(startup=20.0),
}


def limits(config: ServerConfig, env: Mapping[str, str]) -> Limits:
    """The times that hold for a server: its entry's own, else the environment's, else the host's."""
    if config.host == "claude-code":
        return _claude(config, env)
    default = _DEFAULTS.get(config.host, Limits())
    return Limits(
        startup=default.startup if config.startup_timeout is None else config.startup_timeout,
        call=default.call if config.timeout is None else config.timeout,
    )


def _claude(config: ServerConfig, env: Mapping[str, str]) -> Limits:
    startup = _milliseconds(env, "MCP_TIMEOUT")
    told = config.timeout
    if told is None:
        told = _milliseconds(env, "MCP_TOOL_TIMEOUT")
        told = None if told is None else max(told, 1.0)
    idle = _idle(config, env)
    remote = config.transport in ("http", "sse")
    # The largest of what is said; the limit for calls that nobody has set is no such word.
    first = max(_CLAUDE_FIRST_BYTE, told or 0.0, startup or 0.0) if remote else None
    return Limits(
        startup=_CLAUDE_STARTUP if startup is None else startup,
        call=_CLAUDE_CALL if told is None else told,
        idle=None if idle is None else max(idle, config.timeout or 0.0),
        first_byte=first,
    )


def _idle(config: ServerConfig, env: Mapping[str, str]) -> float | None:
    told = _milliseconds(env, "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT")
    if told is None:
        return _CLAUDE_IDLE.get(config.transport, 300.0)
    return told or None


def _milliseconds(env: Mapping[str, str], name: str) -> float | None:
    """A time of the environment, None where there is none that is a number."""
    found = _whole(env, name)
    return None if found is None else found / 1000


def _whole(env: Mapping[str, str], name: str) -> int | None:
    """A whole number of the environment; None for what is none, or longer than any that is meant."""
    text = env.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


_DIGITS: Final = 18
_MOST_CHARACTERS: Final = 500_000
_TOKENS: Final = 25_000
_WARN_TOKENS: Final = 10_000
_DESCRIPTION: Final = 2048


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """How much of a result a host gives to its model.

    Above `warn` tokens a person is told; above `tokens` a text goes to a file, and the model gets a
    pointer to it. `characters` is in place of that for text, where the tool itself asks for more.
    """

    warn: int
    tokens: int
    characters: int | None = None


def output_limits(meta: Mapping[str, Any], env: Mapping[str, str]) -> OutputLimits:
    """Claude Code's limits for a result of a tool with this `_meta`."""
    tokens = _whole(env, "MAX_MCP_OUTPUT_TOKENS") or _TOKENS
    asked = meta.get("anthropic/maxResultSizeChars")
    if not isinstance(asked, int) or isinstance(asked, bool) or asked <= 0:
        return OutputLimits(_WARN_TOKENS, tokens)
    return OutputLimits(_WARN_TOKENS, tokens, min(asked, _MOST_CHARACTERS))


def description_limit(env: Mapping[str, str]) -> int:
    """How many characters of a description or of a server's instructions Claude Code's model sees."""
    return _whole(env, "CLAUDE_CODE_MAX_MCP_DESCRIPTION_LENGTH") or _DESCRIPTION
