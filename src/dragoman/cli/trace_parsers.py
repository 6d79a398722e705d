"""The words of `dragoman trace` and its verbs, with their help. Loads no more than argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from dragoman.cli.words import Parser, answers_json, no_color

_LAST: Final = 20


def trace() -> Parser:
    """`dragoman trace`, which is `dragoman trace show`."""
    parser = Parser("trace", description=_TRACE, examples=_TRACE_EXAMPLES)
    _file(parser)
    _chosen(parser, last=_LAST)
    _shown(parser)
    return parser


def show() -> Parser:
    """`dragoman trace show`."""
    parser = Parser("trace show", description=_SHOW, examples=_SHOW_EXAMPLES)
    _file(parser)
    _chosen(parser, last=_LAST)
    _shown(parser)
    return parser


def follow() -> Parser:
    """`dragoman trace follow`."""
    parser = Parser("trace follow", description=_FOLLOW, examples=_FOLLOW_EXAMPLES)
    _file(parser)
    _filters(parser)
    _last(parser, 0)
    parser.add_argument("--full", action="store_true", help="values whole, and not in a line each")
    no_color(parser)
    parser.add_argument("--json", action="store_true", help="print the trace's lines as they are")
    return parser


def query() -> Parser:
    """`dragoman trace query`."""
    parser = Parser("trace query", description=_QUERY, examples=_QUERY_EXAMPLES)
    parser.add_argument(
        "words", metavar="[FILE] QUERY", nargs="+", help="the trace, and a JSONPath (RFC 9535)"
    )
    parser.add_argument("--calls", action="store_true", help="ask an array of calls, not one of lines")
    parser.add_argument("--paths", action="store_true", help="print where each node is before its value")
    _json(parser)
    return parser


def diff() -> Parser:
    """`dragoman trace diff`."""
    parser = Parser("trace diff", description=_DIFF, examples=_DIFF_EXAMPLES)
    parser.add_argument(
        "words", metavar="[FILE] CALL [CALL]", nargs="+", help="the trace; calls by id or name"
    )
    no_color(parser)
    _json(parser)
    return parser


def verify() -> Parser:
    """`dragoman trace verify`."""
    parser = Parser("trace verify", description=_VERIFY, examples=_VERIFY_EXAMPLES)
    _file(parser)
    anchor = "a line's number and hash, as an earlier run printed them: it has to be there still"
    parser.add_argument("--head", metavar="NUMBER:HASH", type=_anchor, help=anchor)
    parser.add_argument(
        "--key-env", metavar="NAME", help="the variable with the key that the lines were made with"
    )
    _json(parser)
    return parser


def export() -> Parser:
    """`dragoman trace export`."""
    parser = Parser("trace export", description=_EXPORT, examples=_EXPORT_EXAMPLES)
    _file(parser)
    parser.add_argument("--to", metavar="FORM", required=True, choices=("otel", "html"), help="otel or html")
    parser.add_argument("--output", "-o", metavar="FILE", help="where to (default: stdout)")
    parser.add_argument("--content", action="store_true", help="otel: with arguments and results")
    parser.add_argument("--title", metavar="TEXT", help="html: what the page is called")
    _filters(parser)
    _last(parser, None)
    _json(parser)
    return parser


PARSERS: Final[dict[str, Callable[[], Parser]]] = {
    "trace": trace,
    "trace show": show,
    "trace follow": follow,
    "trace query": query,
    "trace diff": diff,
    "trace verify": verify,
    "trace export": export,
}


def _file(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help=_FILE)


def _chosen(parser: Parser, *, last: int) -> None:
    _filters(parser)
    _last(parser, last)
    parser.add_argument("--all", action="store_true", help="all of them")


def _filters(parser: Parser) -> None:
    parser.add_argument("--server", metavar="NAME", help="calls of this server; * stands for anything")
    parser.add_argument(
        "--tool", metavar="NAME", help="calls of this tool, by its own or the model's name for it"
    )
    parser.add_argument("--call", metavar="ID", help="this call, by its id, the start of it, or the API's id")
    parser.add_argument("--denied", action="store_true", help="calls that a permission or the lock refused")
    parser.add_argument("--errors", action="store_true", help="calls that failed, or that the schema refused")
    parser.add_argument("--since", metavar="TIME", help="from then on: 2026-11-30T08:00Z, or 15m, 2h, 3d ago")


def _last(parser: Parser, default: int | None) -> None:
    told = "all" if default is None else default
    parser.add_argument(
        "--last", metavar="N", type=_count, default=default, help=f"the newest N calls (default: {told})"
    )


def _shown(parser: Parser) -> None:
    parser.add_argument("--full", action="store_true", help="values whole, and not in a line each")
    no_color(parser)
    _json(parser)


def _json(parser: Parser) -> None:
    answers_json(parser)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"expected a number of calls, received {text!r}")
    return int(text)


def _anchor(text: str) -> tuple[int, str]:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise argparse.ArgumentTypeError(f"expected NUMBER:HASH, received {text!r}")
    return int(number), digest


_FILE: Final = "the trace (default: what DRAGOMAN_TRACE names, else trace.jsonl in the folder for state)"
_TRACE: Final = """\
What a model asked for, what was decided, what was sent and what came back: the trace of a host.

  dragoman trace show      the newest calls, as a tree with a timeline
  dragoman trace follow    calls as they happen
  dragoman trace query     a JSONPath query over lines or calls
  dragoman trace diff      what differs between two calls
  dragoman trace verify    whether the trace is as it was written
  dragoman trace export    for OpenTelemetry, or as a page with a picture

