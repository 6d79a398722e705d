"""`dragoman mock FILE`: a server with the tools of a file, and answers that fit them."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from dragoman.cli import tapes
from dragoman.cli.parsers import Parser
from dragoman.testing.mocks import mock

_DESCRIPTION: Final = """\
Serve the tools of a file, with arguments checked by their schemas. They answer what was recorded or
written down, and else a value made from their output schema.

FILE is a recording (.jsonl), or JSON: a list of tools, {"tools": [...], "answers": {...}}, or what
`dragoman list --json` prints.
"""
_EXAMPLES: Final = """\
  dragoman list https://example.com/mcp --json > tools.json
  dragoman mock tools.json
  dragoman mock session.jsonl --http 127.0.0.1:8000
"""


def run(words: list[str]) -> int:
    """Serve until the input ends or a signal comes; returns the exit status."""
    parser = Parser("mock", description=_DESCRIPTION, examples=_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the tools")
    parser.add_argument("--name", help="what the server calls itself (default: the file's name)")
    tapes.add_serving(parser)
    tapes.add_json(parser)
    return tapes.perform("mock", parser, words=words, work=_mock)


def _mock(options: Namespace) -> int:
    server = mock(options.file, name=options.name)
    return tapes.serve(options, server.name, make=lambda: server.kernel)
