"""From what a tool's function returned to what `tools/call` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from dragoman.model import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from dragoman.schema.output import Output
from dragoman.schema.signature import Signature
from dragoman.schema.validate import Validator
from dragoman.server.media import Audio, File, Image

_BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)
_MEDIA = (Image, Audio, File)