Without a verb, show. `dragoman trace VERB --help` says what each takes.
"""
_TRACE_EXAMPLES: Final = """\
  dragoman trace show trace.jsonl --denied
  dragoman trace diff trace.jsonl mcp__orders__refund_order
  dragoman trace verify trace.jsonl
"""
_SHOW: Final = """\
The newest calls, as a tree: what the model asked, what was decided and by which rule, what was sent, what
came back, and when. The bar on the right is the time: what was spent here, and what the server took.
"""
_SHOW_EXAMPLES: Final = """\
  dragoman trace show
  dragoman trace show trace.jsonl --server orders --errors --since 2h
  dragoman trace show trace.jsonl --call 3f2a-17 --full
"""
_FOLLOW: Final = "Calls as they happen, until you stop it; on through rotation, and before there is a file."
_FOLLOW_EXAMPLES: Final = """\
  dragoman trace follow
  dragoman trace follow trace.jsonl --denied --last 5
"""
_QUERY: Final = """\
A JSONPath query (RFC 9535) over the trace, which is an array of its lines; each node is printed as JSON.

Queries that begin with $[?...], $[*] or $[n] are answered line by line, however large the trace is.
With --calls it is an array of calls: {"call": ..., "tool_use": ..., "tools/call": ..., "result": ...}.
"""
_QUERY_EXAMPLES: Final = """\
  dragoman trace query trace.jsonl '$[?@.decision.effect == "deny"].block.name'
  dragoman trace query trace.jsonl '$[?@.ms > 1000].call'
  dragoman trace query trace.jsonl --calls '$[?@.tool_use.server == "orders" && @.result.is_error == true]'
"""
_DIFF: Final = """\
What differs between two calls: name, server, schema, permission, argument or result, and why a call that
passed does not any more. A call is an id (its start will do) or a name; one alone is held against the last
call of the same name before it that came out differently.

exit status: 0 nothing differs, 1 something does, 2 usage
"""
_DIFF_EXAMPLES: Final = """\
  dragoman trace diff trace.jsonl mcp__orders__refund_order
  dragoman trace diff trace.jsonl 3f2a-17 9b01-2
"""
_VERIFY: Final = """\
Check every line's hash, the chain through all files, both ends, and the long values beside. What a crash
left is told apart from what somebody changed. The last line's number and hash are printed: kept elsewhere,
they show (--head) that nothing before them was written anew.

exit status: 0 as it was written, 1 it is not, 2 usage
"""
_VERIFY_EXAMPLES: Final = """\
  dragoman trace verify trace.jsonl
  dragoman trace verify trace.jsonl --key-env TRACE_KEY
"""
_EXPORT: Final = """\
The trace in another form. otel: OTLP as JSON lines, for a collector's otlpjsonfile receiver, without
arguments and results unless --content. html: one page with a waterfall picture, which loads nothing.
"""
_EXPORT_EXAMPLES: Final = """\
  dragoman trace export trace.jsonl --to html --output trace.html --last 200
  dragoman trace export trace.jsonl --to otel --output spans.jsonl
"""
