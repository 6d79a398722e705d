"""The forms in which cases write files, servers and calls, as sources and calls of `dragoman.host`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from dragoman.host.config.expand import expand
from dragoman.host.config.limits import limits
from dragoman.host.config.record import Scope, ServerConfig, Setup, Situation, Source
from dragoman.host.permissions import Call
from dragoman.protocol.naming import Name

from .expecting import Present, Transport

Case: TypeAlias = Mapping[str, Any]

FOLDER: Final = "/p"
HOME: Final = "/home/u"


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


def situation(given: Case, **more: Any) -> Situation:
    """The situation that a case speaks of."""
    mode = given.get("permission_mode", given.get("run_mode", ""))
    said = str(given.get("mode", ""))
    asks = given.get("interactive", given.get("headless") is not True)
    if said in ("-p", "print", "headless", "sdk", "non-interactive", "noninteractive", "ci"):
        asks = False
    told: dict[str, Any] = {
        "folder": str(given.get("cwd", given.get("project_dir", FOLDER))),
        "home": HOME,
        "env": {name: str(value) for name, value in table(given.get("env")).items()},
        "interactive": bool(asks),
        "mode": str(mode or ""),
    }
    if "trusted" in given:
        told["trusted"] = given["trusted"] is True
    return Situation(**{**told, **more})


def call(name: str, given: Case, *, separator: str | None = None) -> Call:
    """The call of a case: `mcp__server__tool`, or server and tool with a separator between."""
    if separator is not None:
        server, _, tool = name.partition(separator)
        full = name
    else:
        server, _, tool = name.removeprefix("mcp__").partition("__")
        full = name
    hook = {"allow": "allow", "deny": "deny", "ask": "ask"}.get(str(given.get("pre_tool_use_hook", "")), "")
    if "2" in str(given.get("pre_tool_use_hook", "")):
        hook = "deny"
    return Call(
        Name(full, full, server, tool),
        table(given.get("args", given.get("arguments"))),
        table(given.get("annotations")),
        table(given.get("tool_meta", given.get("_meta"))),
        hook=cast("Any", hook),
        connector=given.get("org_tool_setting", ""),
    )


def facts(config: ServerConfig, env: Mapping[str, str]) -> dict[str, Any]:
    """What a case may ask of a server, its references replaced."""
    full, missing = expand(config, env)
    times = limits(config, env)
    deprecated = any("deprecated" in text for text in config.warnings)
    return {
        "transport": Transport(config.transport, then_sse=config.then_sse),
        "command": full.command,
        "args": list(full.args),
        "argv": [full.command, *full.args],
        "env": dict(full.env),
        "cwd": full.cwd,
        "url": full.url,
        "headers": dict(full.headers),
        "from": config.scope,
        "enabled": config.enabled,
        "required": config.required,
        "deprecated": deprecated,
        "oauth": config.sign_in,
        "trust": bool(config.rules),
        "timeout_ms": milliseconds(times.call),
        "timeout_s": times.call,
        "timeout": times.call,
        "tool_call_ms": milliseconds(times.call),
        "startup_ms": milliseconds(times.startup),
        "idle_ms": milliseconds(times.idle),
        "first_byte_ms": milliseconds(times.first_byte),
        "startup_s": times.startup,
        "connection_timeout_s": times.startup,
        "transport_fallback": "sse" if config.then_sse else None,
        "tool_s": times.call,
        "missing": list(missing),
    }


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


def words(text: Any) -> list[str]:
    """The words of a text."""
    return re.findall(r"[A-Za-z0-9_.-]+", str(text))
