"""`dragoman list --cost`: what each tool's definition costs a model's context, by tool and by server."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from typing import Any, Final

from dragoman.cli import failure, output
from dragoman.cli.brush import Brush
from dragoman.cli.reach import Reached, reach
from dragoman.errors import UsageError
from dragoman.host.dialects import dialect
from dragoman.host.naming import name_of
from dragoman.host.tokens import cost

_FIGURES: Final = "TOKENS   SHARE  "


def run(options: Namespace) -> int:
    """List the costs; returns the exit status."""
    try:
        if options.host is not None:
            dialect(options.host)
        options.target = [] if options.target is None else [options.target]
        options.timeout = options.timeout or 30.0
        reached = asyncio.run(reach(options))
    except UsageError as exc:
        return output.fail(exc, json=options.json)
    costs = {item.server: _costs(item, options.host or "claude-code") for item in reached}
    if options.json:
        output.envelope(ok=True, value=_record(reached, costs))
    else:
        _paint(reached, costs)
    return failure.DONE if all(item.ok for item in reached) else failure.CONNECT


def _costs(reached: Reached, host: str) -> dict[str, int]:
    """By tool, the dearest first."""
    found = {
        tool.name: cost(name_of(host, server=reached.server, tool=tool.name), tool) for tool in reached.tools
    }
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _record(reached: Sequence[Reached], costs: dict[str, dict[str, int]]) -> dict[str, Any]:
    return {
        "estimated": True,
        "tokens": sum(sum(tools.values()) for tools in costs.values()),
        "servers": [
            {
                "server": item.server,
                "tokens": sum(costs[item.server].values()),
                "tools": costs[item.server],
                **({} if item.ok else {"error": item.why}),
            }
            for item in reached
        ],
    }


def _paint(reached: Sequence[Reached], costs: dict[str, dict[str, int]]) -> None:
    brush = Brush.for_stdout()
    total = sum(sum(tools.values()) for tools in costs.values())
    rows = [(item.server, tool) for item in reached for tool in costs[item.server]]
    if rows:
        room = output.columns()
        head, *lines = output.table([("SERVER", "TOOL"), *rows], room and room - len(_FIGURES))
        output.line(brush("dim", f"{_FIGURES}{head}"))
        for (server, tool), line in zip(rows, lines, strict=True):
            tokens = costs[server][tool]
            output.line(f"{tokens:>6,}  {tokens / total:>6.1%}  {line}")
    for item in reached:
        if not item.ok:
            output.note(f"dragoman: {item.server} is not counted: {item.why}")
    output.line(_total(reached, costs, total=total))


def _total(reached: Sequence[Reached], costs: dict[str, dict[str, int]], *, total: int) -> str:
    count = sum(map(len, costs.values()))
    servers = sum(item.ok for item in reached)
    said = f"{output.counted(count, 'tool')} of {output.counted(servers, 'server')}"
    return f"{said}: about {total:,} tokens (estimated) in each request that shows them all"
