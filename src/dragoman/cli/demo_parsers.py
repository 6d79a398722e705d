"""The words of `dragoman demo`, with their help. Loads no more than argparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dragoman.cli.words import Parser, answers_json, no_color

HOSTS: Final = ("claude-code", "codex", "cursor")
"""As the cases of the demo have them, which take time to load."""


def demo() -> Parser:
    """`dragoman demo`."""
    parser = Parser("demo", description=_DEMO, examples=_EXAMPLES)
    parser.add_argument(
        "--host",
        metavar="HOST",
        choices=HOSTS,
        default=HOSTS[0],
        help=f"whose files decide: {', '.join(HOSTS)} (default: {HOSTS[0]}, which is played over HTTP too)",
    )
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="answer yes where a person is asked")
    answer.add_argument("--no", action="store_true", help="answer no; so it is too without a terminal")
    parser.add_argument("--full", action="store_true", help="show every message whole, however long")
    no_color(parser)
    answers_json(parser)
    return parser


_DEMO: Final = """\
Start the order service as a host's own files say, on two revisions, and show each step: what the
model asked, what was on the wire, and which line of which file decided.

exit status: 0 if every outcome was the expected one, else 1
"""
_EXAMPLES: Final = """\
  dragoman demo --host codex
  dragoman demo --full --yes
  dragoman demo --json
"""

PARSERS: Final[dict[str, Callable[[], Parser]]] = {"demo": demo}
