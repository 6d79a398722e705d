"""Changes at many servers as one stream, in which a burst of the same change is one.

Pure bookkeeping and one wait; it knows neither servers nor how they say that something changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

Kind: TypeAlias = Literal["state", "tools", "prompts", "resources", "resource"]


@dataclass(frozen=True, slots=True)
class Change:
    """Something is another one now at a server of a group.

    `kind` is `"state"` (see the server's `state` and `why`), a list (`"tools"`, `"prompts"`,
    `"resources"`) or one `"resource"`, then with its `uri`.
    """

    server: str
    kind: Kind
    uri: str | None = None


class Changes:
    """An async iterator of changes, from the moment it was made until `close`.

    A change that has not been taken yet swallows those like it.
    """

    def __init__(self, on_close: Callable[[Changes], None]) -> None:
        self._on_close = on_close
        self._waiting: dict[Change, None] = {}
        self._arrived = asyncio.Event()
        self._ended = False

    def put(self, change: Change) -> None:
        """Something changed."""
        if not self._ended:
            self._waiting.setdefault(change)
            self._arrived.set()

    def close(self) -> None:
        """End the iteration, after what has arrived already."""
        if not self._ended:
            self._ended = True
            self._arrived.set()
            self._on_close(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        change = next(iter(self._waiting))
        del self._waiting[change]
        return change
