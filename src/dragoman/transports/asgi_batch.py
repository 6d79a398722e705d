"""A batch over HTTP (2025-03-26, the only revision that has them), and the answers that say no.

Its calls run side by side, each as a task of its own, so that one can be cancelled alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from dragoman.errors import Refusal
from dragoman.jsonrpc.message import (
    Id,
    encode_batch,
    encode_result,
)
from dragoman.protocol.call import Call, Kernel
from dragoman.transports.asgi_exchange import Exchange, Stopped
from dragoman.transports.asgi_session import HttpSession
from dragoman.transports.connection import failed, in_use, refusal


class HttpBatch:
    """The calls of one batch and their answers."""

    def __init__(self, kernel: Kernel, seat: HttpSession, *, exchange: Exchange) -> None:
        self._kernel = kernel
        self._seat = seat
        self._exchange = exchange
        self._frames: list[bytes] = []

    async def answer(self, items: Iterable[Call | bytes]) -> None:
        """Handle the calls among `items`, and send their answers and those that are there already."""
        calls: dict[Id, Call] = {}
        for item in items:
            if isinstance(item, bytes):
                self._frames.append(item)
            elif item.id in self._seat.calls or item.id in calls:
                self._frames.append(in_use(item.id))
            else:
                calls[item.id] = item
        exchange = self._exchange
        if calls:
            exchange.link = self._seat.link
            exchange.asks = next(iter(calls.values())).revision.asks_inline
            try:
                await exchange.work(self._all(calls))
            except Stopped:
                self._frames.clear()
        if exchange.streaming:
            await exchange.end_stream(*self._frames)
        else:
            await exchange.answer(encode_batch(self._frames))

    async def _all(self, calls: dict[Id, Call]) -> None:
        loop = asyncio.get_running_loop()
        tasks = {loop.create_task(self._one(call)): id_ for id_, call in calls.items()}
        for task, id_ in tasks.items():
            self._seat.calls[id_] = task.cancel
        try:
            await asyncio.wait(tasks)
        finally:
            for task, id_ in tasks.items():
                task.cancel()
                self._seat.calls.pop(id_, None)

    async def _one(self, call: Call) -> None:
        try:
            frame = encode_result(call.id, await self._kernel.handle(call))
        except Refusal as exc:
            frame = refusal(call.id, exc)
        except BaseException as exc:  # whatever it is, the request is owed an answer
            if own_end(exc):
                raise
            frame = failed(call.id, call.method.name, exc=exc)
        if self._exchange.streaming:
            self._exchange.emit(frame)
        else:
            self._frames.append(frame)


def own_end(exc: BaseException) -> bool:
    """Whether an exception ends this very task, and is nothing that a handler made of its own work."""
    if isinstance(exc, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(exc, GeneratorExit | KeyboardInterrupt)
