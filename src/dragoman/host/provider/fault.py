"""What went wrong between us and a model's server: one error that says who, what, and what to do.

No key, no header and no history is ever in its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, Final, cast

import msgspec

from dragoman.errors import LocalError
from dragoman.host.models.base import Api, Failed
from dragoman.transports.http_fault import clean

_SHOWN: Final = 400  # characters of what a server says
_BEGINNING: Final = 6  # characters of a key: servers show this much of one that they do not take
_AGAIN: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# What comes with 429 and does not pass by waiting.
_SPENT: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
# What breaks off a stream and may be otherwise the next time.
_PASSING: Final = frozenset(
    """
    overloaded_error api_error rate_limit_error timeout_error server_error rate_limit_exceeded
    unavailable internal deadline_exceeded resource_exhausted 429 500 502 503 504 529
    """.split()
)
_HINTS: Final[Mapping[int, str]] = {
    400: "the request was understood and refused: what the server says names the member",
    402: "the account with the provider: it has nothing left to pay with",
    403: "whether this key may use this model",
    404: "the spelling of the model's name, and the base URL",
    405: "the base URL: there is a server, but not of this API",
    413: "a shorter conversation: the request is longer than the server takes",
    422: "the request was understood and refused: what the server says names the member",
    429: "again later, or a higher limit with the provider",
}


class ModelError(LocalError):
    """A model did not answer.

    `status` is the HTTP status, None where there was none; `code` what the API calls it. `passing` is
    true where the same request may be answered another time, `retry_after` the seconds after which the
    server wants to be asked again, if it said so.
    """

    def __init__(self, message: str, *, server: str, hint: str | None = None) -> None:
        super().__init__(message, server=server, stage="call", hint=hint)
        self.status: int | None = None
        self.code: str | None = None
        self.passing = False
        self.retry_after: float | None = None


class Cover:
    """Takes out of texts what must not be shown: the key, and what looks like the beginning of it."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets

    def __call__(self, text: str) -> str:
        """The text without it, on one line, and not too long."""
        covered = clean(text, self._secrets)
        words = covered.split()
        begins = tuple(secret[:_BEGINNING] for secret in self._secrets if len(secret) > 2 * _BEGINNING)
        if begins:
            words = ["[...]" if word.strip("'\"(.,:").startswith(begins) else word for word in words]
        line = " ".join(words)
        return line if len(line) <= _SHOWN else line[:_SHOWN] + "..."


def refused(
    api: Api, status: int, *, server: str, headers: Mapping[str, str], body: bytes, cover: Cover
) -> ModelError:
    """The error for an answer with an HTTP status that is none of success."""
    failed = _failed(api, body)
    said = failed.text if failed is not None else body.decode("utf-8", "replace")
    code = failed.code if failed is not None else None
    text = f"HTTP {status}" + (f" ({cover(code)})" if code else "")
    if said.strip():
        text += f": {cover(said)}"
    error = ModelError(text, server=server, hint=_hint(api, status))
    error.status, error.code = status, code
    error.passing = status in _AGAIN and code not in _SPENT
    told = headers.get("x-should-retry")
    if told in ("true", "false"):  # what the providers' own clients go by
        error.passing = told == "true"
    error.retry_after = retry_after(headers)
    return error


def broken_off(failed: Failed, *, server: str, cover: Cover) -> ModelError:
    """The error for a stream, or an answer, that is an error of the API's own."""
    code = f" ({cover(failed.code)})" if failed.code else ""
    error = ModelError(f"the answer broke off with an error{code}: {cover(failed.text)}", server=server)
    error.code = failed.code
    error.passing = failed.code.lower() in _PASSING
    return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds after which the server wants to be asked again: in seconds, milliseconds or as a date."""
    millis = headers.get("retry-after-ms", "").strip()
    if (found := _number(millis)) is not None:
        return found / 1000
    told = headers.get("retry-after", "").strip()
    if (found := _number(told)) is not None:
        return found
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time())
    except (TypeError, ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _failed(api: Api, body: bytes) -> Failed | None:
    try:
        value: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    if isinstance(value, list):  # Gemini's form where a stream was asked for
        parts = cast("list[object]", value)
        value = parts[0] if parts else None
    return api.error(cast("dict[str, Any]", value)) if isinstance(value, dict) else None


def _hint(api: Api, status: int) -> str | None:
    if 300 <= status < 400:
        return "the base URL: the server points elsewhere, and redirects are not followed"
    if status == 401:
        return f"a key for {api.name} that the server takes, in the environment"
    if status >= 500:
        return "again later: the provider's server failed or has too much to do"
    return _HINTS.get(status)
