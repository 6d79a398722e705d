"""The words of the commands that serve, look at, call and record servers. Loads no more than argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.cli.words import (
    TARGET_HELP,
    TRUSTED_HELP,
    Parser,
    answers_json,
    errors_json,
    seconds,
)


def run() -> Parser:
    """`dragoman run`."""
    parser = Parser("run", description=_RUN, examples=_RUN_EXAMPLES)
    parser.add_argument("target", metavar="FILE[:NAME]", help="the file, and the server's name in it")
    parser.add_argument("argument", metavar="ARGUMENT", nargs="*", help="for the file, as its sys.argv[1:]")
    _serving(parser)
    errors_json(parser)
    return parser


class ListParser(Parser):
    """A target is needed for everything but the cost of a host's servers."""

    def parse_intermixed_args(  # type: ignore[override]  # nobody gives a namespace
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> argparse.Namespace:
        """As argparse; raises WordsError where words do not go together."""
        options = super().parse_intermixed_args(args)
        if options.host is not None and not options.cost:
            self.error("--host: expected with --cost alone")
        if options.target is None and not options.cost:
            self.error("the following arguments are required: TARGET")
        return options


def list_() -> Parser:
    """`dragoman list`."""
    parser = ListParser("list", description=_LIST, examples=_LIST_EXAMPLES)
    parser.add_argument("target", metavar="TARGET", nargs="?", help=TARGET_HELP)
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--resources", action="store_true", help="resources and families of them, not tools")
    other.add_argument("--prompts", action="store_true", help="prompts, not tools")
    other.add_argument("--skills", action="store_true", help="skills, not tools; no file of them is read")
    other.add_argument(
        "--cost", action="store_true", help="what the tools cost a model, in tokens, estimated"
    )
    parser.add_argument("--host", metavar="HOST", help="with --cost, for TARGET: the servers of its files")
    parser.add_argument(
        "--folder", metavar="FOLDER", default=".", help="with --host: the project (default: .)"
    )
    parser.add_argument("--trusted", action="store_true", help=f"with --host: {TRUSTED_HELP}")
    _connection(parser)
    return parser


def call() -> Parser:
    """`dragoman call`."""
    parser = Parser("call", description=_CALL, examples=_CALL_EXAMPLES)
    _target(parser)
    parser.add_argument("tool", metavar="TOOL", help="the tool's name")
    parser.add_argument("argument", metavar="key=value", nargs="*", help="its arguments")
    parser.add_argument("--args", metavar="JSON", help="all of them as a JSON object, @FILE, or - for stdin")
    parser.add_argument("--output", metavar="FILE", help="save the picture, sound or file that it answers")
    parser.add_argument("--log", metavar="LEVEL", choices=_LEVELS, help="show the server's log from LEVEL up")
    _connection(parser)
    return parser


def read() -> Parser:
    """`dragoman read`."""
    parser = Parser("read", description=_READ, examples=_READ_EXAMPLES)
    _target(parser)
    parser.add_argument("uri", metavar="URI", help="the resource")
    parser.add_argument("--output", metavar="FILE", help="save what it holds")
    _connection(parser)
    return parser


def prompt() -> Parser:
    """`dragoman prompt`."""
    parser = Parser("prompt", description=_PROMPT, examples=_PROMPT_EXAMPLES)
    _target(parser)
    parser.add_argument("prompt", metavar="NAME", help="the prompt's name")
    parser.add_argument("argument", metavar="key=value", nargs="*", help="its arguments, which are texts")
    _connection(parser)
    return parser


def discover() -> Parser:
    """`dragoman discover`."""
    parser = Parser("discover", description=_DISCOVER, examples=_DISCOVER_EXAMPLES)
    _target(parser)
    _connection(parser)
    return parser


class RecordParser(Parser):
    """What stands behind the first `--` is the server's, whatever it looks like."""

    def parse_intermixed_args(  # type: ignore[override]  # nobody gives a namespace
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> argparse.Namespace:
        """As argparse; the words behind `--` are added to `target`."""
        words = list(args or ())
        at = words.index("--") if "--" in words else len(words)
        options = super().parse_intermixed_args(words[:at])
        options.target = [*options.target, *words[at + 1 :]]
        return options


def record() -> Parser:
    """`dragoman record`."""
    parser = RecordParser("record", description=_RECORD, examples=_RECORD_EXAMPLES)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where the recording goes")
    parser.add_argument("target", metavar="TARGET", nargs="*", help="the server, written behind --")
    _redaction(parser)
    errors_json(parser)
    return parser


def replay() -> Parser:
    """`dragoman replay`."""
    parser = Parser("replay", description=_REPLAY, examples=_REPLAY_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument("--against", metavar="TARGET", help="the server whose answers are compared")
    ignore = "with --against: a place such as result.content[*].text, or a member's name, that may differ"
    parser.add_argument("--ignore", metavar="PLACE", action="append", default=[], help=ignore)
    parser.add_argument("--protocol", metavar="REVISION", help="with --against: instead of the recorded one")
    _serving(parser)
    _redaction(parser)
    answers_json(parser)
    return parser


def mock() -> Parser:
    """`dragoman mock`."""
    parser = Parser("mock", description=_MOCK, examples=_MOCK_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the tools")
    parser.add_argument("--name", help="what the server calls itself (default: the file's name)")
    _serving(parser)
    errors_json(parser)
    return parser


_RUN: Final = """\
Serve the server of a Python file: the one called NAME, else `server`, `mcp` or `app`, else the
only one. The file is imported, so what stands under `if __name__ == "__main__":` is not run.
"""
_RUN_EXAMPLES: Final = """\
  dragoman run server.py
  dragoman run server.py:orders --http 127.0.0.1:8000
  dragoman run server.py -- --database orders.db
"""
_LIST: Final = "List the tools of a server, or its resources, or its prompts."
_LIST_EXAMPLES: Final = """\
  dragoman list server.py
  dragoman list server.py --resources
  dragoman list --cost --host claude-code
  dragoman list "npx -y @modelcontextprotocol/server-everything"
  dragoman list https://example.com/mcp --json
"""
_CALL: Final = """\
Call a tool and print what it answers: its text, or its structured content where there is no text.

key=value takes the value as it stands where the tool's schema has a string, else as JSON if it is
JSON. key:=value is always JSON. a.b=1 is a member of an object; a key that is given several times
makes a list.
"""
_CALL_EXAMPLES: Final = """\
  dragoman call server.py add a=1 b=2
  dragoman call server.py search q=123 filter.open=true tags=red tags=blue
  dragoman call server.py add --args '{"a": 1, "b": 2}'
  dragoman call server.py chart --output chart.png
"""
_READ: Final = "Read a resource of a server and print what it holds."
_READ_EXAMPLES: Final = """\
  dragoman read server.py orders://A-1042
  dragoman read server.py pictures://logo --output logo.png
"""
_PROMPT: Final = "Get a prompt of a server, its arguments filled in, and print its messages."
_PROMPT_EXAMPLES: Final = """\
  dragoman prompt server.py summary order_id=A-1042
  dragoman list server.py --prompts
"""
_DISCOVER: Final = "Show what a server is, which revisions it speaks and what it offers."
_DISCOVER_EXAMPLES: Final = """\
  dragoman discover server.py
  dragoman discover https://example.com/mcp --protocol 2025-11-25
"""
_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_RECORD: Final = """\
Stand between a host and a server, and record what they say to each other: one JSON line a message,
with what is secret taken out. To the host it is the server, over stdio.

In a host's configuration, put `dragoman record -o FILE --` before the command, or before the URL.
"""
_RECORD_EXAMPLES: Final = """\
  dragoman record -o session.jsonl -- npx -y some-server
  dragoman record -o session.jsonl -- https://example.com/mcp
  dragoman record -o session.jsonl -- '{"url": "https://example.com/mcp", "headers": {"X-Key": "..."}}'
"""
_REPLAY: Final = """\
Play a recording as a server, offline: a request that was recorded is answered as it was, any other
one with an error that names what comes nearest.

With --against, play it as a client: every recorded request is sent to a server of now, and what it
answers is held against what was answered then. The exit status is 1 where anything differs.
"""
_REPLAY_EXAMPLES: Final = """\
  dragoman replay session.jsonl
  dragoman replay session.jsonl --http 127.0.0.1:8000
  dragoman replay session.jsonl --against server.py
  dragoman replay session.jsonl --ignore created_at --against "npx -y some-server"
"""
_MOCK: Final = """\
Serve the tools of a file, with arguments checked by their schemas. They answer what was recorded or
written down, and else a value made from their output schema.

FILE is a recording (.jsonl), or JSON: a list of tools, {"tools": [...], "answers": {...}}, or what
`dragoman list --json` prints.
"""
_MOCK_EXAMPLES: Final = """\
  dragoman mock tools.json
  dragoman mock session.jsonl --http 127.0.0.1:8000
"""

PARSERS: Final[dict[str, Callable[[], Parser]]] = {
    "run": run,
    "list": list_,
    "call": call,
    "read": read,
    "prompt": prompt,
    "discover": discover,
    "record": record,
    "replay": replay,
    "mock": mock,
}


def _serving(parser: Parser) -> None:
    parser.add_argument("--http", metavar="HOST:PORT", help="serve HTTP there; port 0 takes a free one")
    parser.add_argument("--path", default="/mcp", help="the endpoint's path over HTTP (default: /mcp)")


def _redaction(parser: Parser) -> None:
    name = "a member whose value is a secret, beside the common ones such as password and api_key"
    parser.add_argument("--redact", metavar="NAME", action="append", default=[], help=name)
    pattern = "what a secret looks like: its group `secret`, or the whole match"
    parser.add_argument("--redact-pattern", metavar="REGEX", action="append", default=[], help=pattern)


def _target(parser: Parser) -> None:
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)


def _connection(parser: Parser) -> None:
    parser.add_argument(
        "--protocol",
        metavar="REVISION",
        default="auto",
        help="auto (the default), or the only revision to speak, such as 2025-11-25",
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, help="for connecting, and for one request"
    )
    parser.add_argument(
        "--header", metavar="NAME:VALUE", type=_header, action="append", help="a header of every HTTP request"
    )
    answers_json(parser)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        # The text itself may be a secret; it is not shown.
        raise argparse.ArgumentTypeError("expected NAME:VALUE, received a text without a name or a colon")
    return name.strip(), value.strip()
