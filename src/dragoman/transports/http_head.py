"""The headers of a client's requests: what the caller gave, what the protocol mirrors, the session.

Which of them a revision has is a fact of its record. Nothing here sends or receives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dragoman.errors import PeerFault, UsageError
from dragoman.protocol.headers import encode_value
from dragoman.revisions.base import Revision
from dragoman.transports.base import Outgoing
from dragoman.transports.http_base import Address, HttpRequest
from dragoman.transports.http_fault import EVENTS, JSON, secrets_of
from dragoman.version import VERSION

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_OURS: Final = frozenset(
    """
    accept accept-encoding connection content-length content-type host last-event-id mcp-method mcp-name
    mcp-protocol-version mcp-session-id te trailer transfer-encoding upgrade
    """.split()
)

Headers = list[tuple[str, str]]


class Requests:
    """Makes the requests to one endpoint. `session` is the id that the server gave, or None.

    Raises:
        UsageError: a header cannot be given.
    """

    def __init__(self, address: Address, headers: Mapping[str, str]) -> None:
        self.session: str | None = None
        self._address = address
        given = check_headers(headers)
        names = {name.lower() for name, _ in given}
        if address.credentials and "authorization" not in names:
            given.append(("Authorization", address.credentials))
        self._secrets = [*secrets_of(given), *address.secrets]
        self._common: Headers = [("Accept-Encoding", "identity"), *given]
        if "user-agent" not in names:
            self._common.append(("User-Agent", f"dragoman/{VERSION}"))
        self._posting: Headers = [("Content-Type", JSON), ("Accept", f"{JSON}, {EVENTS}"), *self._common]

    @property
    def secrets(self) -> list[str]:
        """What no error may show."""
        return self._secrets if self.session is None else [*self._secrets, self.session]

    def call(self, outgoing: Outgoing, revision: Revision | None) -> HttpRequest:
        """The POST of a request; `revision` is None for `initialize`, which agrees on one."""
        headers = self._with(self._posting, revision)
        if revision is not None and revision.http.routing_headers:
            headers.append(("Mcp-Method", outgoing.method))
            if outgoing.subject is not None:
                headers.append(("Mcp-Name", encode_value(outgoing.subject)))
            headers += outgoing.mirrored.items()
        again = _repeatable(outgoing, revision)
        return HttpRequest("POST", self._address, headers, outgoing.frame, repeatable=again)

    def tell(self, frame: bytes, revision: Revision | None) -> HttpRequest:
        """The POST of a notification, or of an answer to the server."""
        return HttpRequest("POST", self._address, self._with(self._posting, revision), frame, urgent=True)

    def listen(self, last_id: str | None, revision: Revision | None) -> HttpRequest:
        """The GET that opens a stream, after the event `last_id` where one is given."""
        headers = self._with([("Accept", EVENTS), *self._common], revision)
        if last_id:
            headers.append(("Last-Event-ID", last_id.encode().decode("latin-1")))
        return HttpRequest("GET", self._address, headers, repeatable=True, urgent=True)

    def leave(self, revision: Revision | None) -> HttpRequest:
        """The DELETE that ends the session."""
        return HttpRequest("DELETE", self._address, self._with(self._common, revision), urgent=True)

    def _with(self, base: Headers, revision: Revision | None) -> Headers:
        headers = base.copy()
        if revision is not None:
            headers.append(("MCP-Protocol-Version", revision.version))
        if self.session is not None and (revision is None or revision.http.sessions):
            headers.append(("Mcp-Session-Id", self.session))
        return headers


def _repeatable(outgoing: Outgoing, revision: Revision | None) -> bool:
    """Whether sending this twice does no more than sending it once: what only reads, by the record."""
    if revision is None:
        return outgoing.handshake
    method = revision.methods.get(outgoing.method)
    return method is not None and method.cacheable


def session_id(headers: Mapping[str, str]) -> str | None:
    """The session that a reply opens (2025-11-25, Streamable HTTP, "Session Management").

    Raises:
        PeerFault: the id holds characters that no id may have.
    """
    session = headers.get("mcp-session-id")
    if session is not None and not _VISIBLE.fullmatch(session):
        raise PeerFault("the session id that the server gave holds characters beyond visible ASCII")
    return session


def check_headers(headers: Mapping[str, str]) -> Headers:
    """Headers that a caller gave, as they may be sent.

    Raises:
        UsageError: a name that is no token or that the protocol sets by itself, or a value that no
            header can carry. The message holds the name and never the value.
    """
    checked: Headers = []
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise UsageError(f"header {name!r}: its name holds a character that no header name has")
        if name.lower() in _OURS:
            raise UsageError(f"header {name}: it is set by the protocol and cannot be given")
        text = value.strip(" \t")
        if any((char < " " and char != "\t") or char == "\x7f" or char > "\xff" for char in text):
            raise UsageError(f"header {name}: its value holds a character that no header carries")
        checked.append((name, text))
    return checked
