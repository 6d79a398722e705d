"""Opening a connection: sends what the negotiation says, tells it what came back, remembers the verdict.

The rules are in `protocol.negotiation`; here are the waiting, the processes and the words for failure.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final

from msgspec import Raw

from dragoman.client.connection import Connection, remote_error
from dragoman.client.inputs import Inputs
from dragoman.client.options import AUTO, ClientOptions
from dragoman.client.recovery import Patience, may_pass
from dragoman.client.target import Target
from dragoman.client.verdicts import Verdict, Verdicts, forget
from dragoman.errors import (
    ClosedError,
    ConnectError,
    DeadlineError,
    HttpError,
    LocalError,
    NegotiationError,
    RemoteError,
)
from dragoman.jsonrpc.message import Response, encode_request
from dragoman.model import InitializeParams, Params
from dragoman.protocol.negotiation import INITIALIZE, Negotiator, Ready, Send, Step
from dragoman.revisions import BY_VERSION, Revision
from dragoman.schema.shapes import is_object
from dragoman.transports.base import Outgoing, Transport

__all__ = ["Opening", "forget"]

log = logging.getLogger("dragoman.client")

# After which answer to `initialize` the older transport is tried (2025-11-25, Streamable HTTP:
# Backwards Compatibility).
_OLDER: Final = frozenset({400, 404, 405})
# A path on the same host, of a length that a person reads.
_PATH: Final = re.compile(r"/(?:[\w.~%-][\w.~%/-]{0,200})?", re.ASCII)


def _elsewhere(refusal: RemoteError | None, url: object) -> str | None:
    """The URL of the endpoint, where there is none at this `url` and the server says at which path it is."""
    data = None if refusal is None else refusal.data
    path = data.get("endpoint") if is_object(data) else None
    if not isinstance(url, str) or not isinstance(path, str) or not _PATH.fullmatch(path):
        return None
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}{path}"


class Opening:
    """One attempt to come to speak with a server."""

    def __init__(self, connection: Connection, *, options: ClientOptions, inputs: Inputs) -> None:
        self._connection = connection
        self._options = options
        self._inputs = inputs
        self._target: Target = connection.target
        self._stage = "spawn" if self._target.restarts else "connect"
        self._probe: asyncio.Task[Response] | None = None  # still listened to after its time
        self._refusal: RemoteError | None = None
        self._fault: LocalError | None = None  # why another attempt is waited for
        self._verdicts = Verdicts(options.cache_dir)
        self._older = False  # it goes over the transport that came before Streamable HTTP

    async def run(self) -> Ready:
        """Open the transport and agree on a revision, within `connect_timeout`.

        Raises:
            ConnectError, ClosedError, HttpError: as the transport.
            NegotiationError: the server is there, but nothing is common.
            DeadlineError: it took too long; the error says at which step.
        """
        return await self._within(self._open())

    async def renew(self, fresh: bool) -> None:
        """Agree once more over the open transport, whose session the server has ended; with `fresh` over
        a new one, to a program that is started again. Raises as `run`.
        """
        await self._within(self._reopen() if fresh else self._agree())

    async def _reopen(self) -> Ready:
        self._stage = "spawn"
        await self._connection.reopen()
        return await self._agree()

    async def _within(self, work: Coroutine[Any, Any, Ready]) -> Ready:
        limit = self._options.connect_timeout
        scope = asyncio.timeout(limit)
        try:
            async with scope:
                return await work
        except TimeoutError:
            if not scope.expired():
                raise
            raise self._late(limit) from self._fault

    def _late(self, limit: float | None) -> DeadlineError:
        steps = {
            "spawn": "the program was still starting",
            "connect": "the connection was still being opened",
            "probe": "`server/discover` was not answered",
            "initialize": "`initialize` was not answered",
        }
        return DeadlineError(
            f"no connection within {limit:g} s: {steps[self._stage]}",
            server=self._target.name,
            stage="connect",
            stderr_tail=self._connection.transport.facts().get("stderr_tail", ()),
            hint="a larger connect_timeout=: the first run of a package runner downloads the package",
        )

    async def _open(self) -> Ready:
        known, older = self._verdicts.get(self._target.key), self._target.older
        if known is not None and known.older and older is not None:
            try:
                return await self._over_older(older)
            except LocalError:
                self._verdicts.forget(self._target.key)
                self._older = False
                await self._connection.use(self._target.make)
                return await self._agree()
        await self._connection.open()
        try:
            return await self._agree()
        except HttpError as fault:
            if older is None or fault.status not in _OLDER or not self._shaking_hands():
                raise
            try:
                return await self._over_older(older)
            except LocalError as exc:
                log.debug("%s: not over the older transport either: %s", self._target.name, exc)
            raise

    def _shaking_hands(self) -> list[Revision]:
        return [revision for revision in self._options.revisions() if revision.handshake]

    async def _over_older(self, older: Callable[[], Transport]) -> Ready:
        """Over the transport that came before Streamable HTTP, whose servers all begin with a handshake."""
        self._stage, self._older = "connect", True
        await self._connection.use(older)
        return await self._agree()

    async def _agree(self) -> Ready:
        connection, key = self._connection, self._target.key
        known = self._verdicts.get(key)
        machine = Negotiator(
            self._shaking_hands() if self._older else self._options.revisions(),
            shared=connection.transport.shared,
            probe_timeout=self._options.probe_timeout,
            known=None if known is None else BY_VERSION.get(known.version),
        )
        try:
            ready = await self._negotiate(machine)
            connection.agreed(ready.revision)
            if ready.revision.handshake:
                await connection.notify("notifications/initialized")
        except LocalError:
            self._verdicts.forget(key)
            raise
        finally:
            await self._drop_probe()
        self._verdicts.keep(key, Verdict(ready.revision.version, self._older))
        return ready

    async def _negotiate(self, machine: Negotiator) -> Ready:
        step: Step = machine.start()
        fault: LocalError | None = None
        while isinstance(step, Send):
            step, fault = await self._attempt(machine, step)
        if isinstance(step, Ready):
            return step
        hint = None if self._options.protocol == AUTO else f"protocol={AUTO!r}, which speaks any revision"
        if step.why is None and fault is not None:
            if isinstance(fault, HttpError):
                fault.stage = self._stage
                fault.hint = fault.hint or hint
            raise fault
        hint = _elsewhere(self._refusal, self._connection.transport.facts().get("url")) or hint
        error = NegotiationError(
            step.why or "no answer", server=self._target.name, stage=self._stage, hint=hint
        )
        raise error from self._refusal

    async def _attempt(self, machine: Negotiator, step: Send) -> tuple[Step, LocalError | None]:
        self._refusal = None
        try:
            response = await self._patiently(step)
        except ClosedError as exc:
            exc.stage = self._stage
            if self._connection.closed or not self._target.restarts or self._target.ours:
                raise
            return machine.died(), exc
        except HttpError as exc:
            return machine.rejected(exc.status), exc
        if response is None:
            return machine.silent(), None
        if response.error is None:
            return machine.answered(response.result), None
        self._refusal = remote_error(response)
        await self._hear_probe(machine)
        return machine.refused(response.error), None

    async def _patiently(self, step: Send) -> Response | None:
        """As `_exchange`; a server that is not there, or not ready, is asked again."""
        patience = Patience(self._connection.recovery.limit)
        while True:
            try:
                response = await self._exchange(step)
            except (ConnectError, HttpError) as exc:
                if not may_pass(exc):
                    raise
                self._fault = exc
                await patience.wait(exc, self._target.name)
            else:
                self._fault = None
                return response

    async def _exchange(self, step: Send) -> Response | None:
        """The response, or None when the time of a probe ran out first."""
        if step.fresh:
            await self._drop_probe()
            await self._connection.reopen()
        outgoing = self._outgoing(step)
        if step.timeout is None:
            return await self._connection.transport.exchange(outgoing)
        exchange = self._connection.transport.exchange(outgoing)
        self._probe = asyncio.get_running_loop().create_task(exchange)
        await asyncio.wait({self._probe}, timeout=step.timeout)
        if not self._probe.done():
            return None
        probe, self._probe = self._probe, None
        return probe.result()

    def _outgoing(self, step: Send) -> Outgoing:
        id_ = self._connection.next_id()
        revision = BY_VERSION[step.version]
        if step.method == INITIALIZE:
            self._stage = "initialize"
            opening = InitializeParams(
                protocol_version=step.version,
                capabilities=self._inputs.capabilities(revision),
                client_info=self._options.client_info,
            )
            return Outgoing(id_, INITIALIZE, encode_request(id_, INITIALIZE, opening), handshake=True)
        self._stage = "probe"
        meta = Raw(self._connection.stateless_meta(revision))
        return Outgoing(id_, step.method, encode_request(id_, step.method, Params(meta=meta)), revision)

    async def _hear_probe(self, machine: Negotiator) -> None:
        if self._probe is None:
            return
        await asyncio.sleep(0)  # an answer that came in with the one just read is still being handed over
        if self._probe.done() and not self._probe.cancelled() and self._probe.exception() is None:
            response = self._probe.result()
            if response.error is None:
                machine.late(response.result)

    async def _drop_probe(self) -> None:
        probe, self._probe = self._probe, None
        if probe is None:
            return
        probe.cancel()
        await asyncio.wait({probe})
        if not probe.cancelled():
            probe.exception()  # looked at, so that nobody reports it as lost
