"""What went wrong, as a command tells it: the exit status, one JSON object, or lines for a person.

It reads exceptions and nothing else, and writes nowhere.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from dragoman.errors import (
    ClosedError,
    DeadlineError,
    DragomanError,
    LocalError,
    NegotiationError,
    PeerFault,
    RemoteError,
    UsageError,
    exit_text,
)
from dragoman.jsonrpc.message import METHOD_NOT_FOUND
from dragoman.model import MISSING_REQUIRED_CLIENT_CAPABILITY
from dragoman.schema.shapes import is_object

DONE: Final = 0
TOOL: Final = 1
USAGE: Final = 2
PROTOCOL: Final = 3
CONNECT: Final = 4
DENIED: Final = 5

# What the library calls `timeout=` or `protocol='auto'` is `--timeout` or `--protocol auto` here.
_TIMEOUT: Final = re.compile(r"\b(?:connect_|idle_)?timeout=(?=$|[ ,:])")
_PROTOCOL: Final = re.compile(r"\bprotocol='([^']*)'")
# A program started here has the environment of the command, where a configuration has one for each server.
_ENV: Final = "set PATH in the server's env"

_DENYING: Final = frozenset({401, 403})  # HTTP statuses


class ToolFailed(DragomanError):
    """The tool answered with `isError`; `result` is what it answered, as on the wire."""

    def __init__(self, text: str, result: dict[str, Any]) -> None:
        super().__init__(text)
        self.text = text
        self.result = result


class FileFault(UsageError):
    """The user's file has no server, or raised when it was imported; the program that tried has said so."""


_BEFORE: Final = frozenset({"spawn", "connect", "probe", "initialize"})  # stages without a server yet
_OWN: Final = "dragoman: "
_TRY: Final = "  try: "


def own(error: DragomanError) -> DragomanError:
    """The error itself, or what `dragoman run` said before it ended, where it was that which was started.

    To the one who named a file it makes no difference that another process looked into it.
    """
    if not isinstance(error, ClosedError) or error.exit_status != USAGE or error.stage not in _BEFORE:
        return error
    hint: str | None = None
    for line in reversed(error.stderr_tail):
        if line.startswith(_OWN):
            return FileFault(
                line.removeprefix(_OWN), server=error.server, stderr_tail=error.stderr_tail, hint=hint
            )
        hint = line.removeprefix(_TRY) if line.startswith(_TRY) else None
    return error


def status(error: DragomanError) -> int:
    """The exit status for it."""
    return _STATUS[kind(error)]


def kind(error: DragomanError) -> str:
    """One word for it: `tool`, `usage`, `protocol`, `denied`, `deadline`, `connect`."""
    if isinstance(error, ToolFailed):
        return "tool"
    if isinstance(error, UsageError):
        return "usage"
    if isinstance(error, RemoteError | PeerFault | NegotiationError) or not isinstance(error, LocalError):
        return "protocol"
    if getattr(error, "status", None) in _DENYING:  # an HTTP status
        return "denied"
    return "deadline" if isinstance(error, DeadlineError) else "connect"


_STATUS: Final = {
    "tool": TOOL,
    "usage": USAGE,
    "protocol": PROTOCOL,
    "denied": DENIED,
    "deadline": CONNECT,
    "connect": CONNECT,
}


def record(error: DragomanError) -> dict[str, Any]:
    """The error as the `error` member of an envelope; members that are not known are left out."""
    told: dict[str, Any] = {"kind": kind(error), "message": str(error)}
    if isinstance(error, ToolFailed):
        told["result"] = error.result
    elif isinstance(error, RemoteError):
        told["message"], told["code"] = error.message, error.code
        more = {"data": error.data, "hint": _advice(error)}
        told |= {name: value for name, value in more.items() if value is not None}
    elif isinstance(error, LocalError):
        told["message"] = error.message
        for name in ("server", "stage", "status", "exit_status", "hint"):
            value = _hint(error) if name == "hint" else getattr(error, name, None)
            if value is not None:
                told["http_status" if name == "status" else name] = value
        if error.stderr_tail:
            told["stderr_tail"] = list(error.stderr_tail)
    return told


def lines(error: DragomanError) -> list[str]:
    """The error for a person, the most important line first.

    What a program said on stderr before it ended is not repeated: it went to our stderr as it came. There
    are no lines at all where that was everything.
    """
    if isinstance(error, ToolFailed):
        return [error.text or "the tool failed and did not say why"]
    if isinstance(error, RemoteError):
        data = [] if error.data is None else [f"  data: {msgspec.json.encode(error.data).decode()}"]
        hint = _advice(error)
        tail = [f"{_TRY}{hint}"] if hint else []
        return [f"the server answered with error {error.code}: {error.message}", *data, *tail]
    if not isinstance(error, LocalError):
        return [str(error)]
    return [] if isinstance(error, FileFault) else _local(error)


def _advice(error: RemoteError) -> str | None:
    """What to try where the server does not have it, or wants to ask what nobody is there to answer."""
    if error.code == METHOD_NOT_FOUND:
        return "dragoman discover shows what the server offers"
    needs = error.data.get("requiredCapabilities") if is_object(error.data) else None
    if error.code == MISSING_REQUIRED_CLIENT_CAPABILITY and is_object(needs) and "elicitation" in needs:
        return "run it on a terminal, where you can answer what the server asks"
    return None


def _local(error: LocalError) -> list[str]:
    where = error.server or ""
    if error.step:
        where = f"{where} ({error.step})" if where else error.step
    first = f"{where}: {error.message}" if where else error.message
    if error.exit_status is not None:
        first += f" ({exit_text(error.exit_status)})"
    hint = _hint(error)
    return [first, f"  try: {hint}"] if hint else [first]


def _hint(error: LocalError) -> str | None:
    """What to try, with the command's options where the library names its keywords."""
    if error.hint is None:
        return None
    told = _PROTOCOL.sub(r"--protocol \1", _TIMEOUT.sub("--timeout", error.hint))
    return told.replace(_ENV, "change PATH")
