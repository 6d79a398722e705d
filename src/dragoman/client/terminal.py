"""Ready-made answers to what servers ask: a form on the terminal, and one that declines.

Questions go to stderr, so that what a program prints stays its own. Without a terminal they are declined.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

from dragoman.client.dialog import Dialog
from dragoman.client.inputs import asking
from dragoman.model import ElicitParams, ElicitResult

_CHUNK: Final = 64 * 1024


def decline(params: ElicitParams) -> ElicitResult:
    """An `elicitation_handler` that declines whatever is asked."""
    del params
    return ElicitResult(action="decline")


class Lines:
    """Lines that a person types, read on the event loop: giving up waiting loses nothing that was typed."""

    def __init__(self) -> None:
        self._rest = b""

    async def next(self, source: int) -> str | None:
        """The next line from a file descriptor, without its end; None at the end of input."""
        while b"\n" not in self._rest:
            data = await _read(source)
            if not data:
                rest, self._rest = self._rest, b""
                return rest.decode("utf-8", "replace") if rest else None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")


class TerminalForm:
    """An `elicitation_handler` that asks the person at the terminal; for `elicitation_modes=("form", "url")`.

    Every field with what it takes, its default and its choices; `<` goes back, `!` declines, Ctrl-D cancels.
    Values are checked before they are sent, and shown once more. A page to open is shown, not opened.
    `source` is the file descriptor that is read, by default that of stdin; `write` shows a text.
    """

    def __init__(self, source: int | None = None, write: Callable[[str], object] | None = None) -> None:
        self._source = source
        self._write = write
        # One question at a time on one terminal, though servers ask side by side.
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._lines = Lines()

    async def __call__(self, params: ElicitParams) -> ElicitResult:
        """Ask; decline where there is nobody to be asked."""
        source = self._terminal()
        if source is None:
            return decline(params)
        loop = asyncio.get_running_loop()
        async with self._turns.setdefault(loop, asyncio.Lock()):
            dialog = Dialog(params, asking.get())
            while dialog.result is None:
                self._show(dialog.prompt)
                line = await self._lines.next(source)
                if line is None:
                    self._show("\n")
                dialog.answer(line)
            self._show(dialog.prompt)
            return dialog.result

    def _terminal(self) -> int | None:
        try:
            source = sys.stdin.fileno() if self._source is None else self._source
            seen = self._write is not None or sys.stderr.isatty()
            return source if seen and os.isatty(source) else None
        except (AttributeError, OSError, ValueError):  # closed, or replaced by something that is no file
            return None

    def _show(self, text: str) -> None:
        if self._write is not None:
            self._write(text)
        elif text:
            sys.stderr.write(text)
            sys.stderr.flush()


async def _read(source: int) -> bytes:
    """The next bytes; whoever gives up waiting leaves them to the next reader."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bytes] = loop.create_future()

    def take() -> None:
        if not ready.done():
            try:
                ready.set_result(os.read(source, _CHUNK))
            except OSError:  # the terminal is gone
                ready.set_result(b"")

    try:
        loop.add_reader(source, take)
    except NotImplementedError:  # Windows: not run here
        return await _read_in_thread(source, ready)
    try:
        return await ready
    finally:
        loop.remove_reader(source)


async def _read_in_thread(source: int, ready: asyncio.Future[bytes]) -> bytes:
    loop = asyncio.get_running_loop()

    def deliver(data: bytes) -> None:
        if not ready.done():
            ready.set_result(data)

    def read() -> None:
        data = os.read(source, _CHUNK)
        loop.call_soon_threadsafe(deliver, data)

    # A daemon: a read that nobody waits for any more must not hold up the end of the program.
    threading.Thread(target=read, name="dragoman terminal", daemon=True).start()
    return await ready


terminal_form: Final = TerminalForm()
