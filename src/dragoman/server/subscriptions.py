"""Who wants to hear of changes, and telling them: one publish call for every revision.

A stateless client holds a `subscriptions/listen` request open; a session of an older revision is
told over its own way for unsolicited notifications. It knows neither what changed nor why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from dragoman.jsonrpc.message import Id
from dragoman.model import (
    SUBSCRIPTION_ID_KEY,
    ResourceUpdatedParams,
    SubscriptionFilter,
    SubscriptionsListenParams,
    SubscriptionsListenResult,
)
from dragoman.protocol.call import Call, Channel
from dragoman.protocol.link import Link

Kind = Literal["tools", "prompts", "resources"]
_WISH = {
    "tools": "tools_list_changed",
    "prompts": "prompts_list_changed",
    "resources": "resources_list_changed",
}


class _Acknowledged(Struct, kw_only=True, rename={"meta": "_meta"}):
    meta: dict[str, Any]
    notifications: SubscriptionFilter


class _Changed(Struct, kw_only=True, omit_defaults=True, rename={"meta": "_meta"}):
    meta: dict[str, Any]
    uri: str | Any = UNSET


class Subscription(msgspec.Struct, eq=False):
    """One open `subscriptions/listen` request."""

    id: Id
    wish: SubscriptionFilter
    channel: Channel
    link: Link
    ended: asyncio.Future[None]
    watched: frozenset[str] = frozenset()  # resources
    principal: str | None = None

    def tag(self) -> dict[str, Any]:
        """The `_meta` that every message on this stream carries."""
        return {SUBSCRIPTION_ID_KEY: self.id}


def _nothing_hidden(uri: str, principal: str | None) -> bool:
    del uri, principal
    return False


class Hub(msgspec.Struct, eq=False):
    """All who listen to one server."""

    kinds: frozenset[Kind] = frozenset({"tools"})  # what this server tells of
    subscriptions: dict[Subscription, None] = {}  # a set that keeps their order
    links: set[Link] = set()
    granted: frozenset[str] = frozenset()  # members of the filter that extensions serve
    outward: list[Callable[[str], None]] = []  # who else is told of updated resources
    # Whether there is something at a URI that a principal does not see.
    hidden: Callable[[str, str | None], bool] = _nothing_hidden

    async def listen(self, call: Call) -> SubscriptionsListenResult:
        """Answer `subscriptions/listen`: acknowledge, then stay until the client or the server ends it."""
        params: SubscriptionsListenParams = call.params
        wish = self._granted(params.notifications)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watched = frozenset(wish.resource_subscriptions or ())
        subscription = Subscription(call.id, wish, call.channel, call.link, ended, watched, call.principal)
        acknowledged = _Acknowledged(meta=subscription.tag(), notifications=wish)
        call.channel.notify("notifications/subscriptions/acknowledged", acknowledged)
        self.subscriptions[subscription] = None
        try:
            await ended
        finally:
            del self.subscriptions[subscription]
        return SubscriptionsListenResult(meta=subscription.tag())

    def _granted(self, wish: SubscriptionFilter) -> SubscriptionFilter:
        # What the server does not support is left out of the acknowledgement (patterns/subscriptions).
        refused: dict[str, Any] = {name: UNSET for kind, name in _WISH.items() if kind not in self.kinds}
        if "resources" not in self.kinds:
            refused["resource_subscriptions"] = UNSET
        if "task_ids" not in self.granted:
            refused["task_ids"] = UNSET
        return replace(wish, **refused)

    def publish(self, kind: Kind) -> None:
        """Tell everybody who wants to know that a list changed."""
        method, wish = f"notifications/{kind}/list_changed", _WISH[kind]
        for subscription in list(self.subscriptions):
            if getattr(subscription.wish, wish) is True:
                subscription.channel.notify(method, _Changed(meta=subscription.tag()))
        for link in list(self.links):
            if link.session is not None and link.session.initialized and link.notify is not None:
                link.notify(method, UNSET)

    def updated(self, uri: str) -> None:
        """Tell everybody who watches a resource that it changed."""
        method = "notifications/resources/updated"
        for subscription in list(self.subscriptions):
            # The acknowledgement does not tell what is hidden from what is not there, and nor does this.
            if uri in subscription.watched and not self.hidden(uri, subscription.principal):
                subscription.channel.notify(method, _Changed(meta=subscription.tag(), uri=uri))
        for link in list(self.links):
            if uri in link.subscriptions and link.notify is not None:
                link.notify(method, ResourceUpdatedParams(uri=uri))
        for tell in self.outward:
            tell(uri)

    def end(self, link: Link | None = None) -> None:
        """End all subscriptions of `link`, or all there are, gracefully: each gets its result."""
        for subscription in list(self.subscriptions):
            if (link is None or subscription.link is link) and not subscription.ended.done():
                subscription.ended.set_result(None)
