"""Cases of Claude Code."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from dragoman.host.config import claude
from dragoman.host.config.expand import environment, expand
from dragoman.host.config.limits import description_limit, output_limits
from dragoman.host.config.record import Scope, Setup, Situation, Source
from dragoman.host.deferral import always_loaded, defers
from dragoman.host.dialects import DIALECTS
from dragoman.host.hooks import hook_matches
from dragoman.host.models import MESSAGES
from dragoman.host.models.base import Shown
from dragoman.host.naming import connector, name_of, prompt_command, registered
from dragoman.host.permissions.claude import answered
from dragoman.model import Tool
from dragoman.protocol.naming import Names

from .expecting import Child, Effect, Fact, Mentions, Present, Says, State, agrees
from .forms import Case, call, facts, listed, present, situation, source, table

_HOST: Final = DIALECTS["claude-code"]
_SCOPES: Final[tuple[Scope, ...]] = ("managed", "cli", "local", "project", "user")


def run(kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of this kind."""
    return _KINDS[kind](given)


# Files ---------------------------------------------------------------------------------------------------


def sources(given: Case) -> list[Source]:
    """The files of a case."""
    found = [_file(name, content) for name, content in table(given.get("files")).items()]
    bare = ("managed-mcp.json", "--mcp-config", "managed-settings.json", ".mcp.json", "~/.claude.json")
    found += [_file(name, given[name]) for name in bare if name in given]
    words = listed(given.get("argv"))
    for at, word in enumerate(words[:-1]):
        if word == "--mcp-config":
            found.append(_file("--mcp-config", words[at + 1]))
    if "entry" in given:
        found.append(_entry(given))
    if "managed" in given:
        found.append(source(given["managed"], "managed-settings.json", scope="managed", kind="settings"))
    if "managedMcpServers" in given:
        content = {"managedMcpServers": given["managedMcpServers"]}
        found.append(source(content, "managed-settings.json", scope="managed", kind="settings"))
    if "approved" in given:
        content = {"enabledMcpjsonServers": given["approved"]}
        found.append(source(content, "~/.claude/settings.json", scope="user", kind="settings"))
    return found


def _entry(given: Case) -> Source:
    known = {
        "CLAUDE_PLUGIN_ROOT": given.get("plugin_root"),
        "CLAUDE_PLUGIN_DATA": given.get("plugin_data"),
        "CLAUDE_PROJECT_DIR": given.get("project_dir"),
    }
    content = {"mcpServers": {"s": given["entry"]}}
    if given.get("plugin_root") is None and given.get("plugin_data") is None and "plugin" not in given:
        return source(content, "~/.claude.json", scope="user", kind="servers")
    variables = {name: str(value) for name, value in known.items() if value is not None}
    return source(content, "plugin p/.mcp.json", scope="plugin", name="p", variables=variables)


def _file(name: str, content: Any) -> Source:
    scope: Scope
    if name == "~/.claude.json":
        return source(content, name, scope="user", kind="state")
    if "managed-mcp.json" in name:
        return source(content, name, scope="managed", kind="exclusive")
    if name.startswith("plugin "):
        plugin = name.removeprefix("plugin ").partition("/")[0]
        return source(content, name, scope="plugin", name=plugin)
    if "--mcp-config" in name:
        return source(content, name, scope="cli")
    if name.endswith(".mcp.json"):
        return source(content, name)
    if "managed" in name:
        scope = "managed"
    elif "--settings" in name:
        scope = "cli"
    elif "local" in name:
        scope = "local"
    else:
        scope = "user" if name.startswith("~") else "project"
    return source(content, name, scope=scope, kind="settings")


def _setup(given: Case, **more: Any) -> tuple[Setup, Situation]:
    told = situation(
        given,
        strict="--strict-mcp-config" in (*given, *listed(given.get("argv"))) or given.get("strict") is True,
        **more,
    )
    return claude.read(sources(given), told), told


# Kinds ---------------------------------------------------------------------------------------------------


def _parse(given: Case) -> dict[str, Any]:
    # What an entry is, whoever has to approve it.
    setup, told = _setup(given, interactive=False)
    servers = {name: facts(config, told.env) for name, config in setup.active.items()}
    for config in servers.values():
        config["oauth"] = Says(config["oauth"], "supported" if config["oauth"] else "unsupported")
    left = {problem.server: Fact(problem.text) for problem in setup.problems if problem.server is not None}
    out: dict[str, Any] = {
        "servers": servers,
        "config_error": any(problem.server is None for problem in setup.problems)
        or setup.failure is not None,
        "skipped": {name: Says(text, "") for name, text in left.items()},
        "errors": {name: Says(text, "") for name, text in left.items()},
        "error": Says("", "") if setup.problems else Fact(None),
    }
    if "entry" in given:
        out |= servers.get("s", {})
        out["server"] = present(setup, "s")
    elif len(left) + len(servers) == 1:
        out["server"] = present(setup, next(iter([*left, *servers])))
    out["warnings"] = Mentions([text for standing in setup for text in standing.config.warnings])
    out["warning"] = out["warnings"]
    return out


