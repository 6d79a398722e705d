"""The chain of a trace's lines: each carries its number, the hash of the line before, and its own.

Pure. The hash of a line is SHA-256 (HMAC-SHA-256 with a key) over its bytes as they stand in the file, up to
the comma before `"hash"`: whoever checks it needs no rule for how JSON is written.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

GENESIS: Final = "0" * 64
"""What stands for the hash before the first line."""

_TAIL: Final = re.compile(rb',"seq":([1-9][0-9]{0,17}),"prev":"([0-9a-f]{64})"(,"hash":"([0-9a-f]{64})"\})\Z')
_LONGEST: Final = 256  # more than the members of the seal take


@dataclass(frozen=True, slots=True)
class Seal:
    """The place of a line in its chain: `seq` counts from 1, `prev` and `hash` are hex."""

    seq: int
    prev: str
    hash: str


def seal_line(body: bytes, *, seq: int, prev: str, key: bytes | None = None) -> tuple[bytes, Seal]:
    """An encoded JSON object with at least one member as a line of the chain, LF included."""
    text = b'%b,"seq":%d,"prev":"%b"' % (body[:-1], seq, prev.encode())
    digest = _digest(text, key)
    return b'%b,"hash":"%b"}\n' % (text, digest.encode()), Seal(seq, prev, digest)


def read_seal(line: bytes) -> Seal | None:
    """What a line without its LF says of its place; None where it is no line of a chain."""
    found = _TAIL.search(line, max(0, len(line) - _LONGEST))
    if found is None:
        return None
    return Seal(int(found[1]), found[2].decode(), found[4].decode())


def fits(line: bytes, *, key: bytes | None = None) -> bool:
    """Whether a line without its LF still has the content that its hash was made of."""
    found = _TAIL.search(line, max(0, len(line) - _LONGEST))
    if found is None:
        return False
    return hmac.compare_digest(_digest(line[: found.start(3)], key), found[4].decode())


def _digest(text: bytes, key: bytes | None) -> str:
    return sha256(text).hexdigest() if key is None else hmac.new(key, text, "sha256").hexdigest()
