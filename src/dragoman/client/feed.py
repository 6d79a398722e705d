"""One listener's changes between the wire and whoever reads them, and what is listened for.

Bursts become one change each; it knows neither how changes arrive nor which revision is spoken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from dragoman.errors import UsageError
from dragoman.model import ServerCapabilities, SubscriptionFilter

ChangeKind: TypeAlias = Literal["tools", "prompts", "resources", "resource"]

LISTS: Final[tuple[ChangeKind, ...]] = ("tools", "prompts", "resources")
_MEMBERS: Final = {
    "tools": "tools_list_changed",
    "prompts": "prompts_list_changed",
    "resources": "resources_list_changed",
}
# Seconds for which a change is held back, so that all of a burst become one.
MERGE: Final = 0.02

Key = tuple[ChangeKind, str | None]


class Change(msgspec.Struct, frozen=True):
    """Something that changed at the server.

    `kind` is `"tools"`, `"prompts"` or `"resources"` for a list, and `"resource"` for what stands at `uri`.
    `missed`: it may have changed, maybe more than once, while the server could not be heard.
    """

    kind: ChangeKind
    uri: str | None = None
    missed: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """What a listener wants to hear of: lists, and single resources."""

    lists: frozenset[ChangeKind]
    uris: tuple[str, ...] = ()

    @classmethod
    def of(cls, *, tools: bool, prompts: bool, resources: bool | Sequence[str], resource_list: bool) -> Wish:
        """The wish for the arguments of `listen`; for none of them, all the lists.

        Raises:
            UsageError: `resources` is a URI by itself.
        """
        if isinstance(resources, str):
            raise UsageError(f"resources: expected a list of URIs; received the text {resources!r}")
        uris = () if isinstance(resources, bool) else tuple(dict.fromkeys(resources))
        wanted = {"tools": tools, "prompts": prompts, "resources": resource_list or resources is True}
        lists: frozenset[ChangeKind] = frozenset(kind for kind in LISTS if wanted[kind])
        return cls(lists, uris) if lists or uris else cls(frozenset(LISTS))

    def filter(self) -> SubscriptionFilter:
        """The same in the words of `subscriptions/listen`."""
        members: dict[str, Any] = {_MEMBERS[kind]: True for kind in LISTS if kind in self.lists}
        if self.uris:
            members["resource_subscriptions"] = list(self.uris)
        return SubscriptionFilter(**members)

    def granted(self, answer: SubscriptionFilter) -> Wish:
        """What of it an acknowledgement grants."""
        uris = set(() if answer.resource_subscriptions is UNSET else answer.resource_subscriptions)
        lists: frozenset[ChangeKind] = frozenset(
            kind for kind in self.lists if getattr(answer, _MEMBERS[kind]) is True
        )
        return Wish(lists, tuple(uri for uri in self.uris if uri in uris))

    def offered(self, capabilities: ServerCapabilities) -> Wish:
        """What of it the capabilities of a session offer."""
        lists: frozenset[ChangeKind] = frozenset(
            kind for kind in self.lists if _says(getattr(capabilities, kind), "listChanged")
        )
        return Wish(lists, self.uris if _says(capabilities.resources, "subscribe") else ())

    def without(self, other: Wish) -> str:
        """What of it is not in `other`, in words; empty where all of it is."""
        lists = [f"the list of {kind}" for kind in LISTS if kind in self.lists - other.lists]
        return ", ".join([*lists, *(uri for uri in self.uris if uri not in other.uris)])

    def changes(self) -> Iterator[Key]:
        """The changes that there can be."""
        for kind in LISTS:
            if kind in self.lists:
                yield kind, None
        for uri in self.uris:
            yield "resource", uri

    def hears(self, kind: ChangeKind, uri: str | None) -> bool:
        """Whether a change belongs to it; one of a resource under a watched one does."""
        if kind != "resource":
            return kind in self.lists
        return uri is not None and any(uri.startswith(watched) for watched in self.uris)


def _says(capability: Any, member: str) -> bool:
    return capability is not UNSET and capability.get(member) is True


class Feed:
    """The changes that wait to be read, each of them once, in the order in which they came."""

    def __init__(self, wish: Wish, *, merge: float = MERGE) -> None:
        self.wish = wish
        self._merge = merge
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Key, tuple[float, bool]] = {}  # since when, and whether some may be missing
        self._readers: set[asyncio.Future[None]] = set()
        self._over = False
        self._error: BaseException | None = None
        self.established: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()  # nothing works for it any more
        self.on_stop: Callable[[], None] = lambda: None

    def put(self, kind: ChangeKind, uri: str | None = None, *, missed: bool = False) -> None:
        """Something changed."""
        if self._over:
            return
        since, before = self._waiting.get((kind, uri), (self._loop.time(), False))
        self._waiting[kind, uri] = (since, missed or before)
        self._wake()

    def missed(self) -> None:
        """Everything may have changed."""
        for kind, uri in self.wish.changes():
            self.put(kind, uri, missed=True)

    def establish(self) -> None:
        """From now on no change is missed, as far as is known."""
        if not self.established.done():
            self.established.set_result(None)

    def end(self, error: BaseException | None = None) -> None:
        """Nothing more comes; `error` says why, where that is not as it should be."""
        if self._over:
            return
        self._over, self._error = True, error
        if not self.established.done():
            self.established.set_result(None)
        self._wake()

    def stop(self) -> None:
        """Nobody listens any more."""
        self.end()
        self._waiting.clear()
        self.on_stop()

    @property
    def over(self) -> bool:
        """Whether nothing more comes."""
        return self._over

    def raise_error(self) -> None:
        """Raise what ended it, once; later it is simply over."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def next(self) -> Change | None:
        """The next change; None at the end. Raises what ended it, once, after what came before."""
        while True:
            if self._waiting:
                key = next(iter(self._waiting))
                wait = self._waiting[key][0] + self._merge - self._loop.time()
                if wait <= 0 or self._over:
                    _, missed = self._waiting.pop(key)
                    return Change(*key, missed)
                await asyncio.sleep(wait)
            elif self._over:
                self.raise_error()
                return None
            else:
                await self._news()

    async def _news(self) -> None:
        reader: asyncio.Future[None] = self._loop.create_future()
        self._readers.add(reader)
        try:
            await reader
        finally:
            self._readers.discard(reader)

    def _wake(self) -> None:
        for reader in self._readers:
            if not reader.done():
                reader.set_result(None)
