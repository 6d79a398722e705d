"""What an HTTP server may be told, in code or by the environment.

Values and their defaults; what follows from them is decided where they are used.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.protocol.origin import HostRules
from dragoman.stores.base import Store
from dragoman.transports.asgi_principal import Authenticate


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """What an HTTP server may be told.

    `allowed_hosts`, `allowed_origins`, `trusted_proxies`: see `protocol.origin.HostRules`; where
    they are None, the environment variables DRAGOMAN_ALLOWED_HOSTS, DRAGOMAN_ALLOWED_ORIGINS and
    DRAGOMAN_TRUSTED_PROXIES count, lists with commas. `max_body`, `max_header`: bytes of one
    request. `max_queue`: bytes that wait for a client that does not read, on one stream; beyond it
    the stream ends. `session_idle`: seconds after which an unused session ends. `session_lifetime`:
    seconds after which any session does. `max_sessions`: how many are kept. `store`: where several
    processes keep what they have to know of each other's sessions; whoever made it closes it.
    `resume_events`, `resume_bytes`, `resume_seconds`: how many events of a stream, bytes of a session's
    streams, and for how long, are kept for a client whose connection broke. `keep_alive`: seconds of
    quiet after which a stream sends a comment. `sse_path`: where the older transport, HTTP with SSE, is
    served beside this one, such as `"/sse"`; nowhere without it.
    `authenticate`: a function, plain or async, of the request's headers by lower-case name, that
    says who calls (`ctx.principal`), or None for somebody unknown; a `Refusal` that it raises is a 401.
    """

    allowed_hosts: Sequence[str] | None = None
    allowed_origins: Sequence[str] | None = None
    trusted_proxies: Sequence[str] | None = None
    max_body: int = 4 * 1024 * 1024
    max_header: int = 32 * 1024
    max_queue: int = 4 * 1024 * 1024
    session_idle: float = 1800.0
    max_sessions: int = 10_000
    session_lifetime: float = 7 * 86_400.0
    store: Store | None = None
    resume_events: int = 256
    resume_bytes: int = 4 * 1024 * 1024
    resume_seconds: float = 300.0
    keep_alive: float = 15.0
    sse_path: str | None = None
    authenticate: Authenticate | None = None

    def rules(self) -> HostRules:
        """The host rules, the environment counted in. Raises ValueError for an entry that is none."""
        hosts = _listed(self.allowed_hosts, "DRAGOMAN_ALLOWED_HOSTS")
        origins = _listed(self.allowed_origins, "DRAGOMAN_ALLOWED_ORIGINS")
        return HostRules(
            hosts, origins, proxies=_listed(self.trusted_proxies, "DRAGOMAN_TRUSTED_PROXIES") or ()
        )


def _listed(given: Sequence[str] | None, variable: str) -> Sequence[str] | None:
    if given is not None:
        return [given] if isinstance(given, str) else given
    text = os.environ.get(variable)
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]
