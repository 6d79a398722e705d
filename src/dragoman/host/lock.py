"""The lock: what each server's tools were when a person looked at them, in a file that is read and compared.

A tool that is not as it was is not called (`Lock.check`). Pure but for `read_lock` and `write_lock`; what
differs is told by `change`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman.errors import UsageError
from dragoman.host.atomic import replacing
from dragoman.host.change import Change, changes, worst
from dragoman.host.definition import parts
from dragoman.host.regular import read_regular
from dragoman.model import Tool
from dragoman.schema.shapes import is_object

FILE: Final = "dragoman.lock.json"
"""The lock's name, where none is given."""
VERSION: Final = 1
_LARGEST: Final = 64 * 1024 * 1024
_FEW: Final = 3  # changes that a refusal names

Pin: TypeAlias = Mapping[str, Any]
"""What is locked of a tool, in the wire form of `tools/list`, without its name."""
State: TypeAlias = Literal["same", "changed", "new", "gone"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one tool stands to the lock. `changes` are those of a tool that `changed`."""

    server: str
    tool: str
    state: State
    changes: tuple[Change, ...] = ()

    @property
    def breaking(self) -> bool:
        """Whether calls that were right may now fail or do something else."""
        return self.state == "gone" or worst(self.changes) == "breaking"


@dataclass(frozen=True, slots=True)
class Lock:
    """Pins by server and tool. A server that is not in it is not held to anything."""

    servers: Mapping[str, Mapping[str, Pin]] = field(default_factory=dict[str, Mapping[str, Pin]])

    def check(self, server: str, tool: Tool) -> str | None:
        """Why a tool may not be called, None if it is what it was: `HostOptions.lock` asks this."""
        pins = self.servers.get(server)
        if pins is None:
            return None
        pin = pins.get(tool.name)
        if pin is None:
            return f"{tool.name!r} of {server!r} was not there when the lock was written"
        now = parts(tool)
        if digest(pin) == digest(now):
            return None
        found = changes(pin, now)
        told = "; ".join(f"{change.place}: {change.text}" for change in found[:_FEW])
        more = f"; and {len(found) - _FEW} more" if len(found) > _FEW else ""
        return f"{tool.name!r} of {server!r} changed since it was locked: {told}{more}"

    def compare(self, server: str, tools: Iterable[Tool]) -> list[Comparison]:
        """How each tool of a server stands, those that are gone too, by name."""
        pins = self.servers.get(server, {})
        now = {tool.name: parts(tool) for tool in tools}
        return [_stand(server, name, was=pins.get(name), now=now.get(name)) for name in sorted({*pins, *now})]

    def with_(self, server: str, tools: Iterable[Tool]) -> Lock:
        """The lock with a server's tools as they are now."""
        return Lock({**self.servers, server: {tool.name: parts(tool) for tool in tools}})

    def without(self, server: str) -> Lock:
        """The lock that does not know a server."""
        return Lock({name: pins for name, pins in self.servers.items() if name != server})


def digest(pin: Pin) -> str:
    """The SHA-256 of a pin, 64 hexadecimal digits; the order of members does not matter."""
    return sha256(msgspec.json.encode(pin, order="deterministic")).hexdigest()


def _stand(server: str, name: str, *, was: Pin | None, now: Pin | None) -> Comparison:
    if was is None:
        return Comparison(server, name, "new")
    if now is None:
        return Comparison(server, name, "gone")
    if digest(was) == digest(now):
        return Comparison(server, name, "same")
    # What does not mean anything else is a change all the same: of the order of alternatives, say.
    found = changes(was, now) or [Change("", "text", "written in another way")]
    return Comparison(server, name, "changed", tuple(found))


# The file -------------------------------------------------------------------------------------------------


def read_lock(path: Path | str) -> Lock:
    """Read a lock.

    Raises:
        UsageError: there is none, it cannot be read, or it is no lock; the error says what to do.
    """
    path = Path(path)
    try:
        data = read_regular(path, most=_LARGEST)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such lock: `dragoman lock` writes one") from None
    except OSError as exc:
        raise UsageError(f"{path}: the lock cannot be read: {exc.strerror}") from None
    except ValueError as exc:
        raise UsageError(f"{path}: the lock cannot be read: {exc}") from None
    try:
        return _parse(data)
    except ValueError as exc:
        raise UsageError(f"{path}: {exc}") from None


def _parse(data: bytes) -> Lock:
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ValueError(f"no JSON: {exc}") from None
    if not is_object(body) or body.get("version") != VERSION:
        version = body.get("version") if is_object(body) else None
        raise ValueError(f"`version`: expected {VERSION}; received {version!r}")
    return Lock({server: dict(_pins(server, entry)) for server, entry in _object(body, "servers").items()})


def _pins(server: str, entry: Any) -> Iterator[tuple[str, Pin]]:
    place = f"servers.{server}"
    if not is_object(entry):
        raise ValueError(f"`{place}`: expected an object")
    for name, pin in _object(entry, "tools", place=f"{place}.").items():
        if not is_object(pin):
            raise ValueError(f"`{place}.tools.{name}`: expected an object")
        body = {member: value for member, value in pin.items() if member != "digest"}
        if pin.get("digest") != digest(body):
            raise ValueError(
                f"`{place}.tools.{name}`: `digest` is not that of the entry: it was edited by hand;"
                " look at it, and write it anew with `dragoman lock --update`"
            )
        yield name, body


def _object(value: Mapping[str, Any], name: str, *, place: str = "") -> Mapping[str, Any]:
    found = value.get(name)
    if not is_object(found):
        raise ValueError(f"`{place}{name}`: expected an object")
    return found


def written(lock: Lock) -> bytes:
    """The text of a lock: sorted and a line a member, so that a change of a tool is a change of its lines."""
    servers = {
        server: {"tools": {name: {"digest": digest(pin), **pin} for name, pin in sorted(pins.items())}}
        for server, pins in sorted(lock.servers.items())
    }
    body = {"version": VERSION, "servers": servers}
    return msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"


def write_lock(path: Path | str, lock: Lock) -> None:
    """Write a lock, whole or not at all. A link stays one, and a file keeps its mode.

    Raises:
        UsageError: it cannot be written.
    """
    path = Path(path)
    target = path.resolve() if path.is_symlink() else path
    try:
        with replacing(target, mode=target.stat().st_mode & 0o777 if target.exists() else None) as file:
            file.write(written(lock))
    except OSError as exc:
        raise UsageError(f"{path}: the lock cannot be written: {exc.strerror}") from None
