"""Cassettes: what crossed a wire, one JSON line a frame, and what of it belongs together.

Reading and writing files is all the I/O here; who plays a cassette is elsewhere.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.errors import UsageError
from dragoman.revisions import BY_VERSION, Revision
from dragoman.schema.shapes import is_object
from dragoman.testing.redaction import Redaction

log = logging.getLogger("dragoman.testing")

Direction: TypeAlias = Literal["in", "out"]

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"


class Frame(Struct, omit_defaults=True):
    """One message as it crossed the wire.

    `t` is seconds since the recording began. `dir` is as the client sees it: `"out"` went to the server,
    `"in"` came from it. `frame` is the message, or `text` the line that was no JSON.
    """

    t: float
    dir: Direction
    frame: Any = UNSET
    text: str | UnsetType = UNSET

    @property
    def message(self) -> dict[str, Any]:
        """The message as an object; empty for what is none."""
        return self.frame if is_object(self.frame) else {}


_read: Final = msgspec.json.Decoder(Frame).decode
_encode: Final = msgspec.json.Encoder().encode


class Recorder:
    """Writes a cassette: a `tap` for `Client`, called with `"out"` or `"in"` and each frame.

    Frames are redacted before they are written, and written at once, so that a program that is killed
    leaves all but what it was just writing::

        with Recorder("orders.jsonl") as tap:
            async with Client(target, tap=tap) as client: ...
    """

    def __init__(
        self,
        path: Path | str,
        *,
        redaction: Redaction | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redact = Redaction() if redaction is None else redaction
        self._clock = clock
        self._began: float | None = None
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb", buffering=0)
        except OSError as exc:
            raise UsageError(f"{path}: cannot be written: {exc.strerror}") from None

    def __call__(self, direction: Direction, frame: bytes) -> None:
        """Record one frame; nothing after `close`."""
        if self._file.closed:
            return
        now = self._clock()
        if self._began is None:
            self._began = now
        entry = Frame(round(now - self._began, 6), direction)
        try:
            entry.frame = self._redact(msgspec.json.decode(frame))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            entry.text = self._redact.text(frame.decode("utf-8", "backslashreplace"))
        try:
            self._file.write(_encode(entry) + b"\n")
        except OSError as exc:  # a tap must not raise: what is tapped goes on, and the recording ends here
            log.warning("%s: the recording ends here: %s", self.path, exc.strerror)
            self.close()

    def close(self) -> None:
        """Nothing is recorded any more. Any number of times."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True, eq=False)
class Exchange:
    """One recorded request of the client's, and what came of it.

    `meanwhile` are the notifications and requests that the server sent for it; `response` is None where
    the recording ended first, or the request was cancelled.
    """

    method: str
    id: Any
    params: dict[str, Any]
    response: dict[str, Any] | None = None
    meanwhile: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    answers: dict[Any, dict[str, Any]] = field(default_factory=dict[Any, dict[str, Any]])

    @property
    def arguments(self) -> dict[str, Any]:
        """The params without `_meta`."""
        return without_meta(self.params)

    @property
    def token(self) -> Any:
        """The progress token of the request, or None."""
        meta = self.params.get("_meta")
        return meta.get("progressToken") if is_object(meta) else None


@dataclass(frozen=True, slots=True)
class Cassette:
    """A recording: its frames in order, and what they amount to."""

    frames: tuple[Frame, ...]
    name: str = "cassette"

    @classmethod
    def load(cls, path: Path | str) -> Cassette:
        """Read a file.

        Raises:
            UsageError: it cannot be read, or a line is no frame; says which.
        """
        path = Path(path)
        try:
            lines = path.read_bytes().split(b"\n")
        except OSError as exc:
            raise UsageError(f"{path}: cannot be read: {exc.strerror}") from None
        frames: list[Frame] = []
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                frames.append(_read(line))
            except (msgspec.DecodeError, UnicodeDecodeError) as exc:
                if number == len(lines):
                    continue  # the last line, cut off where the recording was stopped
                raise UsageError(f"{path}:{number}: no frame of a cassette: {exc}") from None
        return cls(tuple(frames), path.stem)

    @classmethod
    def of(cls, frames: Iterable[tuple[Direction, bytes]], name: str = "cassette") -> Cassette:
        """One from frames of a tap, as they are."""
        read = [Frame(0.0, direction, msgspec.json.decode(frame)) for direction, frame in frames]
        return cls(tuple(read), name)

    def exchanges(self) -> list[Exchange]:
        """The client's requests in their order, each with what belongs to it."""
        sorter = _Sorter()
        for frame in self.frames:
            if frame.dir == "out":
                sorter.sent(frame.message)
            else:
                sorter.received(frame.message)
        return sorter.made

    @property
    def revision(self) -> Revision | None:
        """The revision that was spoken; None where nothing says so."""
        found: Revision | None = None
        for exchange in self.exchanges():
            result = (exchange.response or {}).get("result")
            if exchange.method == "initialize" and is_object(result):
                return BY_VERSION.get(str(result.get("protocolVersion")), found)
            meta = exchange.params.get("_meta")
            if is_object(meta) and VERSION_KEY in meta and is_object(result):
                found = BY_VERSION.get(str(meta[VERSION_KEY]), found)
        return found


def _key(id_: Any) -> bytes:
    return _encode(id_)  # 1 and "1" are two ids


class _Sorter:
    """Finds out which messages belong together."""

    def __init__(self) -> None:
        self.made: list[Exchange] = []
        self._open: dict[Any, Exchange] = {}  # requests of the client's, by id
        self._asked: dict[Any, Exchange] = {}  # requests of the server's, by id, with what they belong to

    def sent(self, message: dict[str, Any]) -> None:
        """The client sent it."""
        method, id_ = message.get("method"), message.get("id")
        if not isinstance(method, str):
            owner = self._asked.pop(_key(id_), None)
            if owner is not None:
                owner.answers[id_] = message
        elif "id" in message:
            params = message.get("params")
            exchange = Exchange(method, id_, params if is_object(params) else {})
            self.made.append(exchange)
            self._open[_key(id_)] = exchange

    def received(self, message: dict[str, Any]) -> None:
        """The server sent it."""
        id_ = message.get("id")
        if not isinstance(message.get("method"), str):
            exchange = self._open.pop(_key(id_), None)
            if exchange is not None:
                exchange.response = message
            return
        owner = self._owner(message)
        if owner is not None:
            owner.meanwhile.append(message)
            if "id" in message:
                self._asked[_key(id_)] = owner

    def _owner(self, message: dict[str, Any]) -> Exchange | None:
        """The request that a notification or a request of the server belongs to."""
        params = message.get("params")
        token = params.get("progressToken") if is_object(params) else None
        for exchange in self._open.values():
            if token is not None and exchange.token == token:
                return exchange
        if self._open:
            return next(reversed(self._open.values()))
        return self.made[-1] if self.made else None


def without_meta(params: dict[str, Any]) -> dict[str, Any]:
    """The params without `_meta`, which says who asks and not what."""
    return {name: value for name, value in params.items() if name != "_meta"}


def raw(value: Any) -> Raw:
    """A JSON value, encoded."""
    return Raw(_encode(value))
