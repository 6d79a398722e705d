"""How many tokens a text costs a model, estimated: no model's vocabulary is needed, and none is loaded. Pure.

Each model counts in its own way. The figure is within about a fifth of the vocabularies that it was
measured with (docs/deferred.md), which is what deciding on a budget needs and a bill does not.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import UNSET

from dragoman.model import Tool

_PIECES: Final = re.compile(
    r"(?P<word>[A-Za-z\u00c0-\u024f]+)|(?P<number>[0-9]+)|(?P<blank>\s+)"
    "|(?P<hangul>[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]+)"
    "|(?P<kana>[\u3040-\u30ff]+)|(?P<han>[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)"
    "|(?P<letters>[\u0370-\u06ff]+)|(?P<thai>[\u0900-\u109f\u1780-\u17ff]+)"
    r"|(?P<mark>[!-/:-@\[-`{-~]+)|(?P<other>[^\x00-\x7f]+)"
)
# Characters of one token, by kind of text.
_LONG: Final = {
    "number": 1.4,
    "hangul": 1.4,
    "kana": 1.6,
    "han": 1.3,
    "letters": 4.2,
    "thai": 1.7,
    "mark": 2.7,
    "other": 1.0,
}
_WORD: Final = 6.0  # letters of a word that is one token; longer ones are more
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def estimate(text: str) -> int:
    """About how many tokens a text is: 0 for an empty one."""
    total = 0.0
    for found in _PIECES.finditer(text):
        kind = found.lastgroup
        size = found.end() - found.start()
        if kind == "word":
            total += max(1.0, size / _WORD)
        elif kind == "blank":
            # One space belongs to the word behind it.
            total += 0 if size == 1 and found[0] == " " else 1
        elif kind is not None:
            total += max(1.0, size / _LONG[kind])
    return round(total)


def cost(name: str, tool: Tool) -> int:
    """About how many tokens a tool's definition costs in a request, under the name that the model sees."""
    said = "" if tool.description is UNSET else tool.description
    definition = {"name": name, "description": said, "input_schema": tool.input_schema}
    return estimate(_encode(definition).decode())
