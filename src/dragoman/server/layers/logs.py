"""A log line for every call, by the standard library's `logging`, and a formatter that writes JSON."""

from __future__ import annotations

import logging
import traceback
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from dragoman.server.layers.timing import Timed, Timing

_LEVELS: Final = {"refused": logging.WARNING, "tool_error": logging.WARNING, "failed": logging.ERROR}
_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class Logs(Timing):
    """Logs every call once it is over, with the members of `Timed` as extra fields of the record.

    `logger` is the name of a logger. What went well is logged at `level`, tool errors and refusals
    as warnings, failures inside the server as errors. Arguments and results are not logged.
    """

    def __init__(self, logger: str = "dragoman.calls", *, level: int = logging.INFO) -> None:
        super().__init__(self._log)
        self._logger = logging.getLogger(logger)
        self._level = level

    def _log(self, timed: Timed) -> None:
        level = _LEVELS.get(timed.outcome, self._level)
        if self._logger.isEnabledFor(level):
            fields = {f"mcp_{name}": value for name, value in msgspec.structs.asdict(timed).items()}
            # A client chose the subject: it must not begin a line of its own.
            named = "" if not timed.subject else f" {timed.subject.encode('unicode_escape').decode()}"
            code = f" {timed.code}" if timed.code is not None else ""
            said = (timed.method, named, timed.outcome, code, timed.seconds * 1000)
            self._logger.log(level, "%s%s: %s%s, %.1f ms", *said, extra=fields)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, the record's extra fields, exception.

    For any logger: `handler.setFormatter(JsonFormatter())`. A value that JSON has no word for is
    written as its `str`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in record.__dict__.items() if name not in _OWN}
        if record.exc_info:
            line["exception"] = "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return _encode(line)


def _encode(line: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=str).decode()
    except (TypeError, ValueError, RecursionError):
        plain = {name: value if isinstance(value, str) else repr(value) for name, value in line.items()}
        return msgspec.json.encode(plain).decode()
