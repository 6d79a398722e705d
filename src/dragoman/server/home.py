"""What a server keeps for its handlers: where they live, whoever serves them.

A tool that is mounted in another server stays at home in its own. It knows no call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from dragoman.server.lifespan import Lifespan

PROGRESS_RATE: float = 20.0  # reports a second


class Home(msgspec.Struct, eq=False):
    """`tool` finds a tool of the server by name. `overrides` are for tests: what supplies a value
    instead of the function that a handler names. `progress_rate` is in reports a second. `mounted`
    are the homes of servers that are served along with this one.
    """

    tool: Callable[[str], Any]
    life: Lifespan | None = None
    overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
    progress_rate: float = PROGRESS_RATE
    mounted: list[Home] = []

    def attach(self) -> None:
        """Somebody begins to serve in the running event loop: what takes time to start starts."""
        if self.life is not None:
            self.life.hold()
        for home in self.mounted:
            home.attach()

    async def detach(self) -> None:
        """They are done: what only they needed ends."""
        for home in reversed(self.mounted):
            await home.detach()
        if self.life is not None:
            await self.life.release()

    async def close(self) -> None:
        """End everything in the running event loop, whoever still serves."""
        for home in reversed(self.mounted):
            await home.close()
        if self.life is not None:
            await self.life.close()
