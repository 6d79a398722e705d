"""What a handler that is entered more than once has already: answers, and values of its steps."""

from __future__ import annotations

from typing import Any

import msgspec


class Record(msgspec.Struct, omit_defaults=True, rename={"expires": "x", "round": "r", "raw": "w"}):
    """The plain text of a state: answers by key, values of steps by key, and when it ends (seconds)."""

    expires: float
    round: int = 1
    answers: dict[str, Any] = msgspec.field(default_factory=dict[str, Any], name="a")
    steps: dict[str, Any] = msgspec.field(default_factory=dict[str, Any], name="s")
    raw: str | None = None  # the handler's own state, where it answered in the raw form
