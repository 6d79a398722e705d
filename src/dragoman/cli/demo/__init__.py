"""`dragoman demo`: the order service as a host's files say, on two revisions, shown from what is on the wire.

Here is the exit status; what is shown is in `scenes`, how in `paint`.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from dragoman.cli import failure, output
from dragoman.cli.brush import Brush
from dragoman.cli.demo import paint
from dragoman.cli.demo.answers import Answers
from dragoman.cli.demo.cases import CASES
from dragoman.cli.demo.example import HttpServer, folder, server_environment
from dragoman.cli.demo.scenes import play
from dragoman.cli.demo.stage import REVISIONS, Run
from dragoman.errors import DragomanError

UNEXPECTED = 1


def run(options: Namespace) -> int:
    """Play everything; 0 only if every outcome was the expected one."""
    answers = Answers("yes" if options.yes else "no" if options.no else None)
    brush = Brush.for_stdout(colour=not options.no_color, full=options.full)
    try:
        runs = asyncio.run(_demo(options.host, answers, brush=None if options.json else brush))
    except DragomanError as exc:
        return output.fail(exc, json=options.json)
    ok = all(one.ok for one in runs)
    if options.json:
        output.envelope(ok=ok, value=_record(runs, ok=ok))
    else:
        paint.verdict(brush, runs)
    return failure.DONE if ok else UNEXPECTED


async def _demo(host: str, answers: Answers, *, brush: Brush | None) -> list[Run]:
    """One run for each way to play and each revision, painted as it goes."""
    place, cases = folder(), CASES[host]
    runs: list[Run] = []
    if brush is not None:
        paint.title(brush, place, answers=answers, cases=cases)
    async with AsyncExitStack() as stack:
        env = server_environment()
        if any(case.transport == "http" for case in cases):
            http = await stack.enter_async_context(HttpServer(place))
            env["ORDERS_URL"] = http.url
        for case in cases:
            for revision in REVISIONS:
                one = Run(case, revision, place)
                runs.append(one)
                if brush is not None:
                    paint.head(brush, one)
                async for shown in play(one, answers, env=env):
                    if brush is not None:
                        paint.scene(brush, shown)
    return runs


def _record(runs: Sequence[Run], *, ok: bool) -> Any:
    told = [one.record() for one in runs]
    if ok:
        return {"runs": told}
    return {"kind": "unexpected", "message": "an outcome was not the expected one", "runs": told}
