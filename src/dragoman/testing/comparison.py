"""A cassette as a client: its requests go to a server of now, whose answers are held against those of then.

The connection is made anew, in the revision that was recorded; what is compared is results and errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Unpack

import msgspec

from dragoman.client import Client
from dragoman.client.options import ClientKeywords
from dragoman.client.target import TargetLike
from dragoman.errors import RemoteError
from dragoman.model import CreateMessageResult, ElicitParams, ElicitResult, ListRootsResult, Root
from dragoman.protocol.negotiation import DISCOVER, INITIALIZE
from dragoman.schema.difference import Difference, differences
from dragoman.schema.shapes import is_object
from dragoman.testing.cassette import Cassette, Exchange
from dragoman.testing.redaction import Redaction

# Made by the connection itself, or without an end.
_LEFT_OUT: Final = frozenset({INITIALIZE, DISCOVER, "ping", "subscriptions/listen"})
_VOLATILE: Final = ("requestState", "_meta", "ttlMs")
_STATE: Final = "requestState"
_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_LONGEST: Final = 100


@dataclass(frozen=True, slots=True)
class Compared:
    """One request that was sent again, and how its answer differs from the recorded one."""

    request: str
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Whether the answer is the recorded one."""
        return not self.differences

    def __str__(self) -> str:
        mark = "same" if self.same else "DIFFERENT"
        lines = [f"{mark}  {self.request}"]
        lines += [f"  {line}" for difference in self.differences for line in str(difference).splitlines()]
        return "\n".join(lines)


async def compare(
    cassette: Cassette,
    target: TargetLike,
    *,
    ignore: Iterable[str] = (),
    redaction: Redaction | None = None,
    **options: Unpack[ClientKeywords],
) -> list[Compared]:
    """Send every recorded request to `target`, one after the other, and compare what it answers.

    `_meta`, `ttlMs` and the sealed `requestState` do not count, nor what `ignore` names (see
    `differences`). Questions of the server are answered as they were. `options` are those of `Client`;
    without `protocol`, the recorded revision is spoken.

    Raises:
        LocalError: the server cannot be reached, or is lost on the way.
    """
    exchanges = cassette.exchanges()
    keywords: ClientKeywords = {**_answering(exchanges), **options}
    revision = cassette.revision
    if revision is not None:
        keywords.setdefault("protocol", revision.version)
    redact = Redaction() if redaction is None else redaction
    states: dict[str, Any] = {}
    compared: list[Compared] = []
    async with Client(target, **keywords) as client:
        for exchange in exchanges:
            if exchange.method in _LEFT_OUT or exchange.response is None:
                continue
            params = exchange.arguments
            if _STATE in params:
                params[_STATE] = states.get(params[_STATE], params[_STATE])
            now = await _ask(client, exchange.method, params=params)
            _remember_state(states, then=exchange.response, now=now)
            found = differences(_body(exchange.response), redact(now), ignore=(*_VOLATILE, *ignore))
            compared.append(Compared(_title(exchange), tuple(found)))
    return compared


async def _ask(client: Client, method: str, *, params: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": await client.request(method, params)}
    except RemoteError as exc:
        error = {"code": exc.code, "message": exc.message}
        return {"error": error if exc.data is None else {**error, "data": exc.data}}


def _body(response: Mapping[str, Any]) -> dict[str, Any]:
    return {name: response[name] for name in ("result", "error") if name in response}


def _remember_state(states: dict[str, Any], *, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """What was sealed then cannot be opened now: the next round is sent what was sealed now."""
    before, after = then.get("result"), now.get("result")
    if is_object(before) and is_object(after) and _STATE in before and _STATE in after:
        states[str(before[_STATE])] = after[_STATE]


def _title(exchange: Exchange) -> str:
    params = exchange.arguments
    subject = params.get("name") or params.get("uri") or ""
    rest = params.get("arguments", {}) if subject else params
    text = f"{exchange.method} {subject}".strip()
    said = msgspec.json.encode(rest).decode() if rest else ""
    return f"{text} {said if len(said) <= _LONGEST else said[:_LONGEST] + '…'}".strip()


# What the client answered when the server asked -----------------------------------------------------


def _answering(exchanges: list[Exchange]) -> ClientKeywords:
    """Handlers for what the client of then offered, which answer as it did, each kind in its order."""
    given: dict[str, list[Any]] = {}
    for exchange in exchanges:
        for message in exchange.meanwhile:
            answer = exchange.answers.get(message.get("id"), {}).get("result")
            if "id" in message and answer is not None:
                given.setdefault(message["method"], []).append(answer)
    offered = _offered(exchanges)
    keywords: ClientKeywords = {}
    if "elicitation" in offered:
        elicited = _Turns(given.get("elicitation/create", [{"action": "decline"}]))

        def elicit(_: ElicitParams) -> ElicitResult:
            return msgspec.convert(elicited.next(), ElicitResult)

        modes = offered["elicitation"]
        keywords["elicitation_handler"] = elicit
        keywords["elicitation_modes"] = tuple(modes) if is_object(modes) and modes else ("form",)
    if "sampling" in offered:
        sampled = _Turns(given.get("sampling/createMessage", []))

        def answer_sampling(_: Any) -> CreateMessageResult:
            return msgspec.convert(sampled.next(), CreateMessageResult)

        keywords["sampling_handler"] = answer_sampling
    if "roots" in offered:
        listed = _Turns(given.get("roots/list", [{"roots": []}]))

        def roots() -> list[Root]:
            return msgspec.convert(listed.next(), ListRootsResult).roots

        keywords["roots"] = roots
    return keywords


def _offered(exchanges: list[Exchange]) -> dict[str, Any]:
    """The capabilities that the client declared."""
    offered: dict[str, Any] = {}
    for exchange in exchanges:
        meta = exchange.params.get("_meta")
        said = exchange.params.get("capabilities") if exchange.method == INITIALIZE else None
        if said is None and is_object(meta):
            said = meta.get(_CAPABILITIES)
        if is_object(said):
            offered.update(said)
    return offered


class _Turns:
    """Values in their order, the last one again and again."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values
        self._at = -1

    def next(self) -> Any:
        """The next one. Raises RuntimeError where there is none."""
        if not self._values:
            raise RuntimeError("the recording has no answer to this question")
        self._at = min(self._at + 1, len(self._values) - 1)
        return self._values[self._at]
