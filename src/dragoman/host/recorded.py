"""A call of a trace as it was decided then, and what differs from what would be decided now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.errors import UsageError
from dragoman.host.definition import hashed
from dragoman.host.explain import Facts
from dragoman.host.trace import HIDDEN, describe
from dragoman.host.trace.calls import Call, find
from dragoman.schema.shapes import is_array, is_object

_PARTS = {
    "title": "title",
    "description": "description",
    "inputSchema": "input schema",
    "outputSchema": "output schema",
    "annotations": "hints",
    "_meta": "wish to ask a person",
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One call as it stands in a trace: `called` is how to name its tool, `text` what became of it."""

    id: str
    called: str
    text: str
    details: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    faults: tuple[str, ...] = ()
    decision: Mapping[str, Any] | None = None
    config: str | None = None
    definition: Mapping[str, Any] | None = None
    by: str | None = None
    redacted: bool = False

    def record(self) -> dict[str, Any]:
        """The call as JSON shows it."""
        return {
            "call": self.id,
            "text": self.text,
            "by": self.by,
            "faults": self.faults,
            "decision": self.decision,
            "config": self.config,
        }


def recorded(path: Path | str, wanted: str) -> Recorded:
    """The call of a trace with an id, or the start of one.

    Raises:
        UsageError: there is none, or its first line is missing.
        LocalError: the trace cannot be read.
    """
    call = find(path, wanted)
    if call.use is None:
        raise UsageError(f"call {call.id}: the line with what the model called is not in the trace")
    line = call.use.full()
    block: Any = line.get("block")
    given: Any = block.get("input") if is_object(block) else None
    faults: Any = line.get("faults")
    decision: Any = line.get("decision")
    definition: Any = line.get("definition")
    known = call.server is not None and call.tool is not None
    said = tuple(str(item.get("text")) for item in (faults if is_array(faults) else ()) if is_object(item))
    return Recorded(
        id=call.id,
        called=f"{call.server}:{call.tool}" if known else call.name,
        text=_text(call),
        details=tuple(_details(said, decision)),
        arguments=given if is_object(given) else {},
        faults=said,
        decision=decision if is_object(decision) else None,
        config=line.get("config") if isinstance(line.get("config"), str) else None,
        definition=definition if is_object(definition) else None,
        by=None if call.result is None else call.result.facts.by,
        redacted=_holds(given, HIDDEN),
    )


def _text(call: Call) -> str:
    at = call.use.facts.at if call.use is not None else ""
    words = {
        "done": "the server answered",
        "error": "it ended in an error",
        "denied": "denied",
        "schema": "refused by the schema",
        "lock": "refused by the lock",
        "refused": "refused by the host",
        "open": "nothing is recorded of its end",
    }
    return f"{at}, call {call.id}: {words[call.outcome]}"


def _details(faults: tuple[str, ...], decision: Any) -> Iterator[str]:
    yield from faults
    if is_object(decision):
        yield str(decision.get("why"))
        lost: Any = decision.get("lost")
        for rule in lost if is_array(lost) else ():
            yield f"lost: {rule}"


def _holds(value: Any, text: str) -> bool:
    if is_object(value):
        return any(_holds(inner, text) for inner in value.values())
    if is_array(value):
        return any(_holds(inner, text) for inner in value)
    return isinstance(value, str) and text in value


def compared(then: Recorded, facts: Facts) -> Iterator[str]:
    """What differs between a recorded call and the same call now, a sentence for each."""
    if then.redacted:
        yield "secrets were taken out of the recorded arguments: what looks at them may come out otherwise"
    standing = facts.files.servers.get(facts.name.server)
    here = None if standing is None else str(standing.config.origin)
    if then.config is not None and here is not None and then.config != here:
        yield f"the server's entry was {then.config} and is {here}"
    yield from _defined(then, facts)
    judged = facts.judged
    if judged is not None and judged.tool is not None:
        now = tuple(str(fault) for fault in judged.faults)
        if bool(then.faults) != bool(now):
            yield (
                "the schema refused the arguments then and takes them now"
                if then.faults
                else (f"the schema took the arguments then and refuses them now: {'; '.join(now)}")
            )
    yield from _decided(then, facts)


def _defined(then: Recorded, facts: Facts) -> Iterator[str]:
    tool = None if facts.judged is None else facts.judged.tool
    if tool is None or then.definition is None:
        return
    now, _ = hashed(tool)
    changed = [word for part, word in _PARTS.items() if then.definition.get(part) != now.get(part)]
    if changed:
        yield f"the tool's {', '.join(changed)} changed since"


def _decided(then: Recorded, facts: Facts) -> Iterator[str]:
    if then.decision is None:
        return
    now = describe(facts.decision)
    answer = then.decision.get("answer")
    if answer is not None:
        yield f"a person was asked then, and said {'yes' if answer is True else 'no'}"
    effect = "ask" if answer is not None else then.decision.get("effect")
    if (effect, _rule(then.decision)) != (now["effect"], _rule(now)):
        yield f"then {effect} by {_rule(then.decision)}; now {now['effect']} by {_rule(now)}"


def _rule(decision: Mapping[str, Any]) -> str:
    rule, origin = decision.get("rule"), decision.get("origin")
    return "no rule" if rule is None else f"{rule} ({origin})"
