"""The trace of a host: what a model asked, what was decided, what was sent, what came back.

Lines are written by `Trace` and read again by `reading`; nothing here knows a client or a model.
"""

from __future__ import annotations

from dragoman.host.trace.large import Limits
from dragoman.host.trace.place import usual_place
from dragoman.host.trace.redaction import HIDDEN, Redact, Redaction, cover, redact
from dragoman.host.trace.writer import By, Entry, Trace, describe

__all__ = [
    "HIDDEN",
    "By",
    "Entry",
    "Limits",
    "Redact",
    "Redaction",
    "Trace",
    "cover",
    "describe",
    "redact",
    "usual_place",
]
