"""The frames of one connection, each held against the schema of the revision it was spoken in.

Our own frames must be exactly what the revision has. What a peer sends may have members of other
revisions; where it breaks the schema the fault is noted, and a test says whether it is a known one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal

from tests.spec.oracle import Direction, SpecViolation, validate_frame

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
BACK: dict[Direction, Direction] = {"to_server": "to_client", "to_client": "to_server"}


class Wire:
    """`ours` is the end that is under test. Feed it frames in the order in which they passed.

    With `extended` there are methods that no revision has.
    """

    def __init__(self, ours: Literal["client", "server"], *, extended: bool = False) -> None:
        self._extended = extended
        self._ours: Direction = "to_server" if ours == "client" else "to_client"
        self.frames: list[tuple[Direction, Any]] = []
        self.on_sent: Callable[[str], None] = lambda method: None  # told of what goes to the server

    def tap(self, direction: Literal["in", "out"], frame: bytes) -> None:
        """The tap of a client of ours."""
        self.add("to_server" if direction == "out" else "to_client", frame)

    def add(self, direction: Direction, frame: bytes) -> None:
        message = json.loads(frame)
        self.frames.append((direction, message))
        if direction == "to_server" and "method" in message:
            self.on_sent(message["method"])

    def sent(self, method: str) -> list[Any]:
        """The messages to the server with this method."""
        return [frame for way, frame in self.frames if way == "to_server" and frame.get("method") == method]

    def replayed(self) -> Iterable[tuple[str, Any, str | None, Direction]]:
        """Each frame with its revision, and a result with the method it answers."""
        revision = "2026-07-28"
        asked: dict[tuple[Direction, Any], tuple[str, str]] = {}
        for direction, frame in self.frames:
            if "method" in frame:
                revision = spoken(frame) or revision
                if "id" in frame:
                    asked[direction, frame["id"]] = (frame["method"], revision)
                yield revision, frame, None, direction
                continue
            # An error without an id answers what could not be read, in what was spoken then.
            method, said = asked.get((BACK[direction], frame.get("id")), (None, revision))
            if method == "initialize" and "result" in frame:
                revision = said = frame["result"]["protocolVersion"]
            yield said, frame, method, direction

    def check(self) -> list[str]:
        """Raises SpecViolation for a frame of ours that is wrong; returns the faults of the peer's."""
        faults: list[str] = []
        for revision, frame, method, direction in self.replayed():
            ours = direction == self._ours
            try:
                others = self._extended or not ours
                validate_frame(revision, frame, method, direction, exact=ours, others=others)
            except (SpecViolation, ValueError) as exc:
                if ours:
                    raise SpecViolation(f"{exc}\n{json.dumps(frame)[:2000]}") from exc
                faults.append(f"{exc} in {json.dumps(frame)[:500]}")
        return faults


def spoken(frame: Any) -> str | None:
    """The revision that a request names itself."""
    params = frame.get("params", {})
    if frame["method"] == "initialize":
        return params["protocolVersion"]
    return params.get("_meta", {}).get(VERSION_KEY)
