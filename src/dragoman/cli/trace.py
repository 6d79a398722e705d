"""`dragoman trace`: the trace of a host, shown, followed, asked, compared, checked and exported."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Final

from dragoman.cli import output
from dragoman.cli.tracing import diff, export, follow, query, show, verify
from dragoman.errors import DragomanError


def run(options: Namespace) -> int:
    """Do what the verb says; returns the exit status."""
    try:
        return _VERBS[options.verb or "show"](options)
    except DragomanError as exc:
        return output.fail(exc, json=options.json)


_VERBS: Final[dict[str, Callable[[Namespace], int]]] = {
    "show": show.run,
    "follow": follow.run,
    "query": query.run,
    "diff": diff.run,
    "verify": verify.run,
    "export": export.run,
}
