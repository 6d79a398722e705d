"""What `record`, `replay` and `mock` have in common: their words, rules of redaction, and serving a kernel.

It knows neither what is recorded nor what is played.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from dragoman.cli import output, session
from dragoman.cli.parsers import Parser, WordsError
from dragoman.cli.run import address
from dragoman.client.target import TargetLike
from dragoman.errors import DragomanError, UsageError
from dragoman.protocol.call import Kernel
from dragoman.testing.redaction import Redaction
from dragoman.transports.asgi import HttpApp
from dragoman.transports.serve import run_http
from dragoman.transports.stdio import Streams, run_stdio


def perform(name: str, parser: Parser, *, words: list[str], work: Callable[[Namespace], int]) -> int:
    """Read the words and do the work; returns the exit status."""
    try:
        options = parser.parse_intermixed_args(words)
    except WordsError as exc:
        hint = f"dragoman {name} --help"
        return output.fail(UsageError(f"{name}: {exc}", hint=hint), json="--json" in words)
    except SystemExit as exc:  # after --help
        return int(exc.code or 0)
    try:
        return work(options)
    except DragomanError as exc:
        return output.fail(exc, json=options.json)


def add_redaction(parser: Parser) -> None:
    """The options by which a recording is redacted."""
    parser.add_argument(
        "--redact", metavar="NAME", action="append", default=[],
        help="a member whose value is a secret, beside the common ones such as password and api_key",
    )  # fmt: skip
    parser.add_argument(
        "--redact-pattern", metavar="REGEX", action="append", default=[],
        help="what a secret looks like: its group `secret`, or the whole match",
    )  # fmt: skip


def redaction(options: Namespace) -> Redaction:
    """The rules that the options ask for. Raises UsageError for a pattern that is none."""
    try:
        return Redaction(options.redact, patterns=options.redact_pattern)
    except ValueError as exc:
        raise UsageError(f"--redact-pattern: {exc}") from None


def add_serving(parser: Parser) -> None:
    """The options by which a server is served."""
    parser.add_argument("--http", metavar="HOST:PORT", help="serve HTTP there; port 0 takes a free one")
    parser.add_argument("--path", default="/mcp", help="the endpoint's path over HTTP (default: /mcp)")


def target(words: list[str]) -> TargetLike:
    """The target behind `--`: what is one word is read as everywhere else, several are a command line.

    Raises:
        UsageError: there is none.
    """
    if not words:
        raise UsageError("expected a target behind `--`, such as: -- server.py, or: -- npx -y some-server")
    return session.target(words[0]) if len(words) == 1 else words


def add_json(parser: Parser, text: str = "tell errors as JSON") -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help=text)


def serve(options: Namespace, name: str, *, make: Callable[[], Kernel]) -> int:
    """Serve a kernel over stdio, or over HTTP where the options say so, until its end; returns 0."""
    if options.http is None:
        streams = Streams.claim()
        run_stdio(make(), streams=streams)
    else:
        host, port = address(options.http)
        run_http(HttpApp(make(), path=options.path, name=name), host=host, port=port)
    return 0
