"""How much of a result a host gives to its model: what is too long is cut, or put into a file.

Knows what each host does with it (`config.limits`); the file is written by whoever is handed in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET

from dragoman.client import OtherContent, ToolResult
from dragoman.host.config import claude, codex, vscode
from dragoman.host.config.limits import output_limits
from dragoman.host.config.record import ServerConfig
from dragoman.host.tokens import estimate
from dragoman.model import ContentBlock, TextContent, Tool

log = logging.getLogger("dragoman.host")

Keep: TypeAlias = Callable[[str], Path]
"""Writes a text to a file and says where."""

_PREVIEW: Final = 2000  # characters that the model sees of a text that is in a file
_SAMPLE: Final = 200_000  # characters by which a longer text is estimated
_LETTERS: Final = 4  # characters of a token, where a text is cut to a number of tokens


def fitted(
    result: ToolResult, tool: Tool, *, config: ServerConfig, env: Mapping[str, str], keep: Keep
) -> ToolResult:
    """The result as its host gives it to the model: the same one, where it is not too long."""
    if config.host == claude.HOST:
        return _claude(result, tool, env=env, keep=keep)
    if config.host == codex.HOST:
        return _codex(result, tool, config=config)
    if config.host == vscode.HOST:
        return _vscode(result)
    return result


def _claude(result: ToolResult, tool: Tool, *, env: Mapping[str, str], keep: Keep) -> ToolResult:
    text = _text(result)
    most = output_limits({} if tool.meta is UNSET else tool.meta, env)
    if len(text) <= min(most.warn, most.tokens):  # no token is less than a character
        return result
    tokens = _tokens(text)
    if tokens > most.warn:
        log.warning("tool %r: a result of about %d tokens", tool.name, tokens)
    fits = tokens <= most.tokens if most.characters is None else len(text) <= most.characters
    if fits:
        return result
    limit = f"{most.tokens:,} tokens" if most.characters is None else f"{most.characters:,} characters"
    where = keep(text)
    told = (
        f"The result is too long to be shown: {len(text):,} characters, about {tokens:,} tokens; the limit "
        f"is {limit}. It is whole in {where}. It begins:\n{text[:_PREVIEW]}"
    )
    return _with(result, told)


def _codex(result: ToolResult, tool: Tool, *, config: ServerConfig) -> ToolResult:
    own: Any = config.raw.get("tools", {})
    entry: Any = own.get(tool.name, {}) if isinstance(own, Mapping) else {}  # type: ignore[unused-ignore]  # Any narrows
    limit: Any = entry.get("output_token_limit") if isinstance(entry, Mapping) else None  # type: ignore[unused-ignore]  # Any narrows
    text = _text(result)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit <= 0:
        return result
    if len(text) <= limit or _tokens(text) <= limit:
        return result
    half = max(1, limit * _LETTERS // 2)
    left = len(text) - 2 * half
    if left <= 0:
        return result
    return _with(result, f"{text[:half]}\n[{left:,} characters are left out]\n{text[-half:]}")


def _vscode(result: ToolResult) -> ToolResult:
    """What is for people alone is left out, and structured content stands in place of text."""
    content = [block for block in result.content if _is_for_model(block)]
    if result.has_structured and not result.is_error:
        text = msgspec.json.encode(result.structured).decode()
        return _with(msgspec.structs.replace(result, content=content), text)
    return result if len(content) == len(result.content) else msgspec.structs.replace(result, content=content)


def _is_for_model(block: ContentBlock | OtherContent) -> bool:
    notes = UNSET if isinstance(block, OtherContent) else block.annotations
    return notes is UNSET or notes.audience is UNSET or "assistant" in notes.audience


def _tokens(text: str) -> int:
    """An estimate that takes no longer for a very long text."""
    if len(text) <= _SAMPLE:
        return estimate(text)
    return round(estimate(text[:_SAMPLE]) / _SAMPLE * len(text))


def _text(result: ToolResult) -> str:
    if not result.content and result.has_structured:
        return msgspec.json.encode(result.structured).decode()
    return result.text


def _with(result: ToolResult, text: str) -> ToolResult:
    """The result with one text in place of all of its own; pictures and the like stay."""
    content: list[ContentBlock | OtherContent] = [TextContent(text=text)]
    content += [block for block in result.content if not isinstance(block, TextContent)]
    return msgspec.structs.replace(result, content=content)
