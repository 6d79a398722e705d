"""State that outlives a request: kv, log, bus and queue behind one interface, and the engines that keep it.

What is imported from here costs next to nothing; `SQLiteStore` stands in `dragoman.stores.sqlite`, which
loads sqlite3. Nothing here knows what the bytes mean.
"""

from __future__ import annotations

from .base import (
    KV,
    Bus,
    Entry,
    Job,
    LeaseLost,
    Log,
    Message,
    Queue,
    Record,
    Store,
    StoreError,
    Subscription,
)
from .memory import MemoryStore

__all__ = [
    "KV",
    "Bus",
    "Entry",
    "Job",
    "LeaseLost",
    "Log",
    "MemoryStore",
    "Message",
    "Queue",
    "Record",
    "Store",
    "StoreError",
    "Subscription",
]
