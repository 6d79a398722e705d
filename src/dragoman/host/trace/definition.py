"""The definition of a tool as a trace remembers it: hashes of its parts, and the texts that they are of.

Pure.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec

from dragoman.model import Tool

PARTS: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")


def describe_tool(tool: Tool) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The hash of each part that a tool has, and the JSON text of each by its hash.

    Members of objects are in the order of their names: a list that differs in nothing else is the same.
    """
    whole: dict[str, Any] = msgspec.to_builtins(tool)
    hashes: dict[str, Any] = {}
    texts: dict[str, bytes] = {}
    for part in PARTS:
        if part in whole:
            text = msgspec.json.encode(whole[part], order="deterministic")
            hashes[part] = sha256(text).hexdigest()
            texts[hashes[part]] = text
    return hashes, texts
