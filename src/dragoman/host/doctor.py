"""What `dragoman doctor` looks at, one step at a time, each with what to do. Pure but for looking on PATH.

Who connects and lists is `diagnosis`; here is what is made of what was seen.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from dragoman.host.models import APIS
from dragoman.host.models.base import Shown
from dragoman.host.naming import HostNames
from dragoman.host.search import LIMIT
from dragoman.host.suspicion import inspect
from dragoman.host.tokens import cost
from dragoman.model import Tool

Mark: TypeAlias = Literal["ok", "warn", "fail", "skip"]

DEAR: Final = 10_000
"""Tokens of one server's definitions from which on they are worth a warning."""
_SLOW: Final = 5.0  # seconds: a person waits for the start of each session

# Hosts that are started from a desktop, and so do not have what a shell's start file puts on PATH.
_DESKTOP: Final = frozenset({"claude-desktop", "cursor", "vscode", "zed", "cline", "roo-code", "continue"})
_DESKTOP_PATH: Final = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
# Where programs are that a shell finds and others do not, and who put them there.
_ELSEWHERE: Final[tuple[tuple[str, str], ...]] = (
    (".nvm/versions/node/*/bin", "nvm"),
    (".fnm/node-versions/*/installation/bin", "fnm"),
    (".volta/bin", "Volta"),
    (".asdf/shims", "asdf"),
    (".local/share/mise/shims", "mise"),
    (".pyenv/shims", "pyenv"),
    (".local/bin", "a user's own installation"),
    (".cargo/bin", "cargo"),
    (".bun/bin", "bun"),
    (".deno/bin", "deno"),
    ("/opt/homebrew/bin", "Homebrew"),
    ("/home/linuxbrew/.linuxbrew/bin", "Homebrew"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was looked at: `text` is what was seen, `fix` what to do, "" where all is well."""

    name: str
    mark: Mark
    text: str
    fix: str = ""


def program(command: str, *, path: str, home: Path, host: str = "") -> Step:
    """Whether a program is there, and whether the host would find it too.

    `path` is the PATH that the server is started with, `home` the person's folder.
    """
    if os.sep in command:
        found = shutil.which(command)
        if found is None:
            return Step(
                "program", "fail", f"{command}: no such program", "write the path of one that is there"
            )
        return Step("program", "ok", command)
    found = shutil.which(command, path=path)
    if found is None:
        return _absent(command, home)
    if host in _DESKTOP and shutil.which(command, path=os.pathsep.join(_DESKTOP_PATH)) is None:
        who = _who(Path(found), home)
        reason = f"{found} is on PATH by {who}" if who else f"{found} is on this shell's PATH"
        text = f"{reason}, which a host that is started from the desktop may not have"
        return Step("program", "warn", text, f"write the full path in the entry: {found}")
    return Step("program", "ok", found)


def _absent(command: str, home: Path) -> Step:
    for pattern, who in _ELSEWHERE:
        base, rest = (Path("/"), pattern[1:]) if pattern.startswith("/") else (home, pattern)
        for folder in sorted(base.glob(rest), reverse=True):
            if (found := shutil.which(command, path=str(folder))) is not None:
                text = f"{command} is not on PATH; {who} has it at {found}"
                return Step("program", "fail", text, f"write the full path in the entry: {found}")
    return Step("program", "fail", f"{command} is not on PATH", "install it, or write its full path")


def _who(found: Path, home: Path) -> str:
    for pattern, who in _ELSEWHERE:
        full = pattern if pattern.startswith("/") else f"{home}/{pattern}"
        if found.parent.match(full):
            return who
    return ""


def start(seconds: float) -> Step:
    """How long it took until the tools were listed."""
    if seconds <= _SLOW:
        return Step("start", "ok", f"{seconds:.2f} s until the tools were listed")
    text = f"{seconds:.1f} s until the tools were listed"
    return Step("start", "warn", text, "install what it needs beforehand, rather than at each start")


def output(facts: Mapping[str, Any]) -> Step | None:
    """Whether stdout has messages alone; None for a server that has no stdout."""
    if "noise" not in facts:
        return None
    count, lines = facts["noise"], facts.get("noise_lines", ())
    if not count:
        return Step("stdout", "ok", "messages alone")
    many = "1 line that is no message" if count == 1 else f"{count} lines that are no messages"
    shown = f"{many}; the first: {lines[0]!r}" if lines else many
    return Step("stdout", "warn", shown, "print to stderr: other hosts may give up at such a line")


def listing(tools: Sequence[Tool]) -> Step:
    """What is listed."""
    if not tools:
        return Step("tools", "warn", "none are listed")
    bare = [tool.name for tool in tools if tool.description in (UNSET, "")]
    many = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
    if bare:
        return Step("tools", "warn", f"{many}, {_some(bare)} without a description", "say what it is for")
    return Step("tools", "ok", many)


def schemas(shown: Sequence[Shown]) -> list[Step]:
    """What each model's API makes of the tools: which it refuses, and what it cannot be told."""
    steps: list[Step] = []
    for name, api in APIS.items():
        made = api.definitions(shown)
        if made.left_out:
            first = made.left_out[0]
            text = f"{_some([item.name for item in made.left_out])} cannot be shown: {first.why}"
            steps.append(Step(name, "fail", text, "change the name or the schema"))
        elif made.dropped:
            lost = made.dropped[0]
            where = f"{lost.name}{lost.path}: {lost.keyword}: {lost.why}"
            more = f" (and {len(made.dropped) - 1} more)" if len(made.dropped) > 1 else ""
            steps.append(
                Step(name, "warn", f"{where}{more}", "the server still checks it; say it in words too")
            )
        else:
            steps.append(Step(name, "ok", "every schema is taken as it is"))
    return steps


def names(host: str, pairs: Iterable[tuple[str, str]]) -> Step:
    """Whether the host can name all tools of a server apart."""
    table = HostNames(host, pairs)
    if table.left_out:
        (_, tool), why = next(iter(table.left_out.items()))
        many = f" (and {len(table.left_out) - 1} more)" if len(table.left_out) > 1 else ""
        return Step("names", "fail", f"{host} leaves out {tool!r}{many}: {why}", "give it a shorter name")
    longest = max((name.model for name in table), key=len, default="")
    text = f"the longest is {longest} ({len(longest)} characters)" if longest else "none"
    other = [f"{name.tool!r} is shown as {name.model}" for name in table if name.tool not in name.model]
    return Step("names", "ok", f"{text}; {_some(other)}" if other else text)


def words(server: str, tools: Iterable[Tool]) -> Step:
    """What in the tools' texts is suspicious."""
    found = [finding for tool in tools for finding in inspect(server, msgspec.to_builtins(tool))]
    if not found:
        return Step("words", "ok", "nothing hidden, no orders to the model")
    more = f" (and {len(found) - 1} more; `dragoman lock` tells all)" if len(found) > 1 else ""
    return Step("words", "warn", f"{found[0]}{more}", "read the descriptions before you trust the server")


def price(shown: Iterable[Shown]) -> Step:
    """What the definitions cost in each request."""
    total = sum(cost(item.name, item.tool) for item in shown)
    text = f"about {total:,} tokens in each request that shows all tools"
    if total < DEAR:
        return Step("cost", "ok", text)
    fix = f"let the model search for tools, {LIMIT} at a time, or switch off those that are not used"
    return Step("cost", "warn", text, fix)


def _some(names_: Sequence[str]) -> str:
    return names_[0] if len(names_) == 1 else f"{names_[0]} and {len(names_) - 1} more"
