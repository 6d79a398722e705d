"""The faults of the soak: what breaks, how often, and how a call that meets it may end.

It knows no client and no server: those who break things and those who count look the names up here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

STDIO: Final = "stdio"
HTTP: Final = "http"
OLD: Final = "2025-11-25"
NEW: Final = "2026-07-28"

# How a call may end. The order is that of the codes in which the tally keeps them.
RESULT: Final = "result"
TOOL_ERROR: Final = "tool error"
REMOTE: Final = "RemoteError"
CLOSED: Final = "ClosedError"
CONNECT: Final = "ConnectError"
DEADLINE: Final = "DeadlineError"
PEER: Final = "PeerFault"
STATUS: Final = "HttpError"
OUTCOMES: Final = (RESULT, TOOL_ERROR, REMOTE, CLOSED, CONNECT, DEADLINE, PEER, STATUS)

# What a fault of a server may do to calls that have nothing to do with it: it is gone, or says nothing.
NEIGHBOURS: Final = frozenset({CLOSED, CONNECT, DEADLINE})


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to break: at which transports and revisions, its weight in the draw, and the ends it may have.

    `ends` are beside those that any call may have whose server is lost. `whole`: it takes the server
    with it, or stops it for a while.
    """

    name: str
    transports: tuple[str, ...]
    weight: float
    ends: frozenset[str]
    whole: bool = False
    revisions: tuple[str, ...] = (OLD, NEW)


def _fault(name: str, where: str, *ends: str, weight: float = 1.0, whole: bool = False) -> Fault:
    transports = (STDIO, HTTP) if where == "both" else (where,)
    return Fault(name, transports, weight, frozenset(ends), whole)


FAULTS: Final[Sequence[Fault]] = (
    _fault("slow", "both", RESULT, weight=3),
    _fault("late", "both", DEADLINE),
    _fault("silent", "both", DEADLINE),
    _fault("tool error", "both", TOOL_ERROR),
    _fault("error", "both", REMOTE),
    _fault("flood", "both", RESULT),
    _fault("separators", "both", RESULT),
    _fault("list changed", "both", RESULT, weight=2),
    _fault("stall", "both", RESULT, weight=0.3, whole=True),
    _fault("killed", "both", RESULT, weight=0.15, whole=True),
    _fault("dies during", "both", RESULT, weight=0.15, whole=True),
    _fault("dies after", "both", RESULT, weight=0.15, whole=True),
    _fault("hangs", "both", RESULT, weight=0.15, whole=True),
    _fault("garbage", STDIO, RESULT),
    _fault("half a line", STDIO, DEADLINE, PEER),
    _fault("bad byte", STDIO, PEER),
    _fault("closes stdout", STDIO, RESULT, weight=0.15, whole=True),
    _fault("wrong id", STDIO, RESULT),
    _fault("twice", STDIO, RESULT),
    _fault("id as text", STDIO, RESULT),
    _fault("CRLF and BOM", STDIO, RESULT),
    _fault("reset", HTTP, RESULT),
    _fault("cut head", HTTP, RESULT),
    _fault("cut body", HTTP, RESULT),
    _fault("cut stream", HTTP, RESULT),
    _fault("cut in bytes", HTTP, RESULT),
    _fault("wrong id", HTTP, PEER),
    _fault("twice", HTTP, RESULT),
    _fault("streams cut", HTTP, RESULT),
    _fault("garbage", HTTP, STATUS, PEER),
    _fault("page", HTTP, STATUS),
    _fault("redirect", HTTP, STATUS),
    _fault("500", HTTP, STATUS),
    _fault("503", HTTP, RESULT, STATUS),
    _fault("503 and when", HTTP, RESULT, STATUS),
    Fault("session lost", (HTTP,), 1.0, frozenset({RESULT}), revisions=(OLD,)),
)


def fitting(transport: str, revision: str) -> Sequence[Fault]:
    """The faults that a server of that kind can have."""
    return [fault for fault in FAULTS if transport in fault.transports and revision in fault.revisions]


class Draw:
    """Draws faults of one kind of server by weight; the same seed, the same faults."""

    def __init__(self, transport: str, revision: str) -> None:
        self._faults = fitting(transport, revision)
        self._weights = [fault.weight for fault in self._faults]

    def one(self, rng: random.Random) -> Fault:
        """The next fault."""
        return rng.choices(self._faults, self._weights)[0]
