"""Texts of entries with the references in them taken apart, and put together as another host writes them.

Pure. A text that the other host would read differently is never written: `Unsayable` says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from dragoman.host.config.references import SYNTAXES

Kind: TypeAlias = Literal["env", "known", "asked"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference: to a variable of the environment, to a known place, or to what a person is asked for."""

    kind: Kind
    name: str
    default: str | None = None


Template: TypeAlias = tuple[str | Ref, ...]
"""Texts and references in turn; no two texts stand side by side, and none is empty."""


class Unsayable(Exception):
    """The other host has no way to say it: the message says what."""


@dataclass(frozen=True, slots=True)
class Writer:
    """How one host writes references, and how it reads them.

    `env` has `{}` in place of the name; None where nothing is replaced. `default` says that `${N:-text}`
    is written. `known` are the places that it knows by name.
    """

    syntax: str
    env: str | None = None
    default: bool = False
    known: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    @property
    def reads(self) -> re.Pattern[str] | None:
        """What the host takes for a reference."""
        return self.pattern or SYNTAXES[self.syntax].pattern


_EDITOR: Final = frozenset({"userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/"})
_BRACES: Final = "${{{}}}"
CONTINUE_JSON: Final = "continue-json"
WRITERS: Final[Mapping[str, Writer]] = {
    "claude-code": Writer("claude-code", _BRACES, default=True),
    "gemini-cli": Writer("gemini-cli", _BRACES, default=True),
    "copilot-cli": Writer("copilot-cli", _BRACES, default=True),
    "cursor": Writer("cursor", "${{env:{}}}", known=_EDITOR),
    "vscode": Writer("vscode", "${{env:{}}}", known=_EDITOR),
    "roo-code": Writer("roo-code", "${{env:{}}}", known=frozenset({"workspaceFolder"})),
    "opencode": Writer("opencode", "{{env:{}}}"),
    "continue": Writer("continue", "${{{{ secrets.{} }}}}"),
    # In files of JSON, where it takes another program's form.
    CONTINUE_JSON: Writer(
        "continue",
        _BRACES,
        pattern=re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|\$\{\{\s*secrets\.(?P<bare>\w+)\s*\}\}"),
    ),
    "codex": Writer("codex"),
    "zed": Writer("zed"),
    "cline": Writer("cline"),
    "claude-desktop": Writer("claude-desktop"),
}

_PROJECT: Final = Ref("env", "CLAUDE_PROJECT_DIR", ".")
"""How a file of Claude Code says the project's folder, by its own documentation."""


def parse(text: str, syntax: str, *, places: Mapping[str, str] | None = None) -> Template:
    """Take a text apart as the host reads it; names among `places` are replaced by what they stand for."""
    longest = SYNTAXES[syntax].longest
    if longest is not None and len(text) > longest:
        return _joined((text,))
    return _joined(_parts(text, SYNTAXES[syntax].pattern, places=places or {}))


def _parts(text: str, pattern: re.Pattern[str] | None, *, places: Mapping[str, str]) -> Iterator[str | Ref]:
    at = 0
    for found in () if pattern is None else pattern.finditer(text):
        yield text[at : found.start()]
        at = found.end()
        groups = found.groupdict()
        name = groups.get("name") or groups.get("bare")
        if name is None:
            known, asked = groups.get("known"), groups.get("asked")
            yield Ref("known", known) if known else Ref("asked", asked or "")
        elif name in places:
            yield places[name]
        else:
            yield Ref("env", name, groups.get("default"))
    yield text[at:]


def _joined(parts: Iterator[str | Ref] | Template) -> Template:
    joined: list[str | Ref] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return tuple(joined)


def render(template: Template, to: str, *, places: Mapping[str, str], note: Callable[[str], None]) -> str:
    """Put a text together as a host writes it.

    `places` has the values of known places, for a host that does not know them by name; `note` is told of
    what is not quite the same.

    Raises:
        Unsayable: it cannot be said, or would be read as something else.
    """
    writer = WRITERS[to]
    wanted = _joined(_translated(template, writer, places=places, note=note))
    text = "".join(part if isinstance(part, str) else _written(part, writer) for part in wanted)
    if _joined(_parts(text, writer.reads, places={})) != wanted:
        raise Unsayable("the text has something in it that would be read as a reference there")
    longest = SYNTAXES[writer.syntax].longest
    if longest is not None and len(text) > longest and any(isinstance(part, Ref) for part in wanted):
        raise Unsayable(f"references in texts of more than {longest} characters are not replaced there")
    return text


def _translated(
    template: Template, writer: Writer, *, places: Mapping[str, str], note: Callable[[str], None]
) -> Iterator[str | Ref]:
    for part in template:
        if isinstance(part, str):
            yield part
        elif part.kind == "known":
            yield _known(part, writer, places=places, note=note)
        else:
            yield _variable(part, writer, note=note)


def _known(ref: Ref, writer: Writer, *, places: Mapping[str, str], note: Callable[[str], None]) -> str | Ref:
    if ref.name in writer.known:
        return ref
    if ref.name == "workspaceFolder" and writer.syntax == "claude-code":
        return _PROJECT
    if ref.name == "userHome" and writer.env is not None:
        return Ref("env", "HOME")
    if ref.name not in places:
        raise Unsayable(f"the place ${{{ref.name}}} is not known there")
    note(f"${{{ref.name}}} is written out as it is on this machine")
    return places[ref.name]


def _variable(ref: Ref, writer: Writer, *, note: Callable[[str], None]) -> Ref:
    if ref.kind == "asked":
        if writer.syntax == "vscode" and ref.name.startswith("input:"):
            note(f"{ref.name.removeprefix('input:')!r} has to be among the `inputs` of the file")
            return ref
        if not ref.name.startswith("input:"):
            raise Unsayable("a value that is read from a file has no counterpart there")
        name = re.sub(r"\W", "_", ref.name.removeprefix("input:")).upper()
        note(
            f"what a person is asked for as {ref.name.removeprefix('input:')!r} is the variable {name} there"
        )
        ref = Ref("env", name)
    if replace(ref, default=None) == replace(_PROJECT, default=None) and "workspaceFolder" in writer.known:
        return Ref("known", "workspaceFolder")
    if writer.env is None:
        raise Unsayable(f"it refers to the variable {ref.name}, and no references are replaced there")
    if ref.default is not None and not writer.default:
        note(f"{ref.name} has no default there: set it")
        return replace(ref, default=None)
    return ref


def _written(ref: Ref, writer: Writer) -> str:
    if ref.kind != "env":
        return f"${{{ref.name}}}"
    if ref.default is not None:
        return f"${{{ref.name}:-{ref.default}}}"
    return (writer.env or "{}").format(ref.name)
