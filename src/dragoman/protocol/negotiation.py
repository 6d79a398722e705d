"""Finding out what a server speaks: a machine that is told what came back and says what to send next.

It holds the rules of "Backward Compatibility" for both kinds of transport, and refuses to know
sockets, processes and clocks: whoever drives it sends, waits and starts processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from dragoman.jsonrpc.message import METHOD_NOT_FOUND, ErrorObject
from dragoman.model import (
    COMPLETE,
    HEADER_MISMATCH,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    DiscoverResult,
    InitializeResult,
)
from dragoman.protocol.lenient import reader
from dragoman.revisions.base import Revision

DISCOVER: Final = "server/discover"
INITIALIZE: Final = "initialize"

PROBE_TIMEOUT: Final = 2.0  # seconds of silence on a shared channel that count as a verdict

# 4xx that say something of the caller, the road or the moment, and nothing of the server's age.
_AGELESS: Final = frozenset({401, 402, 403, 407, 408, 421, 425, 429, 451})

_decode_discover: Final = reader(DiscoverResult)
_decode_initialize: Final = reader(InitializeResult)


class _Supported(msgspec.Struct):
    supported: list[str]


_decode_supported: Final = msgspec.json.Decoder(_Supported).decode


@dataclass(frozen=True, slots=True)
class Send:
    """Send `method`, naming `version`.

    After `timeout` seconds without an answer (None: however long it takes) call `silent()`, and keep
    listening: a late answer is told by `late()`. `fresh` asks for a new process first.
    """

    method: str
    version: str
    timeout: float | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """Agreed: `hello` is what the server said of itself, None where it kept that to itself."""

    revision: Revision
    hello: DiscoverResult | InitializeResult | None


@dataclass(frozen=True, slots=True)
class GiveUp:
    """There is no way to speak with this server; None where the fault that was reported says why."""

    why: str | None


Step: TypeAlias = Send | Ready | GiveUp


class Negotiator:
    """One negotiation. `start()`, then for each `Send` exactly one of the other methods but `late()`.

    `revisions` are those that the caller will speak, oldest first: one for a pinned revision. `shared`
    says that all messages share one channel (stdio), where silence is a verdict and a dead process may be
    the answer of an old server; over HTTP neither is. `known` is the revision that this server spoke
    before: it is tried first and dropped when it fails.
    """

    def __init__(
        self,
        revisions: Sequence[Revision],
        *,
        shared: bool,
        probe_timeout: float = PROBE_TIMEOUT,
        known: Revision | None = None,
    ) -> None:
        self._stateless = {r.version: r for r in reversed(revisions) if not r.handshake}
        self._handshake = {r.version: r for r in reversed(revisions) if r.handshake}
        self._shared = shared
        self._timeout = probe_timeout
        self._known = known if known in revisions else None
        self._sent = Send(DISCOVER, "")
        self._offered: set[str] = set()  # what `initialize` has asked for
        self._probed = False  # this process has had a `server/discover`
        self._retried = self._reprobed = self._restarted = False
        self._late: Ready | None = None
        self._said: list[tuple[str, str]] = []  # what the server answered on the way to what, for the error

    def start(self) -> Step:
        """The first thing to send."""
        known = self._known
        if not self._stateless or (known is not None and known.handshake):
            return self._initialize()
        return self._probe(next(iter(self._stateless)) if known is None else known.version)

    def answered(self, result: Raw) -> Step:
        """The server answered with a result."""
        if self._sent.method == INITIALIZE:
            return self._initialized(result)
        hello, fault = _discovered(result)
        if hello is None:
            self._note(DISCOVER, fault)
            return self._initialize()
        return self._choose(hello)

    def late(self, result: Raw) -> None:
        """A result for the `server/discover` that was given up on came in after all."""
        hello, _ = _discovered(result)
        if hello is not None:
            revision = _first(self._stateless, hello.supported_versions)
            self._late = None if revision is None else Ready(revision, hello)

    def refused(self, error: ErrorObject) -> Step:
        """The server answered with a JSON-RPC error, whatever the HTTP status."""
        self._note(self._sent.method, f"{error.message} ({error.code})")
        if self._sent.method == INITIALIZE:
            return self._handshake_refused(error)
        if error.code == UNSUPPORTED_PROTOCOL_VERSION:
            return self._unsupported(_supported(error))
        if error.code in (HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY):
            return self._plain()
        if not self._handshake and not self._shared and error.code == METHOD_NOT_FOUND:
            # Each HTTP request names its revision in a header, so that no other method can be taken for
            # one of an older revision: a server that lacks this one can be spoken to all the same.
            return self._plain()
        # No error code but those above says anything: old servers answer with what they like.
        return self._initialize()

    def silent(self) -> Step:
        """No answer within the time that `Send` named."""
        if self._sent.method == INITIALIZE or not self._shared:
            return GiveUp(f"no answer to `{self._sent.method}`")
        self._note(DISCOVER, f"no answer within {self._timeout:g} s")
        return self._initialize()

    def died(self) -> Step:
        """The process ended, or its channel closed, before the answer."""
        if self._shared and self._probed and self._handshake and not self._restarted:
            # Some old servers end at any request before `initialize`: one more start without a probe.
            self._restarted, self._probed, self._late = True, False, None
            return self._send(Send(INITIALIZE, next(iter(self._handshake)), fresh=True))
        return GiveUp(None)

    def rejected(self, status: int) -> Step:
        """An HTTP status came without a JSON-RPC answer in the body."""
        self._note(self._sent.method, f"HTTP status {status}")
        if not 400 <= status < 500 or status in _AGELESS:
            return GiveUp(None)
        if self._sent.method == INITIALIZE:
            return self._doubt() or GiveUp(None)
        return self._initialize() if self._handshake and not self._offered else GiveUp(None)

    # What to send ------------------------------------------------------------------------------------

    def _send(self, step: Send) -> Send:
        self._sent = step
        if step.method == INITIALIZE:
            self._offered.add(step.version)
        else:
            self._probed = True
        return step

    def _probe(self, version: str) -> Send:
        # Silence can only be a verdict where there is something else to try, and it says nothing of a
        # server that is known to be stateless: that one is slow today.
        patient = not self._shared or not self._handshake or self._known is not None or bool(self._offered)
        return self._send(Send(DISCOVER, version, None if patient else self._timeout))

    def _initialize(self, version: str | None = None) -> Step:
        if not self._handshake:
            return GiveUp(f"the server does not speak {_names(self._stateless)}{self._story()}")
        if self._offered and version is None:
            return GiveUp(f"the server speaks neither way{self._story()}")
        return self._send(Send(INITIALIZE, version or next(iter(self._handshake))))

    def _plain(self) -> Ready:
        return Ready(self._stateless[self._sent.version], None)

    # What an answer means ----------------------------------------------------------------------------

    def _choose(self, hello: DiscoverResult) -> Step:
        revision = _first(self._stateless, hello.supported_versions)
        if revision is not None:
            return Ready(revision, hello)
        older = _first(self._handshake, hello.supported_versions)
        return self._disjoint(hello.supported_versions) if older is None else self._initialize(older.version)

    def _unsupported(self, named: list[str] | None) -> Step:
        revision = self._stateless[self._sent.version] if named is None else _first(self._stateless, named)
        if revision is not None:
            if self._retried:
                return GiveUp(f"the server refuses {revision.version}, which it names as supported")
            self._retried = True
            return self._probe(revision.version)
        older = _first(self._handshake, named or ())
        return self._disjoint(named or ()) if older is None else self._initialize(older.version)

    def _initialized(self, result: Raw) -> Step:
        try:
            hello = _decode_initialize(result)
        except msgspec.ValidationError as exc:
            return GiveUp(f"malformed answer to `initialize`: {exc}")
        revision = self._handshake.get(hello.protocol_version)
        if revision is None:
            return self._disjoint([hello.protocol_version])
        return Ready(revision, hello)

    def _handshake_refused(self, error: ErrorObject) -> Step:
        if self._late is not None:
            return self._late  # the probe was only slow
        if error.code == UNSUPPORTED_PROTOCOL_VERSION and self._stateless and not self._reprobed:
            # The probe came through late and settled the process on a stateless revision.
            self._reprobed = True
            return self._probe(next(iter(self._stateless)))
        left = [version for version in _supported(error) or () if version not in self._offered]
        other = _first(self._handshake, left)
        if other is not None:
            return self._initialize(other.version)
        return self._doubt() or GiveUp(f"the server refused the handshake{self._story()}")

    def _doubt(self) -> Send | None:
        """The probe, when `initialize` was only sent because that is how this server was known."""
        if self._known is None or not self._stateless or self._probed:
            return None
        return self._probe(next(iter(self._stateless)))

    def _disjoint(self, theirs: Iterable[str]) -> GiveUp:
        ours = ", ".join(sorted([*self._stateless, *self._handshake]))
        named = ", ".join(theirs) or "none"
        return GiveUp(f"no protocol revision in common: this client speaks {ours}; the server names {named}")

    def _note(self, method: str, what: str) -> None:
        self._said.append((method, what))

    def _story(self) -> str:
        whats = {what for _, what in self._said}
        if len(whats) == 1 and len(self._said) > 1:
            return f": {whats.pop()}"  # one reason, to whatever was asked
        return f" ({'; '.join(f'`{method}`: {what}' for method, what in self._said)})" if self._said else ""


def _discovered(result: Raw) -> tuple[DiscoverResult | None, str]:
    """A `DiscoverResult` that deserves the name, or what is wrong with it.

    Some servers answer any method with something; only the right shape is the word of a stateless one.
    """
    try:
        hello = _decode_discover(result)
    except msgspec.ValidationError as exc:
        return None, f"malformed result: {exc}"
    if hello.result_type not in (UNSET, COMPLETE):
        return None, f"malformed result: resultType {hello.result_type!r}"
    if not hello.supported_versions:
        return None, "malformed result: `supportedVersions` is empty"
    return hello, ""


def _supported(error: ErrorObject) -> list[str] | None:
    """`data.supported` of an error, or None where there is none."""
    if error.data is UNSET:
        return None
    try:
        return _decode_supported(error.data).supported
    except msgspec.ValidationError:
        return None


def _first(ours: Mapping[str, Revision], theirs: Iterable[str]) -> Revision | None:
    named = set(theirs)
    return next((revision for version, revision in ours.items() if version in named), None)


def _names(revisions: Iterable[str]) -> str:
    return " or ".join(revisions)
