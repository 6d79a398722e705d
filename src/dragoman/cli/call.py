"""`dragoman call TARGET TOOL`: one call of one tool, and what it answers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.cli import arguments, content, output
from dragoman.cli.failure import ToolFailed
from dragoman.cli.given import given
from dragoman.cli.progress import Bar
from dragoman.cli.questions import on_terminal
from dragoman.cli.session import perform
from dragoman.client import Client, ToolResult
from dragoman.errors import RemoteError, UsageError
from dragoman.model import LoggingMessageParams, Tool
from dragoman.schema.wording import nearest

_SHOWN: Final = 10  # names that are listed where an unknown one is like none of them


def run(options: Namespace) -> int:
    """Call the tool; returns the exit status."""
    try:
        base, words = given(options)
    except UsageError as exc:
        return output.fail(exc, json=options.json)
    bar = Bar()
    work = partial(_call, options=options, base=base, words=words, bar=bar)
    asked = on_terminal(bar.clear)
    if options.log is None:
        return perform(options, work, show=_show, **asked)

    def log(entry: LoggingMessageParams) -> None:
        bar.clear()
        data: Any = entry.data
        told = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        output.note(f"{entry.level}: {told}")

    asked["log_handler"], asked["log_level"] = log, options.log
    return perform(options, work, show=_show, **asked)


async def _call(
    client: Client, *, options: Namespace, base: dict[str, Any], words: list[arguments.Word], bar: Bar
) -> Any:
    listed: list[Tool] = []
    schema: Mapping[str, Any] = {}
    if any(not word.forced for word in words):
        # Only a schema tells whether 123 is a number or a text.
        listed = await client.list_tools()
        schema = next((tool.input_schema for tool in listed if tool.name == options.tool), schema)
    given = arguments.assemble(words, schema, base=base)
    try:
        result = await client.call_tool(options.tool, given, progress=bar)
    except RemoteError:
        await _offer_others(client, options.tool, listed=listed)
        raise
    finally:
        bar.clear()
    return _outcome(result, options)


def _outcome(result: ToolResult, options: Namespace) -> Any:
    for fault in result.invalid:
        output.note(f"dragoman: warning: the result does not fit what the tool promised: {fault}")
    if result.is_error:
        raise ToolFailed(content.told(result), content.plain(result))
    if options.output is not None:
        for written in content.save(result, Path(options.output)):
            output.note(f"saved {written}")
    if options.json:
        return content.plain(result)
    return "" if options.output is not None else content.told(result)


def _show(value: str) -> None:
    if value:
        output.text(value)


async def _offer_others(client: Client, name: str, *, listed: list[Tool]) -> None:
    """Where the server has no tool of that name, say which it has."""
    try:
        names = [tool.name for tool in listed or await client.list_tools()]
    except RemoteError:
        return
    if name not in names:
        output.note(f"dragoman: no tool {name!r}{_others(name, names)}")


def _others(name: str, names: list[str]) -> str:
    parts = [other for other in names if name.lower() in other.lower() or other.lower() in name.lower()]
    close = nearest(name, names)
    if close is not None or len(parts) == 1:
        return f": did you mean {close or parts[0]!r}?"
    listed = (parts or names)[:_SHOWN]
    more = f" and {len(names) - len(listed)} more" if len(names) > len(listed) else ""
    return f"; there is {', '.join(listed)}{more}" if listed else ""
