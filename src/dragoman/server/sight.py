"""Who sees what of a server: lists show it, and calls find it, or there is no such thing.

It knows names of principals as they come; who they are is for the transport's authorisation to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

# Asked with what a list would show, the principal, and the tags: whether it is there for that principal.
Visible: TypeAlias = Callable[[Any, str | None, frozenset[str]], bool]


class Limited(Protocol):
    """Something that may keep part of what it offers from some."""

    @property
    def limits(self) -> bool:
        """Whether it does."""
        ...


class Sight:
    """What is seen of one server. `others` are those that are mounted in it, and have their own say."""

    def __init__(self) -> None:
        self.visible: Visible | None = None
        self.others: list[Limited] = []

    @property
    def limits(self) -> bool:
        """Whether anybody could miss anything."""
        return self.visible is not None or any(other.limits for other in self.others)

    def sees(self, item: Any, principal: str | None) -> bool:
        """Whether `principal` sees this tool, prompt, resource or template."""
        tags: frozenset[str] = getattr(item, "tags", frozenset())
        if self.visible is not None and not self.visible(item.entry, principal, tags):
            return False
        open_to = getattr(item, "open_to", None)
        return open_to is None or bool(open_to(principal))

    def of(self, principal: str | None) -> Callable[[Any], bool] | None:
        """What picks what they see; None where all see everything."""
        return (lambda item: self.sees(item, principal)) if self.limits else None
