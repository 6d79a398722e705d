"""One request and what the server asks before it answers: sent again with the answers until it asks no more.

Knows `input_required` results (2026-07-28, Multi Round-Trip Requests) and the error that asks for a page
to be opened first (2025-11-25, URL Elicitation Required). It knows no method.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw

from dragoman.client.inputs import Inputs
from dragoman.errors import DeadlineError, PeerFault, Refusal, RemoteError, UsageError
from dragoman.model import (
    URL_ELICITATION_REQUIRED,
    ElicitationCompleteParams,
    ElicitParams,
    InputRequest,
    InputRequiredResult,
    InputResponseParams,
    URLElicitationRequiredData,
)

T = TypeVar("T")

PAGE_WAIT: Final = 120.0  # seconds for the word that a page is dealt with; then the request is tried again
_POLL_LEAST: Final = 0.01
_POLL_MOST: Final = 1.0

_read_complete: Final = msgspec.json.Decoder(ElicitationCompleteParams).decode


class Rounds:
    """Requests of one server that may need input; at most `limit` times one request is answered for."""

    def __init__(self, server: str, inputs: Inputs, *, limit: int) -> None:
        self._server = server
        self._inputs = inputs
        self._limit = limit
        self._pages: dict[str, asyncio.Future[None]] = {}  # by elicitation id

    async def run(
        self,
        params: InputResponseParams,
        *,
        send: Callable[[], Awaitable[Raw]],
        read: Callable[[Raw], T | InputRequiredResult],
        patience: float | None,
    ) -> T:
        """What the request comes to. `send` sends it as `params` are at the time.

        `patience` is for how many seconds a server may say "ask again" and nothing else.

        Raises:
            PeerFault: the server asks too often, or for nothing.
            DeadlineError: it only ever says "ask again".
            UsageError: it asks for what no handler was given for.
        """
        asked = polls = 0
        since: float | None = None  # the first time that it said so
        while True:
            try:
                answer = read(await send())
            except PeerFault as exc:
                exc.server, exc.stage = self._server, exc.stage or "call"
                raise
            except RemoteError as exc:
                if exc.code != URL_ELICITATION_REQUIRED or not await self._pages_open(exc):
                    raise
                asked = self._count(asked)
                continue
            if not isinstance(answer, InputRequiredResult):
                return answer
            params.request_state = answer.request_state
            params.input_responses = UNSET
            if answer.input_requests is not UNSET:
                asked, polls = self._count(asked), 0
                params.input_responses = await self.fulfil(answer.input_requests)
            elif answer.request_state is UNSET:
                raise self._fault("input_required with neither inputRequests nor requestState")
            else:
                since = self._now() if since is None else since
                self._check_patience(since, patience)
                await asyncio.sleep(min(_POLL_MOST, _POLL_LEAST * 2**polls) if polls else 0)
                polls = min(polls + 1, 10)

    def _count(self, asked: int) -> int:
        if asked >= self._limit:
            raise self._fault(f"the server asked for input more than {self._limit} times")
        return asked + 1

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _check_patience(self, since: float, patience: float | None) -> None:
        if patience is not None and self._now() - since > patience:
            text = f"for {patience:g} s the server asked to be asked again, and nothing else"
            raise DeadlineError(text, server=self._server, stage="overall", hint="a larger timeout=")

    async def fulfil(self, asked: Mapping[str, InputRequest]) -> dict[str, Any]:
        """The answers to what is asked, under the same keys.

        Raises:
            UsageError: there is no handler for one of them, or it gave no answer.
        """
        try:
            return await self._inputs.fulfil(asked)
        except Refusal as exc:
            hint = "an elicitation_handler=, a sampling_handler= or roots= for the client"
            text = f"the call needs input, and {exc.message}"
            raise UsageError(text, server=self._server, stage="call", hint=hint) from None

    # Pages that have to be opened first --------------------------------------------------------------

    async def _pages_open(self, exc: RemoteError) -> bool:
        """Have the pages of the error opened and dealt with; whether the request may be tried again."""
        pages = _pages(exc)
        if not pages or not self._inputs.offers("url"):
            return False
        loop = asyncio.get_running_loop()
        waits = {str(page.elicitation_id): loop.create_future() for page in pages}
        self._pages.update(waits)  # before anybody is asked: the word may come before the answer
        try:
            for page in pages:
                answer = await self._inputs.elicit(page)
                if answer.action != "accept":
                    return False
            await asyncio.wait(waits.values(), timeout=PAGE_WAIT)
        finally:
            for key in waits:
                self._pages.pop(key, None)
        return True

    def page_complete(self, params: Raw) -> None:
        """`notifications/elicitation/complete` came; for others than those waited for it says nothing."""
        try:
            future = self._pages.get(_read_complete(params or b"{}").elicitation_id)
        except msgspec.ValidationError:
            return
        if future is not None and not future.done():
            future.set_result(None)

    def _fault(self, message: str) -> PeerFault:
        return PeerFault(message, server=self._server, stage="call")


def _pages(exc: RemoteError) -> list[ElicitParams]:
    try:
        data = msgspec.convert(exc.data, URLElicitationRequiredData)
    except msgspec.ValidationError:
        return []
    return [page for page in data.elicitations if page.mode == "url" and page.elicitation_id is not UNSET]
