"""The definition of a tool, as a lock and a trace hold on to it: its parts, and the hash of each.

Pure. The name is no part: it is what the parts stand under.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec

from dragoman.model import Tool
from dragoman.schema.shapes import is_object

PARTS: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")
INTERACTION: Final = "anthropic/requiresUserInteraction"
"""The member of a tool's `_meta` by which it wants a person to be asked each time."""

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def parts(tool: Tool) -> dict[str, Any]:
    """The parts that a tool has, in the wire form of `tools/list`.

    Of `_meta` nothing but that a person is to be asked each time: servers write there what changes from list
    to list, and whoever agreed to a tool that asks did not agree to one that does not.
    """
    whole: dict[str, Any] = msgspec.to_builtins(tool)
    found: dict[str, Any] = {part: whole[part] for part in PARTS if part in whole}
    meta: Any = whole.get("_meta")
    if is_object(meta) and meta.get(INTERACTION) is True:
        found["_meta"] = {INTERACTION: True}
    return found


def hashed(tool: Tool) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The SHA-256 of each part that a tool has, and the JSON text of each by that.

    Members of objects are in the order of their names: a list that differs in nothing else is the same.
    """
    texts = {part: _encode(value) for part, value in parts(tool).items()}
    hashes: dict[str, Any] = {part: sha256(text).hexdigest() for part, text in texts.items()}
    return hashes, {hashes[part]: text for part, text in texts.items()}