def _precedence(given: Case) -> dict[str, Any]:
    setup, told = _setup(given, interactive=False)
    used = setup.active
    lost = {standing.config.name for standing in setup} - used.keys()
    servers: Any = {name: facts(config, told.env) for name, config in used.items()}
    return {
        "servers": _Either(servers),
        "connected": sorted(used),
        "suppressed": sorted(lost),
        **{name: _start(setup) for name in ("session", "start", "result", "startup")},
    }


def _start(setup: Setup) -> Fact:
    return Present(True) if setup.failure is None else Says(setup.failure.text, "exit|refuse|fail|error")


class _Either(Fact):
    """Servers, which a case gives as a table or by their names alone."""

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, list):
            return sorted(self.value) == sorted(str(item) for item in listed(wanted))
        return agrees("servers", wanted, found=self.value)


def _approval(given: Case) -> dict[str, Any]:
    setup, _ = _setup(given)
    names = list(dict.fromkeys(standing.config.name for standing in setup))
    states = {name: setup.find(name) for name in names}
    shown = {name: State(item.state if item is not None else "blocked") for name, item in states.items()}
    if len(names) == 1:
        return {"server": names[0], "state": shown[names[0]], "states": shown}
    return {"states": shown, "servers": shown}


def _env(given: Case) -> dict[str, Any]:
    setup, told = _setup(given, interactive=False)
    if not setup.servers:
        return {"loads": False, "server": present(setup, "s")}
    config = setup.servers[0].config
    full, missing = expand(config, told.env)
    child = environment(full, told.env, folder=told.folder)
    return {
        **facts(config, told.env),
        "warnings": Mentions(missing),
        "loads": setup.servers[0].state == "active",
        "server": Present(True),
        "child_env": Child(child),
        "child": Child(child),
        "process_env": Child(child),
    }


def _policy(given: Case) -> dict[str, Any]:
    server = table(given.get("server"))
    entry = {name: value for name, value in server.items() if name not in ("name", "from", "command", "args")}
    argv = server.get("command")
    if argv is not None:
        words = [argv] if isinstance(argv, str) else listed(argv)
        entry |= {"command": words[0], "args": [*words[1:], *listed(server.get("args"))]}
    name = str(server.get("name", "s"))
    came = str(server.get("from", "user"))
    managed = table(given.get("managed"))
    managed |= {key: given[key] for key in ("allowedMcpServers", "deniedMcpServers") if key in given}
    files = _carriers(came, name, entry=entry, managed=managed)
    files.append(source(managed, "managed-settings.json", scope="managed", kind="settings"))
    for scope in _SCOPES[1:]:
        if f"{scope}_settings" in given:
            files.append(
                source(given[f"{scope}_settings"], f"{scope} settings", scope=scope, kind="settings")
            )
    setup = claude.read(files, situation(given, interactive=False))
    known = f"plugin:p:{name}" if came == "plugin" else name
    standing = setup.find(known)
    if standing is None:
        return {"decision": Says("entry dropped", "dropped|invalid")}
    return {
        "decision": Says(standing.state, "^allow" if standing.state == "active" else "block|den|not allowed")
    }


def _carriers(came: str, name: str, *, entry: dict[str, Any], managed: dict[str, Any]) -> list[Source]:
    """The file that a server comes from."""
    content = {"mcpServers": {name: entry}}
    if came == "managedMcpServers":
        managed["managedMcpServers"] = {name: entry}
        return []
    if came == "managed-mcp.json":
        return [source(content, came, scope="managed", kind="exclusive")]
    if came == "connector":
        return [source(content, "the account", scope="connector")]
    if came == "plugin":
        return [source(content, "plugin p/.mcp.json", scope="plugin", name="p")]
    if came in ("--mcp-config", "cli"):
        return [source(content, "--mcp-config", scope="cli")]
    return [source(content, ".mcp.json", scope="project" if came == "project" else "user")]


