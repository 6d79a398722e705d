"""The forms in which cases write files, servers and calls, as sources and calls of `dragoman.host`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard, cast

from dragoman.host.config.expand import expand
from dragoman.host.config.limits import limits
from dragoman.host.config.record import Scope, ServerConfig, Setup, Situation, Source
from dragoman.host.config.references import SYNTAXES, Replacing
from dragoman.host.permissions import Call
from dragoman.protocol.naming import Name

from .expecting import Fact, Mentions, Present, Says, Transport, agrees
from .findings import Servers

Case: TypeAlias = Mapping[str, Any]

_CONNECT: Final = ("connection_timeout_s", "connection_s", "connect_s", "connect_timeout_s")
FOLDER: Final = "/p"
HOME: Final = "/home/u"


def is_table(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value is an object."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a list."""
    return isinstance(value, list)


def table(value: Any) -> dict[str, Any]:
    """A value that is an object, or an empty one."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    """A value that is a list, or an empty one."""
    return list(cast("Sequence[Any]", value)) if isinstance(value, list) else []


def source(
    content: Any, file: str, *, scope: Scope = "project", kind: str = "servers", **more: Any
) -> Source:
    """A file of a case: JSON where it is given as a value."""
    text = content if isinstance(content, str) else json.dumps(content)
    return Source(text, file, scope, kind, **more)


_HEADLESS: Final = re.compile(
    r"(?:^|[ (])-p\b|\b(?:print|headless|sdk|cloud|non-?interactive|ci|exec|batch)\b", re.IGNORECASE
)
_SURFACE: Final = re.compile(r"^$|^(?:interactive|tui|ide|editor|terminal)\b", re.IGNORECASE)


def situation(given: Case, **more: Any) -> Situation:
    """The situation that a case speaks of: of `mode`, what is no surface is the permission mode."""
    said = [
        str(given[name]) for name in ("permission_mode", "approval_mode", "run_mode", "mode") if name in given
    ]
    modes = [text for text in said if _SURFACE.search(text) is None and _HEADLESS.search(text) is None]
    asks = given.get("interactive", given.get("headless") is not True and given.get("can_ask") is not False)
    if any(_HEADLESS.search(text) is not None for text in said):
        asks = False
    told: dict[str, Any] = {
        "folder": str(given.get("cwd", given.get("project_dir", FOLDER))),
        "home": str(given.get("home", HOME)),
        "env": {name: str(value) for name, value in table(given.get("env")).items()},
        "interactive": bool(asks),
        "mode": modes[0] if modes else "",
    }
    if "trusted" in given:
        told["trusted"] = given["trusted"] in (True, "trusted", "accepted")
    return Situation(**{**told, **more})


def hook(given: Case) -> Any:
    """What a hook said: in words, or as its answer."""
    said = given.get("pre_tool_use_hook", "")
    text = json.dumps(said).lower()
    if re.search(r"exit[^a-z]*(?:code)?[^a-z0-9]*2|^\"?2\"?$", text) is not None:
        return "deny"
    found = re.search(r"\b(allow|deny|ask|approve|block)", text)
    return "" if found is None else {"approve": "allow", "block": "deny"}.get(found[1], found[1])


def call(name: str, given: Case, *, separator: str | None = None) -> Call:
    """The call of a case: `mcp__server__tool`, or server and tool with a separator between."""
    if separator is not None:
        server, _, tool = name.partition(separator)
    else:
        server, _, tool = name.removeprefix("mcp__").partition("__")
    return Call(
        Name(name, name, server, tool),
        table(given.get("args")),
        table(given.get("annotations")),
        table(given.get("tool_meta")),
        hook=hook(given),
        connector=given.get("org_tool_setting", ""),
    )


def calls(given: Case) -> list[str]:
    """The calls that a case asks about, in its own words."""
    for name in ("calls", "tools"):
        if is_list(given.get(name)):
            return [str(table(item).get("name", item)) for item in listed(given[name])]
    return [str(given["call"])] if "call" in given else []


def facts(config: ServerConfig, env: Mapping[str, str]) -> dict[str, Any]:
    """What a case may ask of a server, its references replaced."""
    full, missing = expand(config, env)
    times = limits(config, env)
    deprecated = any("deprecated" in text for text in config.warnings)
    return {
        **raw(config, env),
        "transport": Transport(config.transport, then_sse=None if _unsaid(config) else config.then_sse),
        "command": full.command,
        "args": list(full.args),
        "argv": [full.command, *full.args],
        "env": dict(full.env),
        "cwd": full.cwd,
        "url": full.url,
        "headers": dict(full.headers),
        "from": From(config),
        "scope": From(config),
        "source": From(config),
        "enabled": config.enabled,
        "required": config.required,
        "deprecated": deprecated,
        "oauth": SignIn(config.raw.get("oauth", config.sign_in), config.sign_in),
        "trust": bool(config.rules),
        "timeout_ms": milliseconds(times.call),
        "timeout_s": times.call,
        "timeout": times.call,
        "tool_call_ms": milliseconds(times.call),
        "startup_ms": milliseconds(times.startup),
        "idle_ms": Off(milliseconds(times.idle)),
        "first_byte_ms": milliseconds(times.first_byte),
        **dict.fromkeys(("startup_s", "startup_timeout_s", *_CONNECT), times.startup),
        **dict.fromkeys(("connection_timeout_ms", "connect_ms"), milliseconds(times.startup)),
        "first_byte_s": times.first_byte,
        "idle_s": times.idle,
        "reconnect": config.transport != "stdio",
        "transport_fallback": "sse" if config.then_sse else None,
        **dict.fromkeys(("tool_s", "tool_call_s", "tool_timeout_s", "call_s"), times.call),
        **dict.fromkeys(("tool_ms", "tool_timeout_ms", "call_ms"), milliseconds(times.call)),
        "missing": list(missing),
    }


def raw(config: ServerConfig, env: Mapping[str, str]) -> dict[str, Any]:
    """The other members of an entry, with their references replaced as in its arguments."""
    replacing = Replacing(SYNTAXES[config.syntax], env, config.variables, remote=False)

    def full(value: Any) -> Any:
        if isinstance(value, str):
            return replacing.text(value)
        if is_table(value):
            return {name: full(item) for name, item in table(value).items()}
        return value

    return {name: full(value) for name, value in config.raw.items()}


def _unsaid(config: ServerConfig) -> bool:
    """Whether it is not known what this host does with an address alone, but that it is no program."""
    return config.host == "cursor" and config.transport == "http"


class From(Fact):
    """Where an entry came from: by its scope, or by the file."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config.scope)
        self.file = config.origin.file

    def fits(self, wanted: Any) -> bool:
        words = {"cli": ("--mcp-config", "cli", "command line"), "managed": ("managed",)}
        text = str(wanted)
        if text in (self.value, self.file):
            return True
        return any(text.startswith(word) for word in words.get(self.value, (self.value,)))


