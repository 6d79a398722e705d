"""The words of the commands that check servers and what they list. Loads no more than argparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dragoman.cli.words import (
    HOSTS,
    HOSTS_HELP,
    TARGET_HELP,
    TRUSTED_HELP,
    Parser,
    answers_json,
    folder,
    seconds,
)


def lock() -> Parser:
    """`dragoman lock`."""
    parser = Parser("lock", description=_LOCK, examples=_LOCK_EXAMPLES)
    parser.add_argument("target", metavar="TARGET", nargs="*", help=TARGET_HELP)
    _servers(parser)
    parser.add_argument("--file", metavar="FILE", help="the lock (default: dragoman.lock.json in the folder)")
    parser.add_argument("--update", action="store_true", help="lock the tools as they are now")
    parser.add_argument("--strict", action="store_true", help="suspicious words fail the check too")
    _common(parser)
    return parser


def doctor() -> Parser:
    """`dragoman doctor`."""
    parser = Parser("doctor", description=_DOCTOR, examples=_DOCTOR_EXAMPLES)
    parser.add_argument("target", metavar="TARGET", nargs="*", help=TARGET_HELP)
    _servers(parser)
    parser.add_argument("--strict", action="store_true", help="warnings fail the check too")
    _common(parser)
    return parser


def _servers(parser: Parser) -> None:
    parser.add_argument("--host", metavar="HOST", choices=HOSTS, help="the servers of this host's files")
    folder(parser)
    parser.add_argument("--trusted", action="store_true", help=TRUSTED_HELP)


def _common(parser: Parser) -> None:
    limit = "for each server to start and list its tools (default: 30)"
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, default=30.0, help=limit)
    answers_json(parser)


PARSERS: Final[dict[str, Callable[[], Parser]]] = {"lock": lock, "doctor": doctor}

_LOCK: Final = f"""\
Hold servers to what their tools were when you looked at them. The first time, names, descriptions,
schemas and annotations of all tools are written to a file; after that they are compared with it, and
each change is told: breaking, compatible, or of words alone. --update takes the changes over. Hidden
characters, orders to the model and names that pass for another's are reported.

Without TARGET, the servers of a host's files: of --host, else of the first host that has some.

{HOSTS_HELP}
exit status: 0 as locked (or written), 1 something changed, 2 usage, 4 a server could not be reached
"""
_LOCK_EXAMPLES: Final = """\
  dragoman lock --host codex
  dragoman lock --update
  dragoman lock server.py --file tools.lock.json --strict
"""
_DOCTOR: Final = f"""\
Look at servers step by step, as a host would start them: files, program, start, protocol, tools,
schemas for each model's API, names, permissions, cost. Each step that is not well says what to do.

Without TARGET, the servers of a host's files: of --host, else of every host that has some.

{HOSTS_HELP}
exit status: 0 all well or warnings, 1 something is wrong, 2 usage
"""
_DOCTOR_EXAMPLES: Final = """\
  dragoman doctor server.py
  dragoman doctor --host cursor --json
"""
