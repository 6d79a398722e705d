"""The client's way to a server that it starts as a child process (stdio, client side).

It pairs answers with requests and says what became of the process. It refuses to know methods
other than `notifications/cancelled`, and how a process is started and ended: that is `spawn`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from dragoman.errors import ClosedError, LocalError, UsageError
from dragoman.jsonrpc.framing import MAX_BYTES, Lines, TooLong
from dragoman.jsonrpc.message import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Batch,
    Id,
    Invalid,
    Limits,
    Message,
    Notification,
    Request,
    Response,
    decode,
    encode_error,
    encode_notification,
    too_large,
)
from dragoman.revisions.base import Revision
from dragoman.transports.base import OnNotification, OnRequest, Outgoing, Tap
from dragoman.transports.ledger import Ledger
from dragoman.transports.pipes import Reader, Tail, Writer
from dragoman.transports.spawn import Child, check_command, short_name, spawn

log = logging.getLogger("dragoman")

_SETTLE_SECONDS: Final = 0.5  # for exit status and last words, which come on other ways than the output's end
_ASKED: Final = 256  # requests of the server that are worked on at the same time

_read_members: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a child process may do, and for how long it is waited for.

    `max_line` is the longest message in bytes, `tail_lines` how many lines of stderr are kept for
    errors. `grace` are the seconds between closing its stdin and TERM, and between TERM and KILL.
    """

    max_line: int = MAX_BYTES
    tail_lines: int = 20
    grace: tuple[float, float] = (2.0, 2.0)


DEFAULT_LIMITS: Final = ChildLimits()


