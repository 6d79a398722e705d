"""What a run of the loop can be told: its budget, instructions, and where to go on from. Records alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self, TypedDict

from dragoman.errors import UsageError
from dragoman.host.loop.state import RunState
from dragoman.schema.options import check_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The budget of one run: requests to the model, tokens read and written, and money. None: no limit.

    Looked at before each request: the last answer may go beyond. Calls that no request could tell the
    model of any more are not made; they wait in the state.

    Raises:
        UsageError: a limit is not above zero.
    """

    rounds: int | None = 50
    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("rounds", "tokens", "cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name}: expected a limit above 0; received {value!r}")


class RunKeywords(TypedDict, total=False):
    """The keywords of `Host.run`: see `RunOptions`."""

    system: str | None
    limits: Limits
    state: RunState | None
    save: Callable[[RunState], None] | None
    defer: bool
    strict: bool
    instructions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run can be told.

    `system` are instructions to the model. `limits` is the budget. `state` is where another run stood, to
    go on from there; it is not changed. `save` is called with the state whenever it changes (see `saver`).
    With `defer`, the model sees no tool before it has searched for it, but those that are to be there always.
    `strict`: the API holds the model to the schemas, where it can. `instructions`: what servers say of
    themselves to the model goes with `system`.
    """

    system: str | None = None
    limits: Limits = Limits()
    state: RunState | None = None
    save: Callable[[RunState], None] | None = None
    defer: bool = False
    strict: bool = False
    instructions: bool = True

    @classmethod
    def of(cls, keywords: RunKeywords) -> Self:
        """The options for these keywords. Raises UsageError for one that does not exist."""
        check_options(keywords, (field.name for field in fields(cls)), of="Host.run()")
        return cls(**keywords)
