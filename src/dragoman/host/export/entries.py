"""A server as an entry of another host's file, and what of it that host cannot say.

Pure. What would make another server of it costs the entry; what only makes it less convenient is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.host.config.claude.entries import RESERVED
from dragoman.host.export.draft import Draft
from dragoman.host.export.forms import Form
from dragoman.host.export.templates import WRITERS, Ref, Template, Unsayable, render
from dragoman.protocol.variables import CREDENTIALS

_CODEX_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_BETWEEN: Final[Mapping[str, tuple[float, float]]] = {
    "claude-code": (1, float("inf")),
    "cline": (1, 3600),
    "roo-code": (1, 3600),
}
"""Seconds of a call's timeout that the host takes as they are."""


@dataclass(slots=True)
class Written:
    """An entry under its name, of the server that is called `server` here.

    `notes` is what is not quite the same in it.
    """

    name: str
    server: str
    entry: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])


def write(server: Draft, form: Form, *, to: str, writer: str = "") -> Written:
    """The entry of a server in a host's form. `writer` is how references are written, if not as `to` does.

    Raises:
        Unsayable: the host cannot have this server; the message says why.
    """
    written = _Writing(server, form, to=to, writer=writer or to).done()
    try:
        json.dumps({written.name: written.entry}, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unsayable("half of a surrogate pair stands in it, which is no character") from None
    return written


class _Writing:
    """One entry on its way; `entry` gets its members in the order in which people write them."""

    def __init__(self, server: Draft, form: Form, *, to: str, writer: str) -> None:
        self._server = server
        self._form = form
        self._to = to
        self._writer = writer
        self._out = Written(_name(server.name, to), server.name)
        if self._out.name != server.name:
            self._note(f"it is called {self._out.name!r} there")

    def done(self) -> Written:
        self._transport()
        if self._server.transport == "stdio":
            self._program()
        else:
            self._remote()
        self._times()
        self._switches()
        self._tools()
        if self._server.rules:
            self._note("what may be called without asking is not carried over")
        return self._out

    def _note(self, text: str) -> None:
        if text not in self._out.notes:
            self._out.notes.append(text)

    def _say(self, what: str, template: Template) -> str:
        def note(text: str) -> None:
            self._note(f"`{what}`: {text}")

        try:
            return render(template, self._writer, places=self._server.places, note=note)
        except Unsayable as exc:
            raise Unsayable(f"`{what}`: {exc}") from None

    def _table(self, member: str, table: Mapping[str, Template]) -> None:
        if table:
            self._out.entry[member] = {
                name: self._say(f"{member}.{name}", value) for name, value in table.items()
            }

    # Transports --------------------------------------------------------------------------------------

    def _transport(self) -> None:
        server, form = self._server, self._form
        if server.transport not in form.types:
            raise Unsayable(f"it is reached over {server.transport}, which that host does not speak")
        kind = form.types[server.transport]
        if server.then_sse and form.fallback == "untyped":
            kind = None
        elif server.then_sse and form.fallback == "no" and server.transport == "http":
            self._note("the old transport (SSE) is not tried there where Streamable HTTP fails")
        elif server.transport == "sse" and form.fallback == "always":
            self._note("Streamable HTTP is tried first there")
        if kind is not None:
            self._out.entry["type"] = kind

    def _program(self) -> None:
        server, form, entry = self._server, self._form, self._out.entry
        command = self._say("command", server.command)
        args = [self._say(f"args[{at}]", word) for at, word in enumerate(server.args)]
        if self._to == "opencode":
            entry["command"] = [command, *args]
        else:
            entry["command"] = command
            if args:
                entry["args"] = args
        self._environment()
        for member, template, what in (
            (form.cwd, server.cwd, "the folder that it is started in"),
            (form.env_file, server.env_file, "its file of variables"),
        ):
            if template and member is not None:
                entry[member] = self._say(member, template)
            elif template:
                self._note(f"{what} cannot be said there")

    def _environment(self) -> None:
        """Variables: a host that replaces no references may still hand on those of the same name."""
        env = dict(self._server.env)
        same = [name for name, value in env.items() if _is_same(name, value)]
        if self._to == "zed":
            for name in same:
                del env[name]
                self._note(f"`env.{name}` is left out: the program has it from Zed's own environment")
        if self._to == "codex":
            plain = {name: value for name, value in env.items() if name not in same}
            self._table("env", plain)
            if same:
                self._out.entry["env_vars"] = same
                for name in same:
                    self._no_default(name, env[name])
            return
        self._table(self._form.env, env)

    def _no_default(self, name: str, value: Template) -> None:
        if any(isinstance(part, Ref) and part.default is not None for part in value):
            self._note(f"{name} has no default there: set it")

    def _remote(self) -> None:
        server, entry = self._server, self._out.entry
        entry["url"] = self._say("url", server.url)
        if self._to == "codex":
            self._codex_headers()
        else:
            self._table(self._form.headers, server.headers)
        if self._to == "claude-code":
            for name in _variables((server.url, *server.headers.values())):
                if name in CREDENTIALS:
                    self._note(f"{name} reads as empty there in what leaves the machine")

    def _codex_headers(self) -> None:
        named: dict[str, str] = {}
        plain: dict[str, Template] = {}
        for name, value in self._server.headers.items():
            match value:
                case ("Bearer ", Ref("env", variable)) if name.lower() == "authorization":
                    self._out.entry["bearer_token_env_var"] = variable
                case (Ref("env", variable),):
                    named[name] = variable
                case _:
                    plain[name] = value
            self._no_default(name, value)
        self._table("http_headers", plain)
        if named:
            self._out.entry["env_http_headers"] = named

    # The rest ----------------------------------------------------------------------------------------

    def _times(self) -> None:
        server, form = self._server, self._form
        for seconds, member, what in (
            (server.startup, form.startup, "the time that it may take to start"),
            (server.timeout, form.timeout, "the time that a call may take"),
        ):
            if seconds is None:
                continue
            if member is None:
                self._note(f"{what} ({seconds:g} s) cannot be said there")
                continue
            least, most = self._range(member)
            if not least <= seconds <= most:
                self._note(f"{what} ({seconds:g} s) is out of that host's range")
                continue
            units = round(seconds * member[1], 6)
            self._out.entry[member[0]] = int(units) if units == int(units) else units

    def _range(self, member: tuple[str, float]) -> tuple[float, float]:
        whole = (0.0, float("inf"))
        return _BETWEEN.get(self._to, whole) if member == self._form.timeout else whole

    def _switches(self) -> None:
        server, form = self._server, self._form
        if not server.enabled:
            if form.enabled is not None:
                self._out.entry[form.enabled] = False
            elif form.disabled is not None:
                self._out.entry[form.disabled] = True
            else:
                raise Unsayable("it is switched off, which cannot be said there")
        if server.required:
            if form.required is not None:
                self._out.entry[form.required] = True
            else:
                self._note("that nothing goes without it cannot be said there")

    def _tools(self) -> None:
        server, form, entry = self._server, self._form, self._out.entry
        if self._to == "copilot-cli":
            entry["tools"] = ["*"] if server.only_tools is None else list(server.only_tools)
        elif server.only_tools is not None and form.only_tools is not None:
            entry[form.only_tools] = list(server.only_tools)
        elif server.only_tools is not None:
            self._note(f"all of its tools are there, not only {_listed(server.only_tools)}")
        if server.without_tools and form.without_tools is not None:
            entry[form.without_tools] = list(server.without_tools)
        elif server.without_tools:
            self._note(f"{_listed(server.without_tools)} cannot be taken away there")


def _listed(tools: tuple[str, ...]) -> str:
    return ", ".join(tools) or "none"


def _name(name: str, to: str) -> str:
    """The name that the host takes. Raises Unsayable."""
    if name.startswith("plugin:"):
        name = name.split(":", 2)[-1]
    if to == "codex" and _CODEX_NAME.fullmatch(name) is None:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if to == "claude-code" and name in RESERVED:
        raise Unsayable("the name is reserved there")
    return name


def _is_same(name: str, value: Template) -> bool:
    """Whether a variable has the value of the variable of its own name."""
    return len(value) == 1 and isinstance(value[0], Ref) and value[0].kind == "env" and value[0].name == name


def _variables(templates: tuple[Template, ...]) -> Iterator[str]:
    for template in templates:
        for part in template:
            if isinstance(part, Ref) and part.kind == "env":
                yield part.name


def writer_of(to: str, file: str) -> str:
    """How references are written in a file: Continue has two ways, by the form of the file."""
    name = f"{to}-json" if file.endswith(".json") else to
    return name if name in WRITERS else to
