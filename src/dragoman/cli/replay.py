"""`dragoman replay FILE`: a recording as a server, or with `--against TARGET` as a client.

What is played and compared is in `testing`; here are the words, and what is printed.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from typing import Final

from dragoman.cli import failure, output, tapes
from dragoman.client.options import ClientKeywords
from dragoman.errors import UsageError
from dragoman.testing.cassette import Cassette
from dragoman.testing.comparison import Compared, compare
from dragoman.testing.player import Player

DIFFERENT: Final = failure.TOOL


def run(options: Namespace) -> int:
    """Serve the recording, or compare a server with it; returns the exit status."""
    return tapes.perform(options, work=_replay)


def _replay(options: Namespace) -> int:
    cassette = Cassette.load(options.file)
    if options.against is None:
        if options.ignore or options.protocol:
            raise UsageError("--ignore and --protocol: of use with --against alone")
        player = Player(cassette, redaction=tapes.redaction(options))
        return tapes.serve(options, player, name=cassette.name)
    return _compare(options, cassette)


def _compare(options: Namespace, cassette: Cassette) -> int:
    keywords: ClientKeywords = {"protocol": options.protocol} if options.protocol else {}
    compared = asyncio.run(
        compare(
            cassette,
            tapes.target([options.against]),
            ignore=options.ignore,
            redaction=tapes.redaction(options),
            **keywords,
        )
    )
    different = sum(not one.same for one in compared)
    summary = f"{len(compared)} answers, {different} of them different"
    if options.json:
        value: dict[str, object] = {"answers": [_record(one) for one in compared]}
        if different:
            value = {"kind": "different", "message": summary, **value}
        output.envelope(ok=not different, value=value)
    else:
        for one in compared:
            output.text(str(one))
        output.note(summary)
    return DIFFERENT if different else failure.DONE


def _record(one: Compared) -> dict[str, object]:
    found = [{"place": each.place, "was": each.was, "now": each.now} for each in one.differences]
    return {"request": one.request, "same": one.same, "differences": found}
