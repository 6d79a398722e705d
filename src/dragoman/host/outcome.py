"""What became of one call of a model: the facts on it before it is sent, and how it came out.

Neutral records; a model's API makes its own form of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.client import ToolResult
from dragoman.host.config.record import Standing
from dragoman.host.models import anthropic
from dragoman.host.models.base import ToolUse
from dragoman.host.permissions import Decision
from dragoman.host.trace import By
from dragoman.model import Tool
from dragoman.protocol.naming import Name
from dragoman.schema.errors import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The facts on one call, in the order in which they are looked at; nothing was sent and nobody asked.

    `name` is the tool that is meant, None where there is none of that name; `near` are names that are
    like it. `standing` is the entry of its server and `state` how the server fares, with `why`. `faults`
    are what the schema refuses of the arguments, and `unusable` why the schema cannot be used at all.
    `locked` is what a lock has against the tool. `decision` is what the rules say. `by` is who refuses
    the call, None where it may be sent or a person be asked, and `text` what the model would be told.
    """

    use: ToolUse
    by: By | None = None
    text: str = ""
    name: Name | None = None
    near: tuple[str, ...] = ()
    standing: Standing | None = None
    state: str = ""
    why: str = ""
    tool: Tool | None = None
    faults: tuple[Fault, ...] = ()
    unusable: str = ""
    locked: str = ""
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call of the model came to.

    `by` is who answered: the server, or with nothing sent the schema, the lock, a permission or the host
    itself. `result` is what the server answered, as the host gives it to the model, and `full` all of it
    where that is less; without one, `text` is what the model is told. `faults` are what the schema
    refused, `decision` what the rules said; each is there only if the call came so far.
    """

    use: ToolUse
    by: By
    text: str = ""
    name: Name | None = None
    faults: tuple[Fault, ...] = ()
    decision: Decision | None = None
    result: ToolResult | None = None
    full: ToolResult | None = None

    @property
    def is_error(self) -> bool:
        """Whether the model is told of an error."""
        return self.result is None or self.result.is_error

    @property
    def block(self) -> Mapping[str, Any]:
        """The `tool_result` block of Anthropic's Messages API."""
        if self.result is None:
            return anthropic.failure(self.use.id, self.text)
        return anthropic.tool_result(self.use.id, self.result)
