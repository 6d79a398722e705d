"""What happens in a run of the loop, one record each, and what it came to in the end. Records alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from dragoman.host.loop.state import RunState
from dragoman.host.models.base import ArgumentsDelta, TextDelta, ThoughtDelta, ToolUse, Usage, UseStarted
from dragoman.host.outcome import Outcome
from dragoman.host.provider.talk import Waiting

End: TypeAlias = Literal["end", "length", "refused", "other", "stopped", "rounds", "tokens", "cost"]
"""Why a run ended: the model's own word, a stop from outside, or the budget that ran out."""


@dataclass(frozen=True, slots=True)
class Asking:
    """The model is asked, for the `round`-th time in this conversation."""

    round: int


@dataclass(frozen=True, slots=True)
class Message:
    """The model's message is whole: its `text`, and the calls that it wants under the names it was shown."""

    round: int
    text: str
    uses: tuple[ToolUse, ...]
    usage: Usage
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call is looked at: schema, permission, perhaps a question to a person. Nothing was sent yet."""

    use: ToolUse


@dataclass(frozen=True, slots=True)
class CallEnded:
    """How a call came out, and the time that it took in seconds, questions included."""

    use: ToolUse
    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to.

    `text` is what the model said in its last message. `stop` is why the run ended and `why` that in words,
    where it is not the model's own end. `rounds`, `usage` and `cost` are of this run alone (`cost` is None
    where no prices are known), `outcomes` its calls in the order in which they ended. `state` goes on.
    """

    text: str
    stop: End
    why: str
    rounds: int
    usage: Usage
    cost: float | None
    outcomes: tuple[Outcome, ...]
    state: RunState

    @property
    def done(self) -> bool:
        """Whether the model came to its own end."""
        return self.stop == "end"


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event."""

    result: RunResult


Event: TypeAlias = (
    Asking
    | TextDelta
    | ThoughtDelta
    | UseStarted
    | ArgumentsDelta
    | Waiting
    | Message
    | CallStarted
    | CallEnded
    | Ended
)
