"""Middleware that is ready to use: `Server(middleware=[Logs(), RateLimit(10)])`, the first outermost."""

from __future__ import annotations

from dragoman.server.layers.cache import Cache
from dragoman.server.layers.concurrency import Concurrency
from dragoman.server.layers.logs import JsonFormatter, Logs
from dragoman.server.layers.rate import RateLimit
from dragoman.server.layers.size import ResponseLimit
from dragoman.server.layers.subject import RATE_LIMITED, RESPONSE_TOO_LARGE, TOO_BUSY
from dragoman.server.layers.telemetry import Telemetry
from dragoman.server.layers.timeout import Timeout
from dragoman.server.layers.timing import Timed, Timing

__all__ = [
    "RATE_LIMITED",
    "RESPONSE_TOO_LARGE",
    "TOO_BUSY",
    "Cache",
    "Concurrency",
    "JsonFormatter",
    "Logs",
    "RateLimit",
    "ResponseLimit",
    "Telemetry",
    "Timed",
    "Timeout",
    "Timing",
]
