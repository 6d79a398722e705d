"""The protocol revisions that are spoken here, oldest first. A new one is a module and a name in the list."""

from __future__ import annotations

from dragoman.revisions import r2024_11_05, r2025_03_26, r2025_06_18, r2025_11_25, r2026_07_28
from dragoman.revisions.base import Caller, HttpRules, Method, Revision

REVISIONS = (
    r2024_11_05.REVISION,
    r2025_03_26.REVISION,
    r2025_06_18.REVISION,
    r2025_11_25.REVISION,
    r2026_07_28.REVISION,
)
BY_VERSION = {revision.version: revision for revision in REVISIONS}
LATEST = REVISIONS[-1]
HANDSHAKE = [revision for revision in REVISIONS if revision.handshake][-1]  # the newest with `initialize`
STATELESS = {revision.version: revision for revision in REVISIONS if not revision.handshake}

__all__ = [
    "BY_VERSION",
    "HANDSHAKE",
    "LATEST",
    "REVISIONS",
    "STATELESS",
    "Caller",
    "HttpRules",
    "Method",
    "Revision",
]
