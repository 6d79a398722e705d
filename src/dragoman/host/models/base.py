"""What every model's API comes to: a call that a model wants, and a tool that it may be shown.

Knows no API and no server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.model import Tool


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A model's wish: `id` links the answer to it, `name` is a name the model was shown."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool under the name by which the model is to see it."""

    name: str
    tool: Tool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that this API would refuse, and with it the whole request."""

    name: str
    why: str
