"""What a server offers of one kind, in the order in which it was added, and its pages.

A list is built once and kept until the set changes. It refuses to know who is asking.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from msgspec import UNSET

from dragoman.errors import Refusal, UsageError
from dragoman.model import CacheScope, PaginatedResult

_SIGNATURE = 8  # bytes

Sign = Callable[[bytes], bytes]


class Offered(Protocol):
    """A tool, prompt, resource or template: its name among its like, and what a list shows of it."""

    @property
    def name(self) -> str:
        """What it is called by; for a resource, its URI."""
        ...

    @property
    def entry(self) -> Any:
        """As a list shows it."""
        ...


E = TypeVar("E", bound=Offered)


@dataclass(frozen=True, slots=True)
class Paging:
    """How lists are given out: entries a page (all without a size), caching hints, and who signs cursors."""

    size: int | None
    ttl_ms: int
    cache_scope: CacheScope
    sign: Sign

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise UsageError(f"page_size: expected a whole number above 0, received {self.size}")
        if self.ttl_ms < 0:
            raise UsageError(f"ttl_ms: expected 0 or more milliseconds, received {self.ttl_ms}")


class Registry(Generic[E]):
    """All of one kind, by name. `noun` is what one is called, `member` what a list result calls them."""

    def __init__(self, noun: str, *, member: str, result: type[PaginatedResult], paging: Paging) -> None:
        self._noun = noun
        self._member = member
        self._result = result
        self._paging = paging
        self._items: dict[str, E] = {}
        self._pages: dict[str | None, PaginatedResult] = {}
        self.on_change: Callable[[], None] = lambda: None
        self.get = self._items.get

    def __len__(self) -> int:
        """How many there are."""
        return len(self._items)

    def __iter__(self) -> Iterator[E]:
        """In their order."""
        return iter(self._items.values())

    def add(self, item: E) -> None:
        """Add one.

        Raises:
            UsageError: there is one of that name already.
        """
        if item.name in self._items:
            raise UsageError(
                f"there is a {self._noun} {item.name!r} already: give it another name, or remove the other"
            )
        self._items[item.name] = item
        self._changed()

    def remove(self, name: str) -> None:
        """Take one away.

        Raises:
            UsageError: there is none of that name.
        """
        if self._items.pop(name, None) is None:
            raise UsageError(f"there is no {self._noun} {name!r} to remove")
        self._changed()

    def _changed(self) -> None:
        self._pages.clear()
        self.on_change()

    def page(self, cursor: str | None) -> PaginatedResult:
        """One page of the list; the same object until the set changes.

        Raises:
            Refusal: -32602 for a cursor that no list of this server gave out.
        """
        found = self._pages.get(cursor)
        if found is None:
            found = self._pages[cursor] = self._build(cursor)
        return found

    def _build(self, cursor: str | None) -> PaginatedResult:
        items = list(self._items.values())
        paging = self._paging
        start = 0 if cursor is None else self._after(cursor, items)
        size = paging.size or len(items) or 1
        page = items[start : start + size]
        more = start + size < len(items)
        listed: dict[str, Any] = {self._member: [item.entry for item in page]}
        return self._result(
            next_cursor=self._cursor(page[-1].name) if more else UNSET,
            ttl_ms=paging.ttl_ms,
            cache_scope=paging.cache_scope,
            **listed,
        )

    def _cursor(self, name: str) -> str:
        # A cursor names the last one of its page, so that it stays right when others come and go.
        plain = name.encode()
        return urlsafe_b64encode(self._sign(plain) + plain).decode("ascii")

    def _sign(self, plain: bytes) -> bytes:
        return self._paging.sign(self._member.encode() + b"\0" + plain)[:_SIGNATURE]

    def _after(self, cursor: str, items: list[E]) -> int:
        try:
            text = urlsafe_b64decode(cursor.encode("ascii"))
        except ValueError:
            text = b""
        signature, plain = text[:_SIGNATURE], text[_SIGNATURE:]
        if signature and signature == self._sign(plain):
            for index, item in enumerate(items):
                if item.name.encode() == plain:
                    return index + 1
        raise Refusal(
            -32602, "Invalid params: unknown cursor; list again from the first page", {"cursor": cursor}
        )
