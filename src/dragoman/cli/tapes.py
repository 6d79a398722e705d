"""What `record`, `replay` and `mock` have in common: rules of redaction, targets, and serving a kernel.

It knows neither what is recorded nor what is played.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from dragoman.cli import output, session
from dragoman.cli.run import address
from dragoman.client.target import TargetLike
from dragoman.errors import DragomanError, UsageError
from dragoman.protocol.call import Kernel
from dragoman.testing.redaction import Redaction
from dragoman.transports.asgi import HttpApp
from dragoman.transports.serve import run_http
from dragoman.transports.stdio import run_stdio


def perform(options: Namespace, work: Callable[[Namespace], int]) -> int:
    """Do the work; returns the exit status."""
    try:
        return work(options)
    except DragomanError as exc:
        return output.fail(exc, json=options.json)


def redaction(options: Namespace) -> Redaction:
    """The rules that the options ask for. Raises UsageError for a pattern that is none."""
    try:
        return Redaction(options.redact, patterns=options.redact_pattern)
    except ValueError as exc:
        raise UsageError(f"--redact-pattern: {exc}") from None


def target(words: list[str]) -> TargetLike:
    """The target behind `--`: what is one word is read as everywhere else, several are a command line.

    Raises:
        UsageError: there is none.
    """
    if not words:
        raise UsageError("expected a target behind `--`, such as: -- server.py, or: -- npx -y some-server")
    return session.target(words[0]) if len(words) == 1 else words


def serve(options: Namespace, kernel: Kernel, *, name: str) -> int:
    """Serve a kernel over stdio, or over HTTP where the options say so, until its end; returns 0."""
    if options.http is None:
        run_stdio(kernel)
    else:
        host, port = address(options.http)
        run_http(HttpApp(kernel, path=options.path, name=name), host=host, port=port)
    return 0
