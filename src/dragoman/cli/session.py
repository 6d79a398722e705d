"""One client for one command: from its words to a connection, from what happens to an exit status."""

from __future__ import annotations

import asyncio
import logging
from argparse import Namespace
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Unpack

import msgspec

from dragoman.cli import failure, output
from dragoman.client import Client
from dragoman.client.options import ClientKeywords
from dragoman.client.target import TargetLike
from dragoman.errors import DragomanError, LocalError, UsageError

_CONFIGURATIONS: Final = (".json", ".toml", ".jsonc")

Work = Callable[[Client], Awaitable[Any]]


class _Warnings(logging.Handler):
    """The package's warnings as lines on stderr, but for those that the command tells in its own words."""

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        if not any(isinstance(argument, LocalError) for argument in arguments):
            output.note(f"dragoman: {record.levelname.lower()}: {record.getMessage()}")


def perform(
    options: Namespace, work: Work, *, show: Callable[[Any], None], **more: Unpack[ClientKeywords]
) -> int:
    """Connect, do `work` with the client, and print what it comes to; returns the exit status.

    The value is what `--json` prints; without that, `show` prints it. `more` are options of the client.
    """
    try:
        with warnings_told():
            asyncio.run(_perform(options, work, show=show, more=more))
    except DragomanError as exc:
        return output.fail(failure.own(exc), json=options.json)
    return failure.DONE


@contextmanager
def warnings_told() -> Generator[None]:
    """Tell the package's warnings on stderr meanwhile, but for those of errors, which commands tell."""
    log = logging.getLogger("dragoman")
    warnings = _Warnings(logging.WARNING)
    log.addHandler(warnings)
    try:
        yield
    finally:
        log.removeHandler(warnings)


async def _perform(
    options: Namespace, work: Work, *, show: Callable[[Any], None], more: ClientKeywords
) -> None:
    async with Client(target(options.target), **_keywords(options, more)) as client:
        value = await work(client)
        if options.json:
            output.envelope(ok=True, value=value)
        else:
            show(value)


def target(text: str) -> TargetLike:
    """A target as told in one word. Raises UsageError for an entry that is no JSON, or a file of many."""
    if not text.lstrip().startswith("{"):
        if text.endswith(_CONFIGURATIONS) and Path(text).is_file():
            hint = "dragoman config shows the servers of hosts' files; doctor, without TARGET, looks at them"
            raise UsageError(f"target: {text} is a file with servers; expected one server", hint=hint)
        return text
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as exc:
        raise UsageError(f"target: a configuration entry that is no JSON object: {exc}") from None


def _keywords(options: Namespace, more: ClientKeywords) -> ClientKeywords:
    # Whoever stands before a terminal is told at once that nobody is there.
    keywords: ClientKeywords = {"protocol": options.protocol, "retry_for": 0.0, **more}
    if options.header:
        keywords["headers"] = dict(options.header)
    if options.timeout is not None:
        keywords["connect_timeout"] = keywords["idle_timeout"] = keywords["timeout"] = options.timeout
    return keywords
