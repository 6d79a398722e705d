"""How many calls run at once; the others wait in a line that has an end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Hashable, Sequence

from dragoman.errors import UsageError
from dragoman.model import Result
from dragoman.protocol.call import Call
from dragoman.server.layers.subject import TOO_BUSY, WORK, By, Key, keyed, refused
from dragoman.server.middleware import Handler


class _Gate:
    """Those of one key: how many are in, and who waits."""

    __slots__ = ("inside", "line")

    def __init__(self) -> None:
        self.inside = 0
        self.line: deque[asyncio.Future[None]] = deque()


class Concurrency:
    """At most `limit` calls at once, for each of those who are told apart `by`; for all together without.

    Others wait in turn, at most `line` of them and for at most `wait` seconds each; beyond that they
    are told that the server is busy, by a tool result with `isError` or by error 503.

    Raises:
        UsageError: a limit below 1, or an unknown `by`.
    """

    def __init__(
        self,
        limit: int,
        *,
        by: Sequence[By] | Key = (),
        wait: float = 10.0,
        line: int = 1000,
        methods: Collection[str] = WORK,
    ) -> None:
        if limit < 1:
            raise UsageError(f"Concurrency: expected a limit of at least 1, received {limit!r}")
        self._limit = limit
        self._key = keyed(by)
        self._wait = wait
        self._line = line
        self._methods = frozenset(methods)
        self._gates: dict[Hashable, _Gate] = {}

    async def __call__(self, call: Call, proceed: Handler) -> Result:
        """The layer itself."""
        if call.method.name not in self._methods:
            return await proceed(call)
        key = self._key(call)
        gate = self._gates.setdefault(key, _Gate())
        if not await self._enter(key, gate):
            text = f"The server is busy: {self._limit} calls at once are as many as it takes; try again later"
            return refused(call, text, code=TOO_BUSY)
        try:
            return await proceed(call)
        finally:
            self._leave(key, gate)

    async def _enter(self, key: Hashable, gate: _Gate) -> bool:
        if gate.inside < self._limit:
            gate.inside += 1
            return True
        if len(gate.line) >= self._line:
            return False
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        gate.line.append(turn)
        try:
            await asyncio.wait([turn], timeout=self._wait)
        except asyncio.CancelledError:
            if turn.done():
                self._leave(key, gate)  # it was let in, and does not come
            else:
                gate.line.remove(turn)
            raise
        if not turn.done():
            gate.line.remove(turn)
        return turn.done()

    def _leave(self, key: Hashable, gate: _Gate) -> None:
        if gate.line:
            gate.line.popleft().set_result(None)  # the place is theirs now
            return
        gate.inside -= 1
        if not gate.inside:
            del self._gates[key]