def _permission(given: Case) -> dict[str, Any]:
    rules = table(given.get("rules"))
    scoped = any(name in _SCOPES for name in rules)
    blocks = rules if scoped else {"user": rules}
    files = [
        source({"permissions": lists}, f"{scope} settings", scope=_scope(scope), kind="settings")
        for scope, lists in blocks.items()
    ]
    mode = str(given.get("mode", given.get("permission_mode", "")))
    asks = given.get("interactive", given.get("headless") is not True) is True and mode not in (
        "-p",
        "headless",
    )
    told = situation(given, mode="" if mode in ("-p", "headless", "interactive") else mode, interactive=asks)
    setup = claude.read(files, Situation(trusted=given.get("trusted", True) is True))
    what = call(str(given["call"]), given)
    program = next((given[name] for name in ("permission_prompt_tool", "prompt_tool") if name in given), None)
    told = told if program is None else replace(told, interactive=True)
    decision = _HOST.judge(setup, what, situation=told)
    callback = given.get("sdk_callback", given.get("can_use_tool"))
    if program is not None:
        decision = answered(decision, what, yes="allow" in str(program), by="program")
    elif callback is not None:
        decision = answered(decision, what, yes="allow" in str(callback), by="person")
    return {
        "decision": Effect(decision.effect, hidden=decision.hidden),
        "hidden": decision.hidden,
        "warning": Fact(bool(setup.problems)),
    }


def _scope(name: str) -> Scope:
    known: dict[str, Scope] = {scope: scope for scope in _SCOPES}
    return known.get(name, "user")


def _naming(given: Case) -> dict[str, Any]:
    server = connector(str(given["connector"])) if "connector" in given else str(given.get("server", ""))
    if "plugin" in given:
        server = registered(str(given["plugin"]), server)
    out: dict[str, Any] = {"registered_server": server}
    if "prompt" in given:
        out["command"] = prompt_command(server, str(given["prompt"]))
    if "tool" in given:
        tool = str(given["tool"])
        out["name"] = name_of("claude-code", server=server, tool=tool)
        # All the ways to take the name apart, each a tool of its own: is it one name?
        rest = f"{server}__{tool}"
        cuts = [found.start() for found in re.finditer("(?=__)", rest)]
        names = Names((rest[:cut], rest[cut + 2 :]) for cut in cuts)
        kept = names.of(server, tool)
        ambiguous = kept is not None and kept.ambiguous
        out["server_for_rules"] = "ambiguous" if ambiguous else server
    return out


def _timeout(given: Case) -> dict[str, Any]:
    setup, told = _setup(given, interactive=False)
    return facts(setup.servers[0].config, told.env)


def _hook(given: Case) -> dict[str, Any]:
    return {"matches": hook_matches(str(given["matcher"]), str(given["tool"]))}


def _search(given: Case) -> dict[str, Any]:
    names = ("ENABLE_TOOL_SEARCH", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS")
    env = {name: str(given[name]) for name in names if given.get(name) is not None}
    env |= {name: str(value) for name, value in table(given.get("env")).items()}
    denied = [str(name) for name in listed(given.get("deny"))]
    share = float(given.get("definitions_pct_of_context", 100))
    meta = table(given.get("tool_meta", given.get("_meta")))
    entry = table(given.get("entry"))
    where = " ".join(str(given.get(name, "")) for name in ("provider", "platform", "model")).lower()
    able = not (
        "foundry" in where or "azure" in where or ("vertex" in where and "4.5" in where and "pre" in where)
    )
    denied += [str(name) for name in listed(table(given.get("permissions")).get("deny"))]
    deferred = defers(env, share=share, denied=denied, able=able) and not always_loaded(entry, meta)
    return {"deferred": deferred, "max_results": 5}


def _output(given: Case) -> dict[str, Any]:
    env = {name: str(value) for name, value in table(given.get("env")).items()}
    found = output_limits(table(given.get("tool_meta")), env)
    return {
        "limit_chars": found.characters,
        "limit_tokens": found.tokens,
        "warn_tokens": found.warn,
        "description_chars": description_limit(env),
    }


def _schema(given: Case) -> dict[str, Any]:
    tool = Tool(name="t", input_schema=table(given.get("inputSchema", given.get("input_schema"))))
    found = MESSAGES.definitions([Shown("t", tool)])
    shown, left = found.blocks, found.left_out
    out: dict[str, Any] = {
        "tool": Says("excluded" if left else "kept", "exclu|skip" if left else "kept|flatten")
    }
    if shown:
        out["schema"] = shown[0]["input_schema"]
        out["input_schema"] = shown[0]["input_schema"]
    return out


_KINDS: Final = {
    "parse": _parse,
    "precedence": _precedence,
    "approval": _approval,
    "env": _env,
    "server-policy": _policy,
    "permission": _permission,
    "naming": _naming,
    "timeout": _timeout,
    "hook-matcher": _hook,
    "tool-search": _search,
    "output": _output,
    "schema": _schema,
}
