"""Cases of Codex, whose files are written as TOML with words around it."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from dragoman.host.config import codex
from dragoman.host.config.expand import environment, expand
from dragoman.host.config.record import Setup, Situation, Source
from dragoman.host.dialects import DIALECTS
from dragoman.host.permissions import Call
from dragoman.protocol.naming import Name

from . import paths
from .claude import children
from .codex_text import layers, trusted
from .expecting import Effect, Fact, Says, Seen
from .forms import Case, facts, is_list, listed, outcome, present, situation, table
from .naming import codex_name

_HOST: Final = DIALECTS["codex"]
_MODES: Final = ("auto", "prompt", "writes", "approve")


def run(kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of this kind."""
    if kind not in _KINDS:
        raise ValueError(f"kind {kind!r} is not known of this host: expected one of {', '.join(_KINDS)}")
    return _KINDS[kind](given)


def _told(given: Case) -> Situation:
    """The situation; a `mode` is that of approval, and stands in a file."""
    names = ("mode", "approval_mode", "run_mode", "permission_mode")
    found = situation(
        {name: given.get(name) for name in ("env", "cwd", "interactive", "headless") if name in given}
    )
    if any(str(given.get(name, "")) in ("exec", "headless", "-p") for name in names):
        found = situation({"interactive": False, "env": table(given.get("env"))})
    return Situation(
        folder=found.folder,
        trusted=trusted(given),
        interactive=found.interactive,
        env=found.env,
        home=found.home,
    )


def _read(given: Case, *, server: str = "a", bare: bool = False) -> tuple[Setup, Situation]:
    told = _told(given)
    files = [*layers(given, server=server, bare=bare), *_plugins(given)]
    mode = next((str(given[name]) for name in ("mode", "approval_mode") if name in given), "")
    if mode in _MODES and not any("approval_mode" in file.text for file in files):
        text = f"[mcp_servers.{server}]\ndefault_tools_approval_mode = {json.dumps(mode)}"
        files.append(Source(text, "cli", "cli", "config"))
    elif mode and mode not in _MODES:
        text = f"approval_policy = {json.dumps(mode)}"
        files.append(Source(text, "cli", "cli", "config"))
    return codex.read(files, told), told


def _plugins(given: Case) -> list[Source]:
    """A plugin's `.mcp.json`."""
    given.get("plugin")
    names = [name for name in given if name.endswith(".mcp.json")]
    return [Source(json.dumps(given[name]), name, "plugin", "plugin", "p") for name in names]


def _files(given: Case, *, bare: bool = False) -> dict[str, Any]:
    if (
        given.get("--strict-config") is True
        or given.get("strict_config") is True
        or given.get("strict") is True
    ):
        raise ValueError("strict checking of unknown keys is not part of what is matched")
    setup, told = _read(given, bare=bare)
    names = list(dict.fromkeys(standing.config.name for standing in setup))
    out = outcome(setup, told.env)
    if not names:
        return {**out, "server": present(setup, "a", env=told.env)}
    config = setup.servers[0].config
    full, _ = expand(config, told.env)
    child = environment(full, told.env)
    return {
        **{name: value for name, value in out.items() if name != "config"},
        **facts(config, told.env),
        "servers": out["servers"],
        "server": present(setup, names[0], env=told.env),
        "decision": present(setup, names[0], env=told.env),
        **children(child),
        "env": child,
        "config": out["config"],
        "parallel": config.raw.get("supports_parallel_tool_calls") is True,
        "on_failure": Says(config.required, "fail|error|abort" if config.required else "contin|skip|warn"),
    }


def _parse(given: Case) -> dict[str, Any]:
    # A table that is written out has what it has; keys alone are of a server that has the rest too.
    text = str(given.get("toml", ""))
    return _files(given, bare="[" in re.sub(r"=\s*\[", "", text))


# Calls ---------------------------------------------------------------------------------------------------


def _approval(given: Case) -> dict[str, Any]:
    text = " ".join(str(given.get(name, "")) for name in ("toml", "files", "layers"))
    server, tool = _meant(given, text)
    setup, told = _read(given, server=server)
    if setup.failure is not None:
        raise ValueError(setup.failure.text)
    decided = {
        name: _judge(setup, told, server, tool=name, given=given) for name in _tools(given, setup) or [tool]
    }
    first = decided[tool] if tool in decided else next(iter(decided.values()))
    ask = first.value == "ask"
    return {
        **decided,
        "decision": first,
        "decisions": list(decided.values()),
        "tool": Seen(first),
        "hidden": first.hidden,
        "visible": _Visible([name for name, effect in decided.items() if not effect.hidden]),
        **dict.fromkeys(("remember", "can_remember", "remember_option"), ask and not first.once),
        "parallel": table(given.get("annotations")).get("readOnlyHint") is True
        or any(config.raw.get("supports_parallel_tool_calls") is True for config in setup.active.values()),
    }


