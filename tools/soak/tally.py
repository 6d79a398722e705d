"""What became of each call, and what of it may not be. It calls nothing and starts nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from dragoman.errors import (
    ClosedError,
    ConnectError,
    DeadlineError,
    DragomanError,
    HttpError,
    LocalError,
    PeerFault,
    RemoteError,
)

from .faults import (
    CLOSED,
    CONNECT,
    DEADLINE,
    NEIGHBOURS,
    OUTCOMES,
    PEER,
    REMOTE,
    RESULT,
    STATUS,
    TOOL_ERROR,
    Fault,
)
from .fleet import Place

_KINDS: Final[tuple[tuple[type[DragomanError], str], ...]] = (
    (RemoteError, REMOTE),
    (HttpError, STATUS),
    (PeerFault, PEER),
    (DeadlineError, DEADLINE),
    (ClosedError, CLOSED),
    (ConnectError, CONNECT),
)
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its number, its server, whether it may come twice, and the fault that it asks for."""

    number: int
    place: Place
    safe: bool
    fault: Fault | None

    @property
    def fault_name(self) -> str:
        """Of the fault; empty where nothing is to break."""
        return "" if self.fault is None else self.fault.name


@dataclass
class Tally:
    """Counts by server, fault and end, and what is wrong in words; three bytes are kept for each call."""

    total: int
    ends: bytearray = field(init=False)  # 0, or the place of the end in OUTCOMES and 1
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    wrong: Counter[str] = field(default_factory=Counter[str])
    longest: float = 0.0
    begun: int = 0
    ended: int = 0
    _safe: bytearray = field(init=False)
    _at: bytearray = field(init=False)
    _places: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.ends, self._safe, self._at = (bytearray(self.total) for _ in range(3))

    # One call ------------------------------------------------------------------------------------

    def begin(self, call: Call) -> None:
        """The call is made."""
        self.begun += 1
        self._safe[call.number] = call.safe
        self._at[call.number] = self._places.setdefault(call.place.name, len(self._places))

    def answered(self, call: Call, text: str, *, failed: bool) -> None:
        """The call ended with a result."""
        expected = f"{call.place.name} {call.number}"
        if text.split(" \u2028", maxsplit=1)[0] != expected:
            self._complain(f"the answer of another call: expected {expected!r}, received {text!r}")
        if call.fault_name == "separators" and not text.endswith("\u2028\u2029\x85 서울"):
            self._complain(f"a changed text: {text!r}")
        self._end(call, TOOL_ERROR if failed else RESULT)

    def failed(self, call: Call, error: BaseException) -> None:
        """The call ended with an exception."""
        name = next((name for kind, name in _KINDS if isinstance(error, kind)), None)
        if name is None:
            self._complain(f"an exception that is none of the package's: {type(error).__name__}: {error}")
            name = CLOSED
        elif isinstance(error, LocalError):
            if error.server != call.place.name or not error.stage or not error.message:
                self._complain(
                    f"an error that does not say where: {type(error).__name__}, server {error.server!r}, "
                    f"stage {error.stage!r}: {error.message!r}"
                )
        # A call is sent again once: one whose second session is lost as well is told so.
        twice = isinstance(error, HttpError) and error.session_ended
        self._end(call, name, said=str(error), beside=twice or name in NEIGHBOURS)

    def _end(self, call: Call, name: str, *, said: str = "", beside: bool = False) -> None:
        if self.ends[call.number]:
            self._complain("a call ended twice")
        self.ended += 1
        self.ends[call.number] = OUTCOMES.index(name) + 1
        self.counts[call.place.name, call.fault_name, name] += 1
        may = {RESULT} if call.fault is None else call.fault.ends
        # One that may come twice may have its answer from a server that has met the fault before.
        may = may | {RESULT} if call.safe else may
        if name not in may and not beside:
            self._complain(f"a call with the fault {call.fault_name or 'none'!r} ended with {name}: {said}")

    def _complain(self, what: str) -> None:
        if what in self.wrong or len(self.wrong) < _SHOWN:
            self.wrong[what] += 1
        else:
            self.wrong["and others"] += 1

    # All of them ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Look for calls that did not end."""
        lost = self.ends.count(0)
        if lost:
            self.wrong["calls without an end"] += lost

    def compare(self, place: Place, worked: Iterable[int]) -> None:
        """Hold what a server says it worked on against what was called, and what was answered."""
        times = Counter(worked)
        for number, count in times.items():
            most = 2 if self._safe[number] else 1
            if count > most:
                self._complain(f"{count} times at {place.name}: a call that may come there {most} times")
        answered = OUTCOMES.index(RESULT) + 1
        for number, end in enumerate(self.ends):
            if end == answered and self._at[number] == self._places.get(place.name) and number not in times:
                self._complain(f"{place.name} answered a call that it never worked on")

    def sum(self, *, server: str | None = None, fault: str | None = None, end: str | None = None) -> int:
        """How many calls; None stands for all."""
        return sum(
            number
            for (at, broke, ended), number in self.counts.items()
            if server in (None, at) and fault in (None, broke) and end in (None, ended)
        )