class Off(Fact):
    """A time; None is said as 0 or in words too."""

    def fits(self, wanted: Any) -> bool:
        if self.value is None:
            return wanted in (None, 0, False, "off", "none", "never", "disabled")
        return bool(wanted == self.value)


class SignIn(Fact):
    """Whether a host signs in, or what an entry says of that."""

    def __init__(self, value: Any, signs: bool) -> None:  # it is the one value
        super().__init__(value)
        self.signs = signs

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, bool):
            return wanted is self.signs
        if is_table(wanted):
            return agrees("oauth", wanted, found=self.value)
        text = str(wanted).lower()
        first = text.split(" when ")[0]
        if re.search(r"unsupported|none|\bnot?\b|never|off|false|skipped|disabled", first) is not None:
            return not self.signs
        return self.signs and re.search(r"start|auto|supported|\bon\b|yes|true|used|sign", first) is not None


def milliseconds(seconds: float | None) -> int | None:
    """A time in whole milliseconds."""
    return None if seconds is None else round(seconds * 1000)


def present(setup: Setup, name: str, *, env: Mapping[str, str] | None = None) -> Present:
    """Whether a server is used, and starts."""
    if setup.failure is not None:
        return Present(False, setup.failure.text)
    standing = setup.find(name)
    if standing is None:
        left = [problem.text for problem in setup.problems if problem.server == name]
        return Present(False, left[0] if left else "there is no such server")
    if standing.state != "active":
        return Present(False, f"{standing.state}: {standing.why}")
    if env is not None:
        _, missing = expand(standing.config, env)
        if missing:
            return Present(False, f"no value for {', '.join(missing)}")
    return Present(True)


def outcome(setup: Setup, env: Mapping[str, str]) -> dict[str, Any]:
    """What is found of all servers of a host: those in use, those that are not, and what was wrong."""
    left = {problem.server: problem.text for problem in setup.problems if problem.server is not None}
    waiting = {item.config.name: f"{item.state}: {item.why}" for item in setup}
    used = {name: facts(config, env) for name, config in setup.active.items()}
    others = {name: Present(False, why) for name, why in {**left, **waiting}.items() if name not in used}
    failed = setup.failure is not None
    told = setup.failure.text if setup.failure else ""
    whole = Present(not failed, told, hurt=bool(setup.problems), empty=bool(setup.problems) and not used)
    broken = failed or any(problem.server is None for problem in setup.problems)
    texts = [text for item in setup for text in item.config.warnings]
    texts += [problem.text for problem in setup.problems]
    skipped = Named({name: Says(text, "") for name, text in left.items()})
    return {
        "servers": Servers(used, others, [item.config.name for item in setup if item.state == "active"]),
        "connected": sorted(used),
        "loaded": sorted(used),
        **dict.fromkeys(("suppressed", "shadowed"), sorted(waiting.keys() - used.keys())),
        **dict.fromkeys(("file", "config", "settings", "config_loads", "loads", "result"), whole),
        **dict.fromkeys(("skipped", "errors", "mcp_server_errors", "failed", "dropped"), skipped),
        "config_error": broken,
        "error": Says("", "") if failed or setup.problems else Fact(None),
        **dict.fromkeys(("warnings", "warning"), Mentions(texts)),
    }


class Named(Fact):
    """What became of some servers: a table, or their names alone."""

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, list):
            return sorted(self.value) == sorted(str(name) for name in listed(wanted))
        if isinstance(wanted, str):
            return list(self.value) == [wanted]
        return agrees("skipped", wanted, found=self.value)