class _Decided(Effect):
    def __init__(self, value: str, *, hidden: bool, once: bool) -> None:
        super().__init__(value, hidden=hidden)
        self.once = once


class _Visible(Fact):
    """The tools that are there; for one alone, whether it is."""

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, bool):
            return wanted is bool(self.value)
        return is_list(wanted) and sorted(self.value) == sorted(listed(wanted))


def _judge(setup: Setup, told: Situation, server: str, *, tool: str, given: Case) -> _Decided:
    meta = {str(table(item).get("name")): table(item) for item in listed(given.get("tools"))}.get(tool, {})
    said = table(given.get("tool_meta")) or table(meta.get("_meta")) or _visibility(given)
    hints = table(given.get("annotations")) or table(meta.get("annotations"))
    call = Call(Name(tool, tool, server, tool), table(given.get("args")), hints, said)
    decision = _HOST.judge(setup, call, situation=told)
    return _Decided(decision.effect, hidden=decision.hidden, once=decision.once)


def _visibility(given: Case) -> dict[str, Any]:
    """What a text says of who sees the tool."""
    found = re.search(r"visibility\"?\s*[=:]?\s*(\[[^\]]*\])", str(given.get("toml", "")))
    return {} if found is None else {"ui": {"visibility": json.loads(found[1])}}


def _tools(given: Case, setup: Setup) -> list[str]:
    """The tools that a case asks of: its own, or those that its text or the entries speak of."""
    if "tools" in given or "tool" in given or "call" in given:
        return [str(table(item).get("name", item)) for item in listed(given.get("tools"))]
    found = re.search(r"\btools:? ((?:[\"'\w-]+(?:, ?| and |,? ))*[\"'\w-]+)\s*$", str(given.get("toml", "")))
    if found is not None:
        return [word.strip("\"'") for word in re.split(r", ?| and | ", found[1]) if word]
    named = [tool for config in setup.active.values() for tool in (config.only_tools or ())]
    return list(dict.fromkeys(named))


def _meant(given: Case, text: str) -> tuple[str, str]:
    """Server and tool of a case: of its call, or as its text names them."""
    server, slash, tool = str(given.get("call", "")).rpartition("/")
    if not slash and tool.startswith("mcp__"):
        server, _, tool = tool.removeprefix("mcp__").partition("__")
    server = server or str(given.get("server", ""))
    tool = str(given.get("tool", tool))
    found = re.search(r"mcp_servers\.([A-Za-z0-9_-]+)", text)
    inner = re.search(r"tools\.([A-Za-z0-9_-]+)", text)
    return server or (found[1] if found else "s"), tool or (inner[1] if inner else "t")


def _naming(given: Case) -> dict[str, Any]:
    text = str(given.get("toml", ""))
    if "visibility" in text or "visibility" in str(given.get("tool_meta", "")):
        return _approval(given)
    told = [str(name) for name in listed(given.get("servers"))] or (
        [str(given["server"])] if "server" in given else []
    )
    tools = [str(name) for name in listed(given.get("tools"))] or (
        [str(given["tool"])] if "tool" in given else []
    )
    length = re.search(r"tool(?: name)? of (\d+) (?:chars|characters|bytes)", text)
    if length is not None:
        tools = ["t" * int(length[1])]
    # "server(s) ... tool(s) ...": what is quoted before the word tool are servers.
    before, _, after = text.partition("tool")
    told = told or _quoted(before) or _quoted(text)[:1] or ["s"]
    if "empty tool" in text:
        tools = [""]
    tools = tools or _quoted(after)
    if not tools and "empty tool" not in text:
        raise ValueError("there is no tool")
    return codex_name(told, tools)


def _quoted(text: str) -> list[str]:
    return re.findall(r"[\"']([^\"']*)[\"']", text)


_KINDS: Final = {
    "parse": _parse,
    **dict.fromkeys(("env", "precedence", "trust", "timeout", "server-policy"), _files),
    **dict.fromkeys(("approval", "permission", "tool-filter", "parallel", "visibility"), _approval),
    "naming": _naming,
    **dict.fromkeys(("path", "paths", "file", "files", "location"), paths.codex),
}
