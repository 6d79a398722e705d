"""What the loop asks of a model, whatever answers: a request, a place for it, and what is heard meanwhile.

It knows no API's form and no transport.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from dragoman.host.models.base import (
    Api,
    ArgumentsDelta,
    Definitions,
    Item,
    TextDelta,
    ThoughtDelta,
    Usage,
    UseStarted,
)

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """What a model costs for a million tokens, in any money. Without `cached`, all input costs the same."""

    input: float
    output: float
    cached: float | None = None

    def cost(self, usage: Usage) -> float:
        """What these tokens cost."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input - usage.cached
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / _MILLION


@dataclass(frozen=True, slots=True)
class Waiting:
    """The model's server could not answer, and is asked again in so many seconds: the `attempt`-th time."""

    attempt: int
    seconds: float
    why: str


Heard: TypeAlias = TextDelta | ThoughtDelta | UseStarted | ArgumentsDelta | Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request: all that was said so far, and the tools. `limit` is in tokens of the answer."""

    history: Sequence[Item]
    tools: Definitions
    system: str | None = None
    limit: int | None = None


class Speaker(Protocol):
    """A model that can be asked now."""

    async def answer(self, request: ModelRequest, hear: Callable[[Heard], None]) -> Mapping[str, Any]:
        """The model's message, whole; `hear` gets it as it comes.

        Raises:
            LocalError: there is no answer; the error says what to do.
        """
        ...


class AnyModel(Protocol):
    """A model and the API that it speaks: `Model`, `ScriptedModel`, or your own."""

    @property
    def name(self) -> str:
        """What the model is called there."""
        ...

    @property
    def speaks(self) -> Api:
        """Its API."""
        ...

    @property
    def limit(self) -> int | None:
        """Tokens of one answer at most."""
        ...

    @property
    def prices(self) -> Prices | None:
        """What it costs, if that is known."""
        ...

    def open(self) -> AbstractAsyncContextManager[Speaker]:
        """Get ready to ask it; whatever that takes ends with the context."""
        ...
