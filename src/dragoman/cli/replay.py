"""`dragoman replay FILE`: a recording as a server, or with `--against TARGET` as a client.

What is played and compared is in `testing`; here are the words, and what is printed.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from typing import Final

from dragoman.cli import failure, output, tapes
from dragoman.cli.parsers import Parser
from dragoman.client.options import ClientKeywords
from dragoman.errors import UsageError
from dragoman.testing.cassette import Cassette
from dragoman.testing.comparison import Compared, compare
from dragoman.testing.player import Player

DIFFERENT: Final = failure.TOOL

_DESCRIPTION: Final = """\
Play a recording as a server, offline: a request that was recorded is answered as it was, any other
one with an error that names what comes nearest.

With --against, play it as a client: every recorded request is sent to a server of now, and what it
answers is held against what was answered then. The exit status is 1 where anything differs.
"""
_EXAMPLES: Final = """\
  dragoman replay session.jsonl
  dragoman replay session.jsonl --http 127.0.0.1:8000
  dragoman list "dragoman replay session.jsonl"
  dragoman replay session.jsonl --against server.py
  dragoman replay session.jsonl --ignore created_at --against "npx -y some-server"
"""


def run(words: list[str]) -> int:
    """Serve the recording, or compare a server with it; returns the exit status."""
    parser = Parser("replay", description=_DESCRIPTION, examples=_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument("--against", metavar="TARGET", help="the server whose answers are compared")
    parser.add_argument(
        "--ignore", metavar="PLACE", action="append", default=[],
        help="with --against: a place such as result.content[*].text, or a member's name, that may differ",
    )  # fmt: skip
    parser.add_argument("--protocol", metavar="REVISION", help="with --against: instead of the recorded one")
    tapes.add_serving(parser)
    tapes.add_redaction(parser)
    tapes.add_json(parser, "print one JSON object, in good and in bad times")
    return tapes.perform("replay", parser, words=words, work=_replay)


def _replay(options: Namespace) -> int:
    cassette = Cassette.load(options.file)
    if options.against is None:
        if options.ignore or options.protocol:
            raise UsageError("--ignore and --protocol: of use with --against alone")
        player = Player(cassette, redaction=tapes.redaction(options))
        return tapes.serve(options, cassette.name, make=lambda: player)
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
