"""A call that takes several rounds, around whatever handles it: state opened before, sealed after.

Handlers are written once: one that returns `InputRequiredResult` itself is asked through inline
where the revision does that, and one that awaits its answers is entered anew where it does not.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal
from dragoman.model import InputRequiredResult, Result
from dragoman.protocol.call import Call
from dragoman.protocol.journal import Journal, binding
from dragoman.protocol.record import Record
from dragoman.protocol.sealing import Keys
from dragoman.server.asking import posed, request_method, request_params
from dragoman.server.middleware import Handler

INLINE_ROUNDS: Final = 32


class Rounds:
    """The rounds of the calls of one server: `keys` seal the states, `lifetime` is in seconds."""

    def __init__(self, keys: Keys, lifetime: float) -> None:
        self._keys = keys
        self._lifetime = lifetime

    def open(self, call: Call) -> None:
        """Give the call the journal that its `requestState` and `inputResponses` make.

        Raises:
            Refusal: -32602 for a state that is not this call's.
        """
        params = call.params
        bound = binding(call.method.name, params, principal=call.principal)
        if params.request_state is UNSET:
            journal = Journal(self._keys, bound, record=Record(expires=0.0, round=0))
        else:
            journal = Journal.opened(params.request_state, self._keys, bound=bound, now=time.time())
        if params.input_responses is not UNSET:
            # What was answered before stands; a client cannot change it in a later round.
            journal.record.answers = {**params.input_responses, **journal.record.answers}
        call.journal = journal

    async def finish(self, call: Call, result: InputRequiredResult, *, handle: Handler) -> Result:
        """What the call answers when its handler needs answers."""
        if call.revision.asks_inline:
            return await self._inline(call, result, handle=handle)
        journal = call.journal
        if journal is None:
            bound = binding(call.method.name, call.params, principal=call.principal)
            journal = Journal(self._keys, bound, record=call.scratch or Record(expires=0.0, round=0))
        if result.input_requests is not UNSET:
            for request in result.input_requests.values():
                posed(call, request)
        journal.record.raw = None if result.request_state is UNSET else result.request_state
        sealed = journal.sealed(expires=time.time() + self._lifetime)
        return msgspec.structs.replace(result, request_state=sealed)

    async def _inline(self, call: Call, result: InputRequiredResult, *, handle: Handler) -> Result:
        """Ask one by one what a handler in the raw form wants, and enter it again with the answers."""
        memory = call.scratch = call.scratch or Record(expires=0.0)
        for _ in range(INLINE_ROUNDS):
            asked = {} if result.input_requests is UNSET else result.input_requests
            requests = {key: posed(call, request) for key, request in asked.items()}
            answers = await asyncio.gather(
                *(call.channel.ask(request_method(r), request_params(r)) for r in requests.values())
            )
            memory.answers |= dict(zip(requests, map(_plain, answers), strict=True))
            memory.raw = None if result.request_state is UNSET else result.request_state
            again = await handle(call)
            if not isinstance(again, InputRequiredResult):
                return again
            result = again
        raise Refusal(-32603, f"No final result after {INLINE_ROUNDS} rounds of input")


def _plain(raw: Any) -> Any:
    return msgspec.json.decode(raw)
