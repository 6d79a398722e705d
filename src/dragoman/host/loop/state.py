"""Where a run of the loop stands, as a record that goes through JSON: what it takes to go on elsewhere.

It holds what was said and called, and no connection, no key and no permission: those are looked up anew.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

import msgspec

from dragoman.errors import UsageError
from dragoman.host.atomic import PRIVATE, replacing
from dragoman.host.locking import locked
from dragoman.host.models.base import Item, ToolUse, Usage
from dragoman.host.regular import read_regular

VERSION: Final = 1
_LARGEST: Final = 1 << 30  # bytes

CallState: TypeAlias = Literal["waiting", "started", "sent", "answered"]
"""`started`: being looked at, nothing left this machine; `sent`: the server has it, the answer is missing."""


class Call(msgspec.Struct, kw_only=True):
    """One call of the last message. `name` is the name on the wire; `block` its answer once there is one."""

    id: str
    name: str
    arguments: dict[str, Any]
    shown: str
    raw: str | None = None
    fault: str | None = None
    state: CallState = "waiting"
    block: dict[str, Any] | None = None

    @property
    def use(self) -> ToolUse:
        """The call as the API has it."""
        return ToolUse(self.id, self.name, self.arguments, self.raw, self.fault)


class RunState(msgspec.Struct, kw_only=True):
    """A conversation: the `history` in the form of `api`, counts so far, and calls that wait for an answer.

    `found` are tools that the model has searched for. `ended`: the model has had its last word. Counts are
    of the whole conversation, over all runs.
    """

    api: str
    model: str
    system: str | None = None
    history: list[Item] = []
    calls: list[Call] = []
    found: list[str] = []
    rounds: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    ended: bool = False
    version: int = VERSION

    @property
    def usage(self) -> Usage:
        """Tokens so far."""
        return Usage(self.input, self.output, self.cached)

    def dump(self) -> bytes:
        """The record as JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def read(cls, data: bytes | str, *, source: str = "state") -> Self:
        """The record from its JSON. Raises UsageError where it is none, or of a version not known here."""
        try:
            state = msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, RecursionError) as exc:
            raise UsageError(f"{source}: no state of a run: {exc}") from None
        if state.version != VERSION:
            raise UsageError(f"{source}: expected a state of version {VERSION}; received {state.version}")
        return state

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """The record from a file. Raises UsageError where there is none in it."""
        try:
            data = read_regular(Path(path), most=_LARGEST)
        except OSError as exc:
            raise UsageError(f"{path}: {exc.strerror}") from None
        except ValueError as exc:
            raise UsageError(f"{path}: {exc}") from None
        return cls.read(data, source=str(path))


def saver(path: Path | str) -> Callable[[RunState], None]:
    """A `save=` that keeps a file up to date: whole at every moment, readable by its owner alone.

    Of two runs that go on from one file, the one that saves first goes on; the other ends with UsageError
    before it sends a call, for what the file says is then no more what it knows.
    """
    target = Path(path)
    seen = _mark(target)

    def save(state: RunState) -> None:
        nonlocal seen
        try:
            with _alone(target.parent):
                if _mark(target) not in (None, seen):
                    text = f"{target}: another run has gone on from this state meanwhile"
                    raise UsageError(text, hint="to let one end before the next begins")
                with replacing(target, mode=PRIVATE, durable=False) as file:
                    file.write(state.dump())
                seen = _mark(target)
        except OSError as exc:
            raise UsageError(f"{target}: the state of the run could not be saved: {exc.strerror}") from None

    return save


def _mark(path: Path) -> tuple[int, int, int] | None:
    """What a file is known again by, None where there is none."""
    try:
        known = path.stat()
    except OSError:
        return None
    return known.st_ino, known.st_mtime_ns, known.st_size


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """One at a time among all processes that save into a folder. Windows opens none, and has no lock."""
    number = -1 if sys.platform == "win32" else os.open(folder, os.O_RDONLY)
    try:
        with locked(number):
            yield
    finally:
        if number >= 0:
            os.close(number)
