"""Changes at many servers as one stream, in which a burst of the same change is one.

Pure bookkeeping and one wait; it knows neither servers nor how they say that something changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, TypeAlias

Kind: TypeAlias = Literal["state", "tools", "prompts", "resources"]


@dataclass(frozen=True, slots=True)
class Change:
    """Something is another one now at a server of a group.

    `kind` is `"state"` (see the server's `state` and `why`) or a list: `"tools"`, `"prompts"`,
    `"resources"`. `missed`: it may have changed, maybe more than once, while the server could not be heard.
    """

    server: str
    kind: Kind
    missed: bool = False


class Changes:
    """The changes, as they come: `async for change in changes`, from the moment it was made until `close`.

    A change that has not been taken yet swallows those like it. `async with` returns when the servers
    that are connected have said that they will tell, and closes it at the end.
    """

    def __init__(
        self, on_close: Callable[[Changes], None], *, established: Callable[[], Awaitable[None]]
    ) -> None:
        self._on_close = on_close
        self._established = established
        self._waiting: dict[tuple[str, Kind], bool] = {}  # whether some may be missing
        self._arrived = asyncio.Event()
        self._over = False

    def put(self, change: Change) -> None:
        """Something changed."""
        if not self._over:
            key = change.server, change.kind
            self._waiting[key] = change.missed or self._waiting.get(key, False)
            self._arrived.set()

    def close(self) -> None:
        """End the iteration, after what has arrived already."""
        if not self._over:
            self._over = True
            self._arrived.set()
            self._on_close(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        change = await self.next()
        if change is None:
            raise StopAsyncIteration
        return change

    async def next(self) -> Change | None:
        """The next change, or None at the end. Whoever gives up waiting does not end it."""
        while not self._waiting:
            if self._over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        key = next(iter(self._waiting))
        return Change(*key, self._waiting.pop(key))

    async def established(self) -> Self:
        """Return when the servers that are connected have said that they will tell, as far as they do."""
        await self._established()
        return self

    async def __aenter__(self) -> Self:
        return await self.established()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
