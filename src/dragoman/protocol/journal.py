"""What a call remembers between its rounds where the server may not ask inline: sealed `requestState`.

A handler that needs an answer ends its call with `input_required`; the client calls again with the
answers and the state. The journal holds the answers and the effects of earlier rounds, so that the
handler can be entered anew and get to the same place without doing anything twice. No clock: the
time is an argument.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import Refusal
from dragoman.protocol.record import Record
from dragoman.protocol.sealing import BrokenSeal, Keys

PURPOSE: Final = "request-state"
MAX_STATE: Final = 512 * 1024  # bytes of sealed text; what is larger belongs into a store
MAX_ROUNDS: Final = 64

_canonical: Final = msgspec.json.Encoder(order="deterministic").encode


_read: Final = msgspec.json.Decoder(Record).decode


def binding(method: str, params: Any, *, principal: str | None) -> bytes:
    """What a state is good for: this method, this subject, these arguments, this caller."""
    subject = getattr(params, "name", None) or getattr(params, "uri", None)
    arguments = getattr(params, "arguments", UNSET)
    if isinstance(arguments, Raw):
        arguments = msgspec.json.decode(arguments)
    plain = None if arguments is UNSET else arguments
    return sha256(_canonical([method, subject, plain, principal])).digest()


class Journal:
    """The memory of one call over its rounds."""

    __slots__ = ("_bound", "_keys", "record")

    def __init__(self, keys: Keys, bound: bytes, *, record: Record) -> None:
        self._keys = keys
        self._bound = bound
        self.record = record

    @staticmethod
    def opened(state: str, keys: Keys, *, bound: bytes, now: float) -> Journal:
        """The journal inside a `requestState`.

        Raises:
            Refusal: -32602 for a state that this server did not give out for this very call, or
                that is past its time.
        """
        try:
            record = _read(keys.open_text(state, purpose=PURPOSE, bound=bound))
        except (BrokenSeal, msgspec.DecodeError):
            raise Refusal(
                -32602,
                "Invalid params: requestState was not given out here for this very call, or was changed; "
                "call again without it",
            ) from None
        if now > record.expires:
            raise Refusal(-32602, "Invalid params: requestState is past its time; call again without it")
        return Journal(keys, bound, record=record)

    def sealed(self, *, expires: float) -> str:
        """The state to give out at the end of this round.

        Raises:
            Refusal: -32603 when the rounds or the size go beyond what is sensible.
        """
        record = msgspec.structs.replace(self.record, expires=expires, round=self.record.round + 1)
        if record.round > MAX_ROUNDS:
            raise Refusal(-32603, f"No final result after {MAX_ROUNDS} rounds of input")
        state = self._keys.seal_text(msgspec.json.encode(record), purpose=PURPOSE, bound=self._bound)
        if len(state) > MAX_STATE:
            raise Refusal(-32603, f"The state between rounds has {len(state)} bytes: at most {MAX_STATE}")
        return state
