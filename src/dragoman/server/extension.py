"""What an extension adds to a server: a closed record, and never the server itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dragoman.model import Result
from dragoman.protocol.call import Call
from dragoman.revisions.base import Method
from dragoman.server.middleware import Handler, Middleware

if TYPE_CHECKING:
    from dragoman.server.lifespan import Lifespan
    from dragoman.server.registry import Paging, Registry
    from dragoman.server.resources import Resource
    from dragoman.server.subscriptions import Kind
    from dragoman.server.templates import Template
    from dragoman.server.tool import Tool


class Extension(msgspec.Struct, frozen=True, eq=False):
    """One extension (2026-07-28, versioning: Extension Negotiation).

    `name` is its identifier, such as `"io.modelcontextprotocol/tasks"`, and `settings` what the
    server declares under it. `methods` are requests that clients may send besides those of the
    revision; `routes` answer them by name. `layer` stands around every call, innermost.
    `run_tool` answers calls of tools that were registered with `task`. `listens` are the members of a
    `subscriptions/listen` filter that it serves itself. `life` begins when the server is served.
    """

    name: str
    settings: Mapping[str, Any] = {}
    methods: Mapping[str, Method] = {}
    routes: Mapping[str, Handler] = {}
    layer: Middleware | None = None
    run_tool: Callable[[Tool, Call], Awaitable[Result]] | None = None
    listens: frozenset[str] = frozenset()
    life: Lifespan | None = None

    @property
    def everywhere(self) -> bool:
        """Whether it is declared to clients of all revisions: those with a handshake have its methods too."""
        return all(method.everywhere for method in self.methods.values())


class Services(msgspec.Struct, frozen=True, eq=False):
    """What a server does for an extension.

    `name` is the server's, `secrets` are those that it was given (none, if it has only a random one).
    `tool` finds a tool by name. `prepare` gives a call that came by no transport what handlers find
    on all others. `paging` is how its lists are given out; `resources` and `templates` are those that
    it offers, made when first asked for. `seen` picks what a principal sees, None where all see all.
    `changed` tells listeners of a list, `updated` of a resource.
    """

    name: str
    secrets: tuple[str | bytes, ...]
    tool: Callable[[str], Tool | None]
    prepare: Callable[[Call], Awaitable[None]]
    paging: Paging
    resources: Callable[[], Registry[Resource]]
    templates: Callable[[], Registry[Template]]
    seen: Callable[[str | None], Callable[[Any], bool] | None]
    changed: Callable[[Kind], None]
    updated: Callable[[str], None]


class Extending(Protocol):
    """Something that makes an extension for a server: what `Server(extensions=[...])` takes."""

    def extension(self, services: Services) -> Extension:
        """The extension for the server that gives these services."""
        ...
