"""What a server offers of one kind, in the order in which it was added, and its pages.

A list is built once and kept until the set changes. It refuses to know who is asking.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, TypedDict, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from dragoman.errors import Refusal, UsageError
from dragoman.model import CacheScope, PaginatedResult
from dragoman.revisions import LATEST

_SIGNATURE = 8  # bytes

CACHEABLE: Final = tuple(name for name, method in LATEST.methods.items() if method.cacheable)

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
E_contra = TypeVar("E_contra", contravariant=True)


class Watcher(Protocol[E_contra]):
    """Who follows a registry as it changes."""

    def check(self, item: E_contra) -> None:
        """Raise UsageError if `item` must not be added."""
        ...

    def added(self, item: E_contra) -> None:
        """It was added."""
        ...

    def removed(self, item: E_contra) -> None:
        """It was removed."""
        ...


class Caching(TypedDict, total=False):
    """How long, in milliseconds, and by whom something may be cached."""

    ttl_ms: int
    cache_scope: CacheScope


class Paging(Struct, frozen=True):
    """How lists are given out: entries a page (all without a size), caching hints, and who signs cursors."""

    size: int | None
    ttl_ms: int
    cache_scope: CacheScope
    sign: Sign
    hints: Mapping[str, Caching] = {}  # instead, by method

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise UsageError(f"page_size: expected a whole number above 0, received {self.size}")
        if self.ttl_ms < 0:
            raise UsageError(f"ttl_ms: expected 0 or more milliseconds, received {self.ttl_ms}")
        if self.cache_scope not in ("public", "private"):
            raise UsageError(f'cache_scope: expected "public" or "private", received {self.cache_scope!r}')
        for method, said in self.hints.items():
            if method not in CACHEABLE:
                raise UsageError(f"caching: {method!r} is none of {', '.join(CACHEABLE)}")
            replace(self, hints={}, **said)  # raises for what cannot be

    def of(self, method: str) -> Paging:
        """The same for one method, its own hints in place of those for all."""
        said = self.hints.get(method)
        return self if not said else replace(self, **said)


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
        self.watchers: list[Watcher[E]] = []
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
        self._check(item)
        self._items[item.name] = item
        self._changed()
        for watcher in self.watchers:
            watcher.added(item)

    def _check(self, item: E) -> None:
        if item.name in self._items:
            raise UsageError(
                f"there is a {self._noun} {item.name!r} already: give it another name, or remove the other"
            )
        for watcher in self.watchers:
            watcher.check(item)

    def remove(self, name: str) -> None:
        """Take one away.

        Raises:
            UsageError: there is none of that name.
        """
        item = self._items.pop(name, None)
        if item is None:
            raise UsageError(f"there is no {self._noun} {name!r} to remove")
        self._changed()
        for watcher in self.watchers:
            watcher.removed(item)

    def replace(self, name: str, item: E) -> None:
        """Put another in the place of one, under whatever name it has.

        Raises:
            UsageError: there is none of that name, or one of the new name already.
        """
        old = self._items.get(name)
        if old is None:
            raise UsageError(f"there is no {self._noun} {name!r} to replace")
        if item.name != name:
            self._check(item)
        listed = [item if known is old else known for known in self._items.values()]
        self._items.clear()
        self._items.update((known.name, known) for known in listed)
        self._changed()
        for watcher in self.watchers:
            watcher.removed(old)
            watcher.added(item)

    def _changed(self) -> None:
        self._pages.clear()
        self.on_change()

    def page(self, cursor: str | None, seen: Callable[[E], bool] | None = None) -> PaginatedResult:
        """One page of the list; the same object until the set changes.

        With `seen`, only what it says yes to, built anew each time, and never for a shared cache.

        Raises:
            Refusal: -32602 for a cursor that no list of this server gave out.
        """
        if seen is not None:
            return self._build(cursor, list(filter(seen, self._items.values())), scope="private")
        found = self._pages.get(cursor)
        if found is None:
            items = list(self._items.values())
            found = self._pages[cursor] = self._build(cursor, items, scope=self._paging.cache_scope)
        return found

    def _build(self, cursor: str | None, items: list[E], *, scope: CacheScope) -> PaginatedResult:
        paging = self._paging
        start = 0 if cursor is None else self._after(cursor, items)
        size = paging.size or len(items) or 1
        page = items[start : start + size]
        more = start + size < len(items)
        listed: dict[str, Any] = {self._member: [item.entry for item in page]}
        return self._result(
            next_cursor=self._cursor(page[-1].name) if more else UNSET,
            ttl_ms=paging.ttl_ms,
            cache_scope=scope,
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
        # The decoder passes over what is none of its letters: of one text there are any number of cursors.
        if signature and signature == self._sign(plain) and urlsafe_b64encode(text).decode() == cursor:
            for index, item in enumerate(items):
                if item.name.encode() == plain:
                    return index + 1
        raise Refusal(
            -32602, "Invalid params: unknown cursor; list again from the first page", {"cursor": cursor}
        )
