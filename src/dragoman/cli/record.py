"""`dragoman record -o FILE -- TARGET...`: stand between a host and a server, and record what they say.

Works as the command in a host's configuration: the host sees the server, the server sees the host.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from typing import Final

from dragoman.cli import tapes
from dragoman.cli.parsers import Parser
from dragoman.client.options import ClientOptions
from dragoman.client.target import resolve
from dragoman.testing.between import record_program, record_transport
from dragoman.testing.cassette import Recorder
from dragoman.transports.child import ChildTransport
from dragoman.transports.stdio import Streams

_DESCRIPTION: Final = """\
Stand between a host and a server, and record what they say to each other: one JSON line a message,
with what is secret taken out. To the host it is the server, over stdio.

In a host's configuration, put `dragoman record -o FILE --` before the command, or before the URL.
"""
_EXAMPLES: Final = """\
  dragoman record -o session.jsonl -- npx -y some-server
  dragoman record -o session.jsonl -- https://example.com/mcp
  dragoman record -o session.jsonl -- '{"url": "https://example.com/mcp", "headers": {"X-Key": "..."}}'
  dragoman replay session.jsonl
"""


def run(words: list[str]) -> int:
    """Record until either side ends; returns the exit status of the server where it is a program."""
    parser = Parser("record", description=_DESCRIPTION, examples=_EXAMPLES)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where the recording goes")
    parser.add_argument("target", metavar="TARGET", nargs="*", help="the server, written behind --")
    tapes.add_redaction(parser)
    tapes.add_json(parser)
    # What stands behind the first `--` is the server's, whatever it looks like.
    at = words.index("--") if "--" in words else len(words)

    def work(options: Namespace) -> int:
        return _record(options, [*options.target, *words[at + 1 :]])

    return tapes.perform("record", parser, words=words[:at], work=work)


def _record(options: Namespace, target: list[str]) -> int:
    transport = resolve(tapes.target(target), ClientOptions()).make()
    with Recorder(options.output, redaction=tapes.redaction(options)) as recorder:
        streams = Streams.claim()

        async def work() -> int:
            if isinstance(transport, ChildTransport):
                return await record_program(transport.start(), recorder, streams=streams)
            return await record_transport(transport, recorder, streams=streams)

        return asyncio.run(work())
