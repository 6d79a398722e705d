"""Who answers for the person: an option, the terminal, or nobody, which is a no."""

from __future__ import annotations

import signal
import sys
from typing import Literal

import msgspec

from dragoman.cli import output
from dragoman.host import Question

Preset = Literal["yes", "no"]


class Answers:
    """Answers the host's questions. `given` has those of the run, in order."""

    def __init__(self, preset: Preset | None) -> None:
        self._preset = preset
        self.given: list[bool] = []

    @property
    def source(self) -> str:
        """Where answers come from, for the reader."""
        if self._preset is not None:
            return f"--{self._preset}"
        return "the terminal" if sys.stdin.isatty() else "nobody: no terminal, so no"

    def __call__(self, question: Question) -> bool:
        """True for yes."""
        answer = self._preset == "yes"
        if self._preset is None and sys.stdin.isatty():
            answer = self._prompt(question)
        self.given.append(answer)
        return answer

    def _prompt(self, question: Question) -> bool:
        arguments = msgspec.json.encode(dict(question.arguments)).decode()
        output.note(
            f"\n    The model wants to call {question.name.tool} on {question.name.server}: {arguments}"
        )
        output.note(f"    It is asked about because of this: {question.decision.why}.")
        sys.stderr.write("    Allow it? [y]es, [a]lways in this demo, [N]o: ")
        sys.stderr.flush()
        said = _line().strip().lower()
        if said in ("a", "always"):
            self._preset = "yes"
        return said in ("y", "yes", "a", "always")


def _line() -> str:
    """A line of stdin. Ctrl-C ends the wait for it: the event loop's own handler would only note it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
