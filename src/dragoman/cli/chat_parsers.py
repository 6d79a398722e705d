"""The words of `dragoman chat`, with their help. Loads no more than argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from dragoman.cli.words import HOSTS, TRUSTED_HELP, Parser, folder, mcp_config, no_color, seconds

ROUNDS: Final = 50
"""Requests to the model for one prompt, unless something else is said."""


def chat() -> Parser:
    """`dragoman chat`."""
    parser = Parser("chat", description=_CHAT, examples=_EXAMPLES)
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="one prompt, and no more; - for stdin")
    _model(parser)
    _host(parser)
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="allow what a person would be asked about")
    answer.add_argument("--no", action="store_true", help="deny it; so it is without a terminal")
    _budget(parser)
    parser.add_argument(
        "--system", metavar="TEXT", help="instructions to the model; @FILE for those in a file"
    )
    parser.add_argument("--defer", action="store_true", help="let the model search for tools; show it none")
    parser.add_argument("--resume", metavar="FILE", help="go on from there if it exists, and save there")
    lock = "heed no lock (default: dragoman.lock.json in the folder, if it is there)"
    parser.add_argument("--no-lock", action="store_true", help=lock)
    trace = parser.add_mutually_exclusive_group()
    trace.add_argument(
        "--trace", metavar="FILE", help="where calls are written down (default: see dragoman trace)"
    )
    trace.add_argument("--no-trace", action="store_true", help="write no call down")
    no_color(parser)
    parser.add_argument(
        "--json", action="store_true", help="print each event as a line of JSON, the end last"
    )
    return parser


def _model(parser: Parser) -> None:
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="anthropic:NAME, openai:NAME, openai-chat:NAME, gemini:NAME, or with --url a NAME alone"
        " (default: DRAGOMAN_MODEL)",
    )
    parser.add_argument("--url", metavar="URL", help="the base URL of another server that speaks the API")
    key = "the variable that has the key (default: the provider's; with --url none)"
    parser.add_argument("--key-env", metavar="NAME", help=key)
    parser.add_argument("--script", metavar="FILE", help="a scripted model in place of a real one")
    parser.add_argument("--no-stream", action="store_true", help="for servers that cannot stream")
    silence = "without a word from the model's server (default: 120)"
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help=silence)


def _host(parser: Parser) -> None:
    parser.add_argument(
        "--host",
        metavar="HOST",
        choices=HOSTS,
        default="claude-code",
        help="whose files (default: claude-code)",
    )
    folder(parser)
    parser.add_argument("--trusted", action="store_true", help=TRUSTED_HELP)
    mcp_config(parser)


def _budget(parser: Parser) -> None:
    rounds = f"requests to the model for one prompt (default: {ROUNDS})"
    parser.add_argument("--max-rounds", metavar="N", type=_count, default=ROUNDS, help=rounds)
    parser.add_argument(
        "--max-tokens", metavar="N", type=_count, help="tokens read and written for one prompt"
    )
    parser.add_argument(
        "--max-cost", metavar="MONEY", type=_money, help="what one prompt may cost, by --prices"
    )
    parser.add_argument(
        "--prices",
        metavar="IN,OUT[,CACHED]",
        type=_prices,
        help="what a million tokens cost: read, written, read from the provider's cache",
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, received {text!r}")
    return int(text)


def _money(text: str) -> float:
    return _numbers(text, least=1, most=1)[0]


def _prices(text: str) -> list[float]:
    return _numbers(text, least=2, most=3)


def _numbers(text: str, *, least: int, most: int) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not least <= len(found) <= most or not all(0 <= value < float("inf") for value in found):
        many = str(least) if least == most else f"{least} or {most}"
        raise argparse.ArgumentTypeError(f"expected {many} numbers from 0, received {text!r}")
    return found


PARSERS: Final[dict[str, Callable[[], Parser]]] = {"chat": chat}

_CHAT: Final = """\
Talk with a model that has the tools of a project's servers, under the rules of the host whose files
they stand in. Each call is shown with its arguments, and asked about where those rules say so.

With PROMPT, or with text on stdin, it answers once; on a terminal without either it is a
conversation. Ctrl-C stops the answer, a second one the program.

exit status: 0 done, 1 ended before the model was done, 2 usage, 4 the model could not be reached,
5 the provider denied it, 130 stopped
"""
_EXAMPLES: Final = """\
  dragoman chat --model anthropic:claude-opus-4-5
  dragoman chat --model llama3.2 --url http://127.0.0.1:11434/v1 "Which orders are late?"
  dragoman chat --model openai:gpt-5.4 --prices 1.25,10 --max-cost 0.50 --resume talk.json
  git diff | dragoman chat --system "Review this." --no
"""
