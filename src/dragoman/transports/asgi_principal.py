"""Who is calling over HTTP: the seam at which a server's own authentication, or a verifier, plugs in.

It asks, and turns what it is told into a principal or a refusal. It knows no token.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, TypeAlias

from dragoman.errors import Refusal
from dragoman.protocol.head import Say, fault

if TYPE_CHECKING:
    from dragoman.transports.asgi_exchange import Exchange

log = logging.getLogger("dragoman.http")

# From a request's headers (lower case) to who calls; None for somebody unknown, who is let in as such.
Authenticate: TypeAlias = Callable[[Mapping[str, str]], str | Awaitable[str | None] | None]


async def identify(exchange: Exchange, authenticate: Authenticate) -> Say | None:
    """Set the principal of an exchange; what to say instead when it is refused.

    A `Refusal` from `authenticate` is a 401 with its message. Anything else that it raises lets
    nobody in either, and is told to the log alone.
    """
    try:
        found = authenticate(exchange.headers)
        exchange.principal = await found if isawaitable(found) else found
    except Refusal as exc:
        return fault(401, exc.message, headers=((b"www-authenticate", b"Bearer"),))
    except Exception:
        log.exception("authenticate failed")
        return fault(500, "Internal error")
    return None
