"""The part of `Server` that puts servers together, and says how long they live and who sees what.

A face alone: what is behind it is loaded by the servers that use it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from dragoman.errors import UsageError
from dragoman.server.home import PROGRESS_RATE
from dragoman.server.kernel import Kernel
from dragoman.server.sight import Sight, Visible

if TYPE_CHECKING:
    from dragoman.server.composition import Composition
    from dragoman.server.transform import Transformation


class LifeOptions(TypedDict, total=False):
    """Options of a `Server` for its life and for who sees what.

    `lifespan`: a function of the server that returns an async context manager, entered before the
    first answer and left at the end; what it gives is `ctx.lifespan`. `visible`: asked with what a
    list would show, the principal and the tags; what it says no to is in no list and cannot be
    called. `progress_rate`: how many reports of progress a call sends in a second at most (20).
    """

    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]]
    visible: Visible
    progress_rate: float


class Composes:
    """What `Server` has of it."""

    kernel: Kernel
    _composition: Composition | None = None

    def _settle(self, options: LifeOptions) -> None:
        home = self.kernel.home
        home.progress_rate = options.get("progress_rate", PROGRESS_RATE)
        if not home.progress_rate > 0:
            raise UsageError(f"progress_rate: expected a number above 0, received {home.progress_rate!r}")
        if "lifespan" in options:
            from dragoman.server.lifespan import Lifespan

            home.life = Lifespan(options["lifespan"], self)
        if "visible" in options:
            self.kernel.sight = Sight()
            self.kernel.sight.visible = options["visible"]

    @property
    def overrides(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        """For tests: with `server.overrides[get_db] = fake`, `Depends(get_db)` supplies what `fake` gives."""
        return self.kernel.home.overrides

    def mount(self, other: Composes, *, prefix: str = "") -> None:
        """Offer what another server does too, in process: tools and prompts with `prefix` before their
        names, resources and templates under their URIs.

        It is a live view: what the other one adds or removes later comes and goes here too. Calls
        are answered at home, inside the other one's middleware, with its lifespan and its overrides.

        Raises:
            UsageError: a name is taken, or the two would be inside each other.
        """
        if not isinstance(other, Composes):  # pyright: ignore[reportUnnecessaryIsInstance]  # people mistake an app for it
            raise UsageError(f"mount: expected a Server, received {type(other).__name__}")
        self._compose().mount(other.kernel, prefix)

    def transform(self, tool: str, **options: Unpack[Transformation]) -> None:
        """Change what a tool looks like, here and now: its own or a mounted one, by its name here.

        `name`, `title`, `description`, `icons`, `annotations`, `meta`, `tags` replace; `fixed={"unit":
        "C"}` gives an argument for good and takes it out of the schema; `renamed={"q": "query"}` and
        `described={"q": "..."}` go by the old names; `hidden=True` takes the tool away; `keep=True`
        adds the new shape beside the old one. Schema and calls agree.

        Raises:
            UsageError: there is no such tool or argument, a value does not fit, or a name is taken.
        """
        self._compose().transform(tool, options)

    def _compose(self) -> Composition:
        if self._composition is None:
            from dragoman.server.composition import Composition

            self._composition = Composition(self.kernel)
        return self._composition

    async def close(self) -> None:
        """End the lifespan in the running event loop, for programs that serve in ways of their own.

        Not needed after `run()`, nor under an ASGI server that speaks its lifespan protocol, nor
        where the event loop itself ends. Requests that come later start it anew.
        """
        await self.kernel.home.close()
