"""Two calls side by side: which of name, server, schema, permission, argument and result differs, and how.

Pure but for the lines that are read. "Passed yesterday, refused today, because ..." is a sentence of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman.errors import UsageError
from dragoman.host.change import changes
from dragoman.host.trace.calls import Call, calls, find
from dragoman.host.trace.reading import OnFault, definition
from dragoman.schema.difference import differences
from dragoman.schema.shapes import is_array, is_object

PARTS: Final = ("name", "server", "schema", "permission", "argument", "result")
_MOST: Final = 50  # lines of a part
_LONGEST: Final = 300  # characters of a reason


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs between two calls: lines by part, in the order of `PARTS`; `told` is all in a sentence."""

    was: Call
    now: Call
    told: str
    parts: dict[str, list[str]]

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.parts


def compare(was: Call, now: Call) -> Compared:
    """Compare two calls, the earlier one first."""
    old, new = _Facts(was), _Facts(now)
    found: dict[str, list[str]] = {
        "name": _fields(old.use, new.use, names={"model_name": "name", "server": "server", "tool": "tool"}),
        "server": _server(old, new),
        "schema": _schema(old, new),
        "permission": _permission(old.use, new.use),
        "argument": [str(each) for each in differences(old.arguments, new.arguments)],
        "result": _result(old, new),
    }
    parts = {name: _few(lines) for name, lines in found.items() if lines}
    return Compared(was, now, _told(old, new, parts=parts), parts)


class _Facts:
    """A call's lines in full."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.use: dict[str, Any] = {} if call.use is None else call.use.full()
        self.sent: dict[str, Any] = {} if call.sent is None else call.sent.full()
        self.result: dict[str, Any] = {} if call.result is None else call.result.full()
        block = self.use.get("block")
        self.arguments: Any = block.get("input", {}) if is_object(block) else {}

    @property
    def definition(self) -> dict[str, Any]:
        """The tool's definition, where it was kept."""
        return {} if self.call.use is None else definition(self.call.use)

    @property
    def text(self) -> str:
        """What the model was told, the texts of it."""
        block = self.result.get("block")
        content: Any = block.get("content") if is_object(block) else None
        if isinstance(content, str):
            return content
        texts = [item.get("text") for item in content if is_object(item)] if is_array(content) else []
        return "\n".join(text for text in texts if isinstance(text, str))


def _fields(was: dict[str, Any], now: dict[str, Any], *, names: dict[str, str]) -> list[str]:
    """The members of those names that differ, each by its word."""
    return [
        f"{word}: {_shown(was.get(name))} -> {_shown(now.get(name))}"
        for name, word in names.items()
        if was.get(name) != now.get(name)
    ]


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _server(old: _Facts, new: _Facts) -> list[str]:
    lines: list[str] = []
    if "config" in old.use and "config" in new.use:
        lines += _fields(old.use, new.use, names={"config": "entry"})
    if old.sent and new.sent:
        lines += _fields(old.sent, new.sent, names={"transport": "transport", "revision": "revision"})
    return lines


def _schema(old: _Facts, new: _Facts) -> list[str]:
    """How the tool's definition differs, and what its schema refused."""
    was, now = old.use.get("definition"), new.use.get("definition")
    lines: list[str] = []
    if is_object(was) and is_object(now):
        differ = [name for name in {**was, **now} if name != "kept" and was.get(name) != now.get(name)]
        if differ:
            then, this = old.definition, new.definition
            if all(
                (name in then or name not in was) and (name in this or name not in now) for name in differ
            ):
                lines += [str(change) for change in changes(then, this)]
            lines = lines or [f"{name}: {_which(was, now, name=name)}" for name in differ]
    if old.use.get("faults") != new.use.get("faults"):
        lines += [f"refused only then: {text}" for text in _faults(old.use)]
        lines += [f"refused now: {text}" for text in _faults(new.use)]
    return lines


def _which(was: dict[str, Any], now: dict[str, Any], *, name: str) -> str:
    if name not in was:
        return "was not there"
    return "is no longer there" if name not in now else "differs; the texts were not kept"


def _faults(use: dict[str, Any]) -> Iterator[str]:
    faults: Any = use.get("faults")
    for fault in faults if is_array(faults) else ():
        if is_object(fault):
            yield str(fault.get("text"))


