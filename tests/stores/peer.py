"""Another process on the same file: `python -m tests.stores.peer PATH` does what its parent says.

A request is a pickle of (id, time, face, space, method, args, kwargs), an answer one of (id, value, error).
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import struct
import sys
from typing import Any

from dragoman.stores import Message
from tests.needs import ROOT
from tests.stores.clock import FakeClock


class Remote:
    """A store in a child process, as far as tests use one."""

    def __init__(self, process: asyncio.subprocess.Process, clock: FakeClock) -> None:
        self.clock = clock
        self.process = process
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, path: str, clock: FakeClock) -> Remote:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.stores.peer", path, stdin=pipe, stdout=pipe, cwd=ROOT
        )
        return cls(process, clock)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            id_, value, error = await receive(self.process.stdout)
            future = self._answers.pop(id_)
            if not future.done():
                _ = future.set_result(value) if error is None else future.set_exception(error)

    async def call(self, face: str, space: str, method: str, *args: Any, **kwargs: Any) -> Any:
        assert self.process.stdin is not None
        future = asyncio.get_running_loop().create_future()
        id_ = id(future)
        self._answers[id_] = future
        self.process.stdin.write(packed((id_, self.clock(), face, space, method, args, kwargs)))
        return await future

    def kv(self, space: str) -> Face:
        return Face(self, "kv", space)

    def log(self, space: str) -> Face:
        return Face(self, "log", space)

    def bus(self, space: str) -> Face:
        return Face(self, "bus", space)

    def queue(self, space: str) -> Face:
        return Face(self, "queue", space)

    async def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self.process.wait()
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError, asyncio.IncompleteReadError):
            await self._reading


class Face:
    """One primitive of the child's store."""

    def __init__(self, remote: Remote, face: str, space: str) -> None:
        self._remote = remote
        self._face = face
        self._space = space

    def __getattr__(self, method: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._remote.call(self._face, self._space, method, *args, **kwargs)

        return call

    def subscribe(self, *topics: str, buffer: int = 1000) -> RemoteSubscription:
        return RemoteSubscription(self._remote, self._space, topics, buffer)


class RemoteSubscription:
    """A subscription in the child."""

    def __init__(self, remote: Remote, space: str, topics: tuple[str, ...], buffer: int) -> None:
        self._call = lambda method: remote.call("bus", space, method, *topics, buffer=buffer)

    async def __aenter__(self) -> RemoteSubscription:
        await self._call("enter")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._call("leave")

    def __aiter__(self) -> RemoteSubscription:
        return self

    async def __anext__(self) -> Message:
        return await self._call("next")


def packed(value: Any) -> bytes:
    data = pickle.dumps(value)
    return struct.pack("!I", len(data)) + data


async def receive(reader: asyncio.StreamReader) -> Any:
    (size,) = struct.unpack("!I", await reader.readexactly(4))
    return pickle.loads(await reader.readexactly(size))


# --- in the child -------------------------------------------------------------------------------------


async def main(path: str) -> None:
    from dragoman.stores.sqlite import SQLiteStore

    clock = FakeClock()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    subscriptions: dict[Any, Any] = {}
    tasks: set[asyncio.Task[None]] = set()
    async with SQLiteStore(path, clock=clock) as store:

        async def serve(id_: int, face: str, space: str, *, method: str, args: Any, kwargs: Any) -> None:
            value = error = None
            try:
                primitive = getattr(store, face)(space)
                if method == "enter":
                    subscriptions[space, args] = await primitive.subscribe(*args, **kwargs).__aenter__()
                elif method == "leave":
                    await subscriptions.pop((space, args)).__aexit__(None, None, None)
                elif method == "next":
                    value = await anext(subscriptions[space, args])
                else:
                    value = await getattr(primitive, method)(*args, **kwargs)
            except Exception as caught:
                error = caught
            sys.stdout.buffer.write(packed((id_, value, error)))
            sys.stdout.buffer.flush()

        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                id_, clock.time, face, space, method, args, kwargs = await receive(reader)
                task = asyncio.ensure_future(serve(id_, face, space, method=method, args=args, kwargs=kwargs))
                tasks.add(task)
                task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
