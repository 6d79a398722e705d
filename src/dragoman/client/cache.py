"""Results that a server said how long to keep, under what was asked, with which parameters, and by whom.

It has no clock and sends nothing: whoever looks says what time it is (2026-07-28, Caching).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from dragoman.errors import DeadlineError, HttpError, LocalError, PeerFault, RemoteError, UsageError
from dragoman.jsonrpc.message import INTERNAL_ERROR

STALE_IF_ERROR: Final = "stale-if-error"
MAX_ENTRIES: Final = 4096
_LONGEST: Final = 10**15  # ms, beyond which numbers are no times
_BUSY: Final = frozenset({408, 425, 429})  # HTTP statuses that pass, beside all from 500 up

CacheLike: TypeAlias = "bool | Literal['stale-if-error'] | Cache"


class AuthContext:
    """What authorises a client's requests, only to be compared; nothing shows what is in it."""

    __slots__ = ("_facts",)

    def __init__(self, *facts: Hashable) -> None:
        self._facts = facts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AuthContext) and self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self._facts)


@dataclass(slots=True)
class _Entry:
    value: Any
    until: float


class Cache:
    """The results themselves. One of them may serve several clients, each through a `Shelf` of its own.

    `stale_if_error`: what is not fresh any more is served where reading it anew fails for a reason that
    passes. At most `limit` results are kept; the one that was not asked for the longest goes first.
    """

    def __init__(self, *, stale_if_error: bool = False, limit: int = MAX_ENTRIES) -> None:
        self.stale_if_error = stale_if_error
        self._limit = limit
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._changes: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> _Entry | None:
        """What is kept under `key`, fresh or not."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: Hashable, value: Any, *, until: float) -> None:
        """Keep a value until that time."""
        self._entries[key] = _Entry(value, until)
        self._entries.move_to_end(key)
        while len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        """Keep it no longer."""
        self._entries.pop(key, None)

    def changed(self, server: Hashable, method: str, *, params: Hashable = None) -> None:
        """Whatever a server answered to `method` is stale from now on, or only that with these `params`."""
        place = (server, method)
        self._changes[place] = self._changes.get(place, 0) + 1
        for key, entry in self._entries.items():
            if key[:2] == place and params in (None, key[2]):  # type: ignore[index]  # keys are made by shelves
                entry.until = -inf

    def changes(self, server: Hashable, method: str) -> int:
        """How many times `changed` was called for it."""
        return self._changes.get((server, method), 0)


class Shelf:
    """One client's part of a cache: of one server, and under one authorisation.

    A `public` result is found by every client of the server, any other only under the same
    authorisation (Cache Scope Field).
    """

    def __init__(self, cache: Cache | None, *, server: Hashable, context: Hashable) -> None:
        self._cache = cache
        self._server = server
        self._context = context

    @classmethod
    def of(cls, cache: CacheLike, *, server: Hashable, context: Hashable) -> Shelf:
        """A shelf for the option `cache`: of a cache of its own, of one that is shared, or of none."""
        if isinstance(cache, Cache):
            return cls(cache, server=server, context=context)
        own = Cache(stale_if_error=cache == STALE_IF_ERROR) if cache else None
        return cls(own, server=server, context=context)

    def _keys(self, method: str, params: Hashable) -> tuple[Hashable, Hashable]:
        return (self._server, method, params, self._context), (self._server, method, params, None)

    def fresh(self, method: str, params: Hashable, *, now: float) -> Any:
        """The result, while it is fresh; else None."""
        if self._cache is None:
            return None
        for key in self._keys(method, params):
            entry = self._cache.get(key)
            if entry is not None and now < entry.until:
                return entry.value
        return None

    def stale(self, method: str, params: Hashable, *, fault: Exception) -> Any:
        """The result that may be served in place of `fault`, if that was asked for; else None."""
        if self._cache is None or not self._cache.stale_if_error or not _passes(fault):
            return None
        for key in self._keys(method, params):
            entry = self._cache.get(key)
            if entry is not None:
                return entry.value
        return None

    def mark(self, method: str) -> int:
        """To be taken before a result is asked for, and given to `keep`."""
        return 0 if self._cache is None else self._cache.changes(self._server, method)

    def keep(
        self,
        method: str,
        params: Hashable,
        *,
        value: Any,
        hints: tuple[int | UnsetType, str | UnsetType],
        now: float,
        mark: int,
    ) -> None:
        """Keep a result that came at `now`; `hints` are its `ttlMs` and `cacheScope`.

        One that was asked for before the last change is kept as a stale one.
        """
        if self._cache is None:
            return
        ttl, scope = hints
        private, public = self._keys(method, params)
        key, other = (public, private) if scope == "public" else (private, public)
        current = mark == self._cache.changes(self._server, method)
        if ttl is UNSET or ttl <= 0 or not current:
            until = -inf
        else:
            until = now + min(ttl, _LONGEST) / 1000
        self._cache.drop(other)
        if until == -inf and not self._cache.stale_if_error:
            self._cache.drop(key)
        else:
            self._cache.put(key, value, until=until)

    def changed(self, method: str, params: Hashable = None) -> None:
        """The server says that what it answered is another thing now."""
        if self._cache is not None:
            self._cache.changed(self._server, method, params=params)


def _passes(fault: Exception) -> bool:
    """Whether a fault says nothing of the result itself: the server is away or broken, and may come back."""
    if isinstance(fault, HttpError):
        return fault.status >= 500 or fault.status in _BUSY
    if isinstance(fault, RemoteError):
        return fault.code == INTERNAL_ERROR
    if isinstance(fault, DeadlineError):
        return True
    return isinstance(fault, LocalError) and not isinstance(fault, UsageError | PeerFault)