def _permission(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    old, new = was.get("decision"), now.get("decision")
    if not is_object(old) or not is_object(new):
        if old is None and new is None:
            return []
        decided = _rule(new) if is_object(new) else "not asked for: the call did not come so far"
        before = _rule(old) if is_object(old) else "not asked for: the call did not come so far"
        return [f"{before} -> {decided}"]
    lines: list[str] = []
    if _rule(old) != _rule(new):
        lines.append(f"{_rule(old)} -> {_rule(new)}")
    lines += _fields(old, new, names={"answer": "a person's answer"})
    if not lines and old.get("why") != new.get("why"):
        lines.append(f"{old.get('why')} -> {new.get('why')}")
    lost, now_lost = _texts(old.get("lost")), _texts(new.get("lost"))
    lines += [f"no longer among the rules that lost: {text}" for text in lost if text not in now_lost]
    lines += [f"now among the rules that lost: {text}" for text in now_lost if text not in lost]
    return lines


def _texts(value: Any) -> list[str]:
    return [str(each) for each in value] if is_array(value) else []


def _rule(decision: dict[str, Any]) -> str:
    rule, origin = decision.get("rule"), decision.get("origin")
    if rule is None:
        return f"{decision.get('effect')}, by no rule"
    return f"{decision.get('effect')} by {rule} ({origin})"


def _result(old: _Facts, new: _Facts) -> list[str]:
    lines: list[str] = []
    if old.call.outcome != new.call.outcome:
        lines.append(f"{_WORDS[old.call.outcome]} -> {_WORDS[new.call.outcome]}")
    lines += _fields(old.result, new.result, names={"by": "answered by"})
    was, now = old.result.get("block"), new.result.get("block")
    if is_object(was) and is_object(now):
        found = differences(was, now, ignore=("tool_use_id", "is_error"))
        lines += [line for each in found for line in str(each).splitlines()]
    return lines


def _few(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _MOST else [*lines[:_MOST], f"... and {len(lines) - _MOST} lines more"]


# The sentence --------------------------------------------------------------------------------------------

_WORDS: Final = {
    "done": "passed",
    "error": "ended in an error",
    "denied": "was denied",
    "schema": "was refused by the schema",
    "lock": "was stopped by the lock",
    "refused": "was refused by the host",
    "open": "has no result",
}


def _told(old: _Facts, new: _Facts, *, parts: dict[str, list[str]]) -> str:
    before, after = old.call, new.call
    name = after.name if after.name == before.name else f"{before.name} / {after.name}"
    when = f"{name} {_WORDS[before.outcome]} at {_at(before)}"
    if before.outcome == after.outcome:
        return f"{when} and {_WORDS[after.outcome]} at {_at(after)}{_but(parts)}"
    because = _because(new, parts=parts)
    return f"{when}, {_WORDS[after.outcome]} at {_at(after)}" + (f", because {because}" if because else "")


def _but(parts: dict[str, list[str]]) -> str:
    return (
        f"; {', '.join(parts)} {'differs' if len(parts) == 1 else 'differ'}" if parts else "; nothing differs"
    )


def _because(new: _Facts, *, parts: dict[str, list[str]]) -> str:
    """What the later call came to, and what of before it differs."""
    reason = _reason(new)
    causes = [name for name in parts if name != "result"]
    if not causes:
        return reason or "the server answered differently"
    verb = "differs" if len(causes) == 1 else "differ"
    told = f"{', '.join(causes)} {verb}"
    return f"{reason}; {told}" if reason else told


def _reason(facts: _Facts) -> str:
    outcome = facts.call.outcome
    decision = facts.use.get("decision")
    if outcome == "denied" and is_object(decision):
        rule = decision.get("rule")
        if decision.get("answer") is False:
            return "a person said no"
        return _short(
            f"{decision.get('why')}" if rule is None else f"of the rule {rule} ({decision.get('origin')})"
        )
    if outcome == "schema":
        return _short("; ".join(_faults(facts.use)) or facts.text)
    if outcome in ("lock", "refused", "error"):
        return _short(facts.text)
    return ""


def _short(text: str) -> str:
    flat = " ".join(text.split()).rstrip(".")
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…"


def _at(call: Call) -> str:
    begun = call.begun
    return "an unknown time" if begun is None else begun.strftime("%Y-%m-%d %H:%M:%S")


# Which two -----------------------------------------------------------------------------------------------


def pair(path: Path | str, *names: str, on_fault: OnFault | None = None) -> tuple[Call, Call]:
    """The two calls that are meant, the earlier one first.

    Two names or ids mean those calls (of a name, the newest). One means the newest call of that name, or the
    call of that id, and the last call of the same name before it that came out differently; if there is
    none, the last before it.

    Raises:
        UsageError: there is no such call, or none before it, or a file cannot be read.
    """
    if len(names) == 2:
        first, second = (_one(path, name, on_fault=on_fault) for name in names)
        return first, second
    now = _one(path, names[0], on_fault=on_fault)
    earlier: dict[str, Call] = {}
    for call in calls(path):
        if call.id == now.id:
            break
        if _is_same(call, now):
            earlier.pop(call.outcome, None)
            earlier[call.outcome] = call  # the newest of each outcome, in their order
    if not earlier:
        raise UsageError(f"there is no call of {now.name} before {now.id} to compare it with")
    # What passed says most about what did not.
    passed = earlier.get("done") if now.outcome != "done" else None
    others = [call for outcome, call in earlier.items() if outcome != now.outcome]
    return passed or (others[-1] if others else list(earlier.values())[-1]), now


def _is_same(one: Call, other: Call) -> bool:
    if one.tool is not None and other.tool is not None:
        return (one.server, one.tool) == (other.server, other.tool)
    return one.name == other.name


def _one(path: Path | str, name: str, *, on_fault: OnFault | None) -> Call:
    newest: Call | None = None
    for call in calls(path, on_fault=on_fault):
        if name in (call.name, call.tool, f"{call.server}/{call.tool}", f"{call.server}:{call.tool}"):
            newest = call
    return find(path, name) if newest is None else newest
