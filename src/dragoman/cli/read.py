"""`dragoman read TARGET URI`: what a resource of a server holds."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from dragoman.cli import content, output
from dragoman.cli.progress import Bar
from dragoman.cli.questions import on_terminal
from dragoman.cli.session import perform
from dragoman.client import Client, ToolResult
from dragoman.model import EmbeddedResource


def run(options: Namespace) -> int:
    """Read the resource; returns the exit status."""
    bar = Bar()
    work = partial(_read, options=options, bar=bar)
    return perform(options, work, show=_show, **on_terminal(bar.clear))


async def _read(client: Client, *, options: Namespace, bar: Bar) -> Any:
    try:
        found = await client.read_resource(options.uri, progress=bar)
    finally:
        bar.clear()
    # Contents are shown and saved as those that come inside of a tool's result.
    inside = ToolResult(content=[EmbeddedResource(resource=contents) for contents in found.contents])
    if options.output is not None:
        for written in content.save(inside, Path(options.output)):
            output.note(f"saved {written}")
    if options.json:
        return {"contents": msgspec.to_builtins(found.contents)}
    return "" if options.output is not None else content.told(inside)


def _show(value: str) -> None:
    if value:
        output.text(value)
