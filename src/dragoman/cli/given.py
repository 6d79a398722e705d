"""A tool's arguments as a command line has them: `key=value`, and `--args` with JSON, a file or stdin."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from dragoman.cli.arguments import Word, read_object
from dragoman.cli.arguments import words as read_words
from dragoman.errors import UsageError


def given(options: Namespace) -> tuple[dict[str, Any], list[Word]]:
    """`--args` as an object, and the words that only the tool's schema can read.

    Raises:
        UsageError: they are none.
    """
    try:
        words = read_words(options.argument)
    except UsageError as exc:
        if any(text.lstrip().startswith("{") for text in options.argument):
            raise UsageError(
                exc.message, hint='--args \'{"key": "value"}\' for all of them as JSON'
            ) from None
        raise
    source = options.args
    if source is None:
        return {}, words
    try:
        if source == "-":
            source = sys.stdin.read()
        elif source.startswith("@"):
            source = Path(source[1:]).read_text(encoding="utf-8")
    except OSError as exc:
        raise UsageError(f"--args: {source}: {exc.strerror}") from None
    except UnicodeDecodeError as exc:
        raise UsageError(f"--args: expected text: {exc}") from None
    return read_object(source), words
