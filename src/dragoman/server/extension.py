"""What an extension adds to a server: a closed record, and never the server itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.revisions.base import Method
from dragoman.server.middleware import Handler, Middleware


class Extension(msgspec.Struct, frozen=True, eq=False):
    """One extension (2026-07-28, versioning: Extension Negotiation).

    `name` is its identifier, such as `"io.modelcontextprotocol/tasks"`, and `settings` what the
    server declares under it. `methods` are requests that clients may send besides those of the
    revision; `routes` answer them by name. `layer` stands around every call, innermost.
    """

    name: str
    settings: Mapping[str, Any] = {}
    methods: Mapping[str, Method] = {}
    routes: Mapping[str, Handler] = {}
    layer: Middleware | None = None
