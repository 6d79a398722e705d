"""What Anthropic's Messages API refuses in a request: forms of deferred tools, and the order of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragoman.host.models.schemas import tables


def tools_fault(tools: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a list of tools would be refused."""
    for index, tool in enumerate(tools):
        if (fault := tool_fault(tool)) is not None:
            return f"tools[{index}]: {fault}"
    names = [str(tool.get("name")) for tool in tools]
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        return f"tools: more than one is called {twice!r}"
    if tools and all(tool.get("defer_loading") is True for tool in tools):
        return "tools: all have defer_loading; at least one has to be there before a search"
    return None


def tool_fault(tool: Mapping[str, Any]) -> str | None:
    """Why one tool would be refused for its way of being loaded."""
    if tool.get("defer_loading") is not True:
        return None
    if tool.get("cache_control") is not None:
        return "cache_control on a tool with defer_loading"
    if str(tool.get("type", "")).startswith("tool_search_tool_"):
        return "defer_loading on the tool that searches"
    return None


def order_fault(content: Sequence[Mapping[str, Any]]) -> str | None:
    """Why the blocks of a user's message would be refused: results come before everything else."""
    other: str | None = None
    for index, block in enumerate(content):
        if block.get("type") != "tool_result":
            other = other or str(block.get("type"))
        elif other is not None:
            return f"content[{index}]: a tool_result behind a block of type {other!r}; results come first"
    return None


def history_fault(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a history would be refused. The API takes consecutive messages of one role as one."""
    waiting: list[str] = []
    for place, role, content in _turns(messages):
        if role == "assistant":
            waiting = [str(block.get("id")) for block in content if block.get("type") == "tool_use"]
            continue
        fault = order_fault(content)
        if fault is not None:
            return f"{place}.{fault}"
        answered = [str(block.get("tool_use_id")) for block in content if block.get("type") == "tool_result"]
        if missing := [id_ for id_ in waiting if id_ not in answered]:
            return f"{place}: no tool_result for {', '.join(missing)} of the message before it"
        if strange := [id_ for id_ in answered if id_ not in waiting]:
            return (
                f"{place}: a tool_result for {', '.join(strange)}, which the message before it does not have"
            )
        if len(set(answered)) < len(answered):
            return f"{place}: more than one tool_result for a call"
        waiting = []
    return f"messages: no tool_result for {', '.join(waiting)} of the last one" if waiting else None


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, list[Mapping[str, Any]]]]:
    """Runs of messages of one role, each with its place and all its blocks."""
    place, role, content = "", "", list[Mapping[str, Any]]()
    for index, message in enumerate(messages):
        said = message.get("content")
        blocks: list[Mapping[str, Any]] = [{"type": "text"}] if isinstance(said, str) else tables(said)
        if message.get("role") == role:
            content += blocks
            continue
        if role:
            yield place, role, content
        place, role, content = f"messages[{index}]", str(message.get("role")), blocks
    if role:
        yield place, role, content