def _forward(line: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no stderr, or a closed one
        sys.stderr.write(line + "\n")


class ChildTransport:
    """A server started as `command`, one JSON-RPC message a line on its stdin and stdout.

    `env` is laid over the environment of this process, or is all of it if `inherit` is false.
    Each line of the server's stderr goes to `on_stderr`; by default to the stderr of this process.
    Used from the event loop in which `open` was called.
    """

    shared = True

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        inherit: bool = True,
        cwd: str | os.PathLike[str] | None = None,
        name: str | None = None,
        on_stderr: Callable[[str], None] | None = None,
        limits: ChildLimits = DEFAULT_LIMITS,
    ) -> None:
        self._command = check_command(command, name)
        self.name = name or short_name(self._command)
        self._env = env
        self._inherit = inherit
        self._cwd = cwd
        self._forward = on_stderr or _forward
        self._limits = limits
        self.tap: Tap | None = None
        self.on_gap: Callable[[], None] | None = None
        self._read = partial(decode, limits=Limits(max_bytes=limits.max_line))
        self._closed = False
        self._child: Child | None = None
        self._reset()

    def _reset(self) -> None:
        self._lines = Lines(self._limits.max_line)
        self._tail = Tail(self._limits.tail_lines, self._forward)
        self._ledger = Ledger(self.name)
        self._asked: dict[Id, asyncio.Task[None]] = {}
        self._ending: asyncio.Task[None] | None = None
        self._why = ""  # the connection is over, once it is known why
        self._status: int | None = None  # how the process ended, unless it was ended from here

    # Life ----------------------------------------------------------------------------------------

    async def open(self, on_notification: OnNotification, on_request: OnRequest) -> None:
        """Start the process; after it died, start it anew.

        Raises:
            ConnectError: it cannot be started; says where it was looked for and what to try.
            UsageError: it is running.
            ClosedError: after `close`.
        """
        ending = self._ending
        if ending is not None:
            await asyncio.wait([ending])
        if self._child is not None and (ending is None or self._ending is not ending):
            raise UsageError("it is open already", server=self.name, stage="connect")
        if self._closed:
            raise ClosedError("it was closed from this side", server=self.name, stage="connect")
        child = self.start()
        self._reset()
        self._child = child
        self._on_notification = on_notification
        self._on_request = on_request
        self._loop = asyncio.get_running_loop()
        lost = partial(self._lose, child)
        self._writer = Writer(child.stdin, lost)
        self._writer.tap = None if self.tap is None else partial(self.tap, "out")
        self._output = Reader(child.stdout, self._take)
        self._errors = Reader(child.stderr, self._tail.feed)
        self._output.done.add_done_callback(lost)
        child.exited.add_done_callback(lost)
        # Not before the first request is written: the watch is needed only when this process dies.
        self._loop.call_soon(child.watch, self._limits.grace)

    def start(self) -> Child:
        """Start the process as `open` does, for a caller that takes its pipes and sees to its end.

        Raises:
            ConnectError: as `open`.
        """
        return spawn(self._command, env=self._env, inherit=self._inherit, cwd=self._cwd, name=self.name)

    def agreed(self, revision: Revision) -> None:
        """Nothing depends on the revision here."""

    async def close(self) -> None:
        """End the connection and the whole process group; whatever is open ends with ClosedError.

        Closes the server's stdin, then waits, sends TERM, waits, sends KILL. From any task, at any
        time, more than once; returns when nothing is left.
        """
        self._closed = True
        if self._child is None:
            return
        if self._ending is None:
            self._over("the connection was closed from this side")
            self._ending = self._loop.create_task(self._end(self._child, 0.0))
        await asyncio.wait([self._ending])

    def _lose(self, child: Child, _: object = None) -> None:
        """The process ended, or closed a stream without which there is no connection."""
        if self._ending is None and self._child is child:
            self._ending = self._loop.create_task(self._end(child, _SETTLE_SECONDS))

    async def _end(self, child: Child, settle: float) -> None:
        grace = self._limits.grace
        try:
            if settle:
                await asyncio.wait([child.exited, self._output.done, self._errors.done], timeout=settle)
                self._died(child)
            if self._writer.size:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._writer.drained(), grace[0])
            self._writer.close()
            await child.end(grace)
        finally:
            self._over("the event loop was stopped")
            child.kill()
            self._writer.close()
            self._output.drain()
            self._errors.drain()
            self._tail.eof()

    def _died(self, child: Child) -> None:
        torn = not self._why and self._rest()
        if self._errors.ended:
            self._tail.eof()
        self._status = child.status
        if child.status is not None:
            why = "the server ended in the middle of a message" if torn else "the server ended"
            if not self._output.ended:
                why += ", though something that it started holds its standard output open"
        elif self._output.ended:
            why = "the server closed its standard output, though it still runs"
        else:
            why = "the server closed its standard input, though it still runs"
        log.warning("%s", self._error(why, "call"))
        self._over(why)
        if self.on_gap is not None:
            self.on_gap()

    def _rest(self) -> bool:
        """Take what came last, without a line end; whether it is a message that was cut off."""
        for frame in self._lines.eof():
            if isinstance(frame, bytes) and frame[:1] == b"{" and type(self._read(frame)) is Invalid:
                return True
            self._receive(frame)
        return False

    def _over(self, why: str) -> None:
        """No answer comes any more: end everything that is open."""
        if self._why:
            return
        self._why = why
        self._ledger.fail(lambda: self._error(why, "call"))
        current = asyncio.current_task()
        for task in list(self._asked.values()):
            if task is not current:  # a handler may close the connection
                task.cancel()

    def _error(self, why: str, stage: str) -> ClosedError:
        return ClosedError(
            why, server=self.name, stage=stage, exit_status=self._status, stderr_tail=self._tail.lines
        )

    # Going out -----------------------------------------------------------------------------------

    async def exchange(self, outgoing: Outgoing, on_notification: OnNotification | None = None) -> Response:
        """Send a request and await its response.

        `on_notification` is not called: on a shared channel every notification goes to the one that
        `open` was given. Cancelling sends `notifications/cancelled`, except for `initialize`.

        Raises:
            ClosedError: the server ended or was closed, with its exit status and last words.
            PeerFault: what came for this request is no answer.
            UsageError: the id is in use, the frame is more than one line, or `open` was not called.
        """
        id_ = outgoing.id
        self._check(outgoing.frame, "initialize" if outgoing.handshake else "call")
        pending = self._ledger.pending
        if id_ in pending:
            message = f"id {id_!r} is already in use by a request that is not answered yet"
            raise UsageError(message, server=self.name, stage="call")
        future: asyncio.Future[Response] = self._loop.create_future()
        pending[id_] = future
        sent = False
        try:
            if self._writer.full:
                await self._writer.room()
            if self._ending is None:
                sent = True
                # Alone on the line, a request leaves at once; of many, all of a turn leave together.
                self._writer.send(outgoing.frame, now=len(pending) == 1)
            return await future
        except asyncio.CancelledError:
            if self._ledger.give_up(id_, future) and sent and self._ending is None:
                self._ledger.abandon(id_)
                if not outgoing.handshake:
                    self._writer.send(encode_notification("notifications/cancelled", {"requestId": id_}))
            raise
        except LocalError as exc:
            exc.stage = "initialize" if outgoing.handshake else exc.stage
            exc.undelivered = not sent
            raise

    async def notify(self, frame: bytes, revision: Revision | None) -> None:
        """Send a notification.

        Raises:
            ClosedError: the server ended or was closed.
            UsageError: the frame is more than one line, or `open` was not called.
        """
        self._check(frame, "call")
        if self._writer.full:
            await self._writer.room()
        self._writer.send(frame)

    def _check(self, frame: bytes, stage: str) -> None:
        if self._why or (self._child is None and self._closed):
            error = self._error(self._why or "it was closed from this side", stage)
            error.undelivered = True
            raise error
        if self._child is None:
            raise UsageError("it was not opened", server=self.name, stage=stage)
        if b"\n" in frame:
            # What follows the line end would be a second message, which nobody has looked at.
            raise UsageError("a message on this transport is one line", server=self.name, stage=stage)

    # Coming in -----------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        if self._why:
            return  # read on, so that the server can finish, but nobody is left to listen
        for frame in self._lines.feed(data):
            self._receive(frame)

    def _receive(self, frame: bytes | TooLong) -> None:
        if isinstance(frame, TooLong):
            fault = too_large(frame.size, self._limits.max_line, head=frame.head)
            self._ledger.unreadable(fault, frame.head)
            return
        if self.tap is not None:
            self.tap("in", frame)
        message = self._read(frame)
        if type(message) is Response:
            self._ledger.settle(message)
        else:
            self._dispatch(message, frame)

    def _dispatch(self, message: Message, frame: bytes) -> None:
        if isinstance(message, Notification):
            self._notified(message)
        elif isinstance(message, Request):
            self._serve(message)
        elif isinstance(message, Response):
            self._ledger.settle(message)
        elif isinstance(message, Batch):
            for item in message.items:
                self._dispatch(item, frame)
        else:
            self._ledger.unreadable(message, frame)

    def _notified(self, message: Notification) -> None:
        if message.method == "notifications/cancelled" and self._asked:
            self._cancel(message)
        try:
            self._on_notification(message)
        except Exception:
            log.exception("%s of server %r failed in its handler", message.method, self.name)

    # What the server asks (revisions with a handshake) ---------------------------------------------

    def _serve(self, request: Request) -> None:
        refusal = b""
        if request.id in self._asked:
            refusal = encode_error(request.id, INVALID_REQUEST, f"id {request.id!r} is already in use")
        elif len(self._asked) >= _ASKED:
            text = f"more than {_ASKED} requests at the same time"
            refusal = encode_error(request.id, INTERNAL_ERROR, text)
        if not refusal:
            self._asked[request.id] = self._loop.create_task(self._answer(request))
        elif not self._writer.full:
            self._writer.send(refusal)

    async def _answer(self, request: Request) -> None:
        try:
            try:
                frame = await self._on_request(request)
            except Exception:
                log.exception("%s of server %r failed in its handler", request.method, self.name)
                frame = encode_error(request.id, INTERNAL_ERROR, "Internal error")
            if frame and not self._why:
                await self._writer.room()
                self._writer.send(frame)
        finally:
            if self._asked.get(request.id) is asyncio.current_task():
                del self._asked[request.id]

    def _cancel(self, message: Notification) -> None:
        with contextlib.suppress(msgspec.DecodeError, TypeError):
            id_ = _read_members(message.params or b"{}").get("requestId")
            task = self._asked.pop(id_, None)
            if task is not None:
                task.cancel()

    # Facts ---------------------------------------------------------------------------------------

    def facts(self) -> Mapping[str, Any]:
        """What is known of the process, for errors and diagnosis; no argument and no environment."""
        child = self._child
        return {
            "transport": "stdio",
            "program": self._command[0],
            "pid": None if child is None else child.pid,
            "running": child is not None and child.status is None,
            "exit_status": None if child is None else child.status,
            "watched": child is not None and child.watched,
            "unsent": 0 if child is None else self._writer.size,
            "asked": len(self._asked),
            "stderr_tail": self._tail.lines,
            **self._ledger.facts(),
        }
