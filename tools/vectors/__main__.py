"""Run cases of hosts' behaviour through `dragoman.host`.

    python -m tools.vectors FILE

Prints the id of each case that fails, with what was expected and what was found, and then the sums. Exits
1 where a case failed, 2 where the file is none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from . import apis, claude, codex, others
from .expecting import differs
from .given import Given, kind_of

_APIS: Final = frozenset({"anthropic-messages", "openai-responses", "openai-chat", "gemini"})


@dataclass(frozen=True)
class Outcome:
    """One case: `why` it failed, None if it passed."""

    case: Mapping[str, Any]
    why: str | None

    @property
    def id(self) -> str:
        """The case's own name."""
        return str(self.case.get("id", "?"))


def find(case: Mapping[str, Any]) -> dict[str, Any]:
    """What is found for a case.

    Raises:
        ValueError: the case is of a kind, of a host or has members that are not known.
    """
    host, kind = str(case["host"]), kind_of(str(case["kind"]))
    given = Given(cast("Mapping[str, Any]", case["input"]), as_written=host in _APIS)
    if host in _APIS:
        found = apis.run(host, kind, given)
    elif host == "claude-code":
        found = claude.run(kind, given)
    elif host == "codex":
        found = codex.run(kind, given)
    else:
        found = others.run(host, kind, given)
    if unread := given.unread():
        raise ValueError(f"input: {', '.join(unread)}: not understood for kind {kind!r} of {host}")
    return found


def run(case: Mapping[str, Any]) -> Outcome:
    """Run one case. One that cannot be run has failed, and says why."""
    try:
        unsure = case.get("certainty") == "uncertain"
        return Outcome(case, differs(cast("Mapping[str, Any]", case["expect"]), find(case), unsure=unsure))
    except Exception as exc:  # noqa: BLE001  # whatever is wrong with one case is said of that case
        return Outcome(case, f"could not be run: {type(exc).__name__}: {exc}")


def load(path: Path) -> list[Mapping[str, Any]]:
    """The cases of a file."""
    content: Any = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(content, dict):
        content = cast("dict[str, Any]", content)["vectors"]
    return [cast("Mapping[str, Any]", case) for case in cast("list[object]", content)]


def main(arguments: list[str]) -> int:
    """Run the cases of one file."""
    if len(arguments) != 1:
        print("usage: python -m tools.vectors FILE", file=sys.stderr)
        return 2
    try:
        cases = load(Path(arguments[0]))
    except (OSError, ValueError, KeyError) as exc:
        print(f"{arguments[0]}: {type(exc).__name__}: {exc}", file=sys.stderr)
        return 2
    outcomes = [run(case) for case in cases]
    failed = [outcome for outcome in outcomes if outcome.why is not None]
    for outcome in failed:
        print(f"{outcome.id} ({outcome.case.get('certainty', '?')}): {outcome.why}")
    print(f"{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
