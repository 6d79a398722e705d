"""What models' APIs call tools, calls and results: one module an API, each a pure conversion.

`APIS` has them by name; what they have in common stands in `base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman.host.models.anthropic import MESSAGES
from dragoman.host.models.base import Api
from dragoman.host.models.gemini import GEMINI
from dragoman.host.models.openai_chat import CHAT
from dragoman.host.models.openai_responses import RESPONSES

APIS: Final[Mapping[str, Api]] = {api.name: api for api in (MESSAGES, RESPONSES, CHAT, GEMINI)}

__all__ = ["APIS", "CHAT", "GEMINI", "MESSAGES", "RESPONSES", "Api"]
