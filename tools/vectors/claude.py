"""Cases of Claude Code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from dragoman.host.config import claude
from dragoman.host.config.expand import environment, expand
from dragoman.host.config.record import Scope, Setup, Situation, Source
from dragoman.host.dialects import DIALECTS
from dragoman.host.permissions.claude import answered, fault

from . import claude_limits, claude_policy, paths
from .claude_files import SCOPES, setup, sources
from .expecting import Child, Effect, Fact, Mentions, Present, Says, Seen, State
from .forms import Case, call, calls, facts, is_list, listed, outcome, present, situation, source, table
from .naming import claude_name

_HOST: Final = DIALECTS["claude-code"]


def run(kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of this kind."""
    if kind not in _KINDS:
        raise ValueError(f"kind {kind!r} is not known of this host: expected one of {', '.join(_KINDS)}")
    return _KINDS[kind](given)


def _parse(given: Case) -> dict[str, Any]:
    if "name" in given or "cli" in given or "claude" in listed(given.get("argv")):
        raise ValueError("the host's own commands are not part of what is matched")
    # What an entry is, whoever has to approve it.
    found, told = setup(given, interactive=False)
    out = outcome(found, told.env)
    names = list(dict.fromkeys([*out["servers"].others, *(item.config.name for item in found)]))
    if "entry" in given:
        out |= table(out["servers"].value.get("s"))
    elif len(names) == 1:
        out = {**table(out["servers"].value.get(names[0])), **out}
    if "entry" in given or len(names) == 1:
        out["server"] = present(found, names[0] if names else "s")
    out["warning"] = out["warnings"]
    return out


def _precedence(given: Case) -> dict[str, Any]:
    found, told = setup(given, interactive=False)
    out = outcome(found, told.env)
    failed = found.failure
    start = Present(True) if failed is None else Says(failed.text, "exit|refuse|fail|error")
    return {**out, **dict.fromkeys(("session", "start", "result", "startup", "run"), start)}


def _approval(given: Case) -> dict[str, Any]:
    found, told = setup(given)
    names = list(dict.fromkeys(standing.config.name for standing in found))
    states = {name: found.find(name) for name in names}
    shown: dict[str, Any] = {
        name: State(item.state if item is not None else "blocked") for name, item in states.items()
    }
    out: dict[str, Any] = {"states": shown, "servers": _States(shown)}
    if len(names) == 1:
        out |= {
            "server": _Named(names[0], shown[names[0]]),
            **dict.fromkeys(("state", "decision"), shown[names[0]]),
        }
        # Programs that write headers are never run here.
        out |= dict.fromkeys(("headersHelper", "headers_helper"), Says("not run", "not|never|static|skip"))
        config = found.servers[0].config
        out["headers"] = expand(config, told.env)[0].headers
    return out


class _States(Fact):
    """States by name; or the names of those that are in use."""

    def fits(self, wanted: Any) -> bool:
        if is_list(wanted):
            return sorted(name for name, state in self.value.items() if state.value == "active") == sorted(
                wanted
            )
        told = table(wanted)
        return told.keys() == self.value.keys() and all(
            self.value[name].fits(text) for name, text in told.items()
        )


class _Named(Fact):
    """A server's name, in whose place a case may say how it fares."""

    def __init__(self, name: str, state: State) -> None:
        super().__init__(name)
        self.state = state

    def fits(self, wanted: Any) -> bool:
        return wanted == self.value or self.state.fits(wanted)


def _env(given: Case) -> dict[str, Any]:
    if "value" in given:
        content = {"mcpServers": {"s": {"command": "x", "args": [given["value"]]}}}
        told = situation(given, interactive=False)
        found = claude.read([source(content, "~/.claude.json", scope="user")], told)
    else:
        found, told = setup(given, interactive=False)
    if not found.servers:
        refused = Says("refused", "refus|error|reject|not|drop|skip")
        return {
            **outcome(found, told.env),
            "server": present(found, "s"),
            "error": refused,
            "headersHelper": refused,
        }
    config = found.servers[0].config
    full, missing = expand(config, told.env)
    child = environment(full, told.env, folder=told.folder, session="s")
    return {
        **outcome(found, told.env),
        **facts(config, told.env),
        "value": full.args[-1] if full.args else None,
        **dict.fromkeys(("warnings", "warning"), Mentions(missing)),
        "loads": Present(found.servers[0].state == "active"),
        "server": Present(True),
        **children(child),
        "added": Child(child),
    }


_STARTS: Final = ("child_env", "env", "process_env")
_THERE: Final = ("_has", "_contains", "_includes", "_keeps", "_keys", "_with")
_GONE: Final = ("_lacks", "_removed", "_missing", "_excludes", "_omits", "_without", "_drops", "_not")


def children(child: dict[str, str]) -> dict[str, Any]:
    """The environment of a program, by the names that cases have for it."""
    there = [f"{start}{end}" for start in _STARTS for end in _THERE]
    there += [
        "child_env",
        "child",
        "process_env",
        "child env",
        "childEnv",
        "spawn_env",
        "kept",
        "inherited",
        "passed",
    ]
    gone = [f"{start}{end}" for start in _STARTS for end in _GONE]
    gone += ["removed", "redacted", "not_passed", "stripped"]
    return {**dict.fromkeys(there, Child(child)), **dict.fromkeys(gone, Child(child, without=True))}


# Permissions ---------------------------------------------------------------------------------------------


def _permission(given: Case) -> dict[str, Any]:
    told = situation(given)
    found = claude.read(_rules(given), Situation(trusted=told.trusted is not False))
    program = given.get("permission_prompt_tool")
    told = told if program is None else replace(told, interactive=True)
    callback = given.get("sdk_callback")
    names = calls(given) or [f"mcp__{given['server']}__{given['tool']}"]
    decided: dict[str, Effect] = {}
    for name in names:
        what = call(name, given)
        decision = _HOST.judge(found, what, situation=told)
        if program is not None:
            decision = answered(decision, what, yes="allow" in str(program), by="program")
        elif callback is not None:
            decision = answered(decision, what, yes="allow" in str(callback), by="person")
        # In the mode `auto` another model is asked in a person's place; there is none here.
        reviewed = (
            ("classifier",) if told.mode == "auto" and decision.effect == "ask" and not decision.rule else ()
        )
        decided[name] = Effect(decision.effect, hidden=decision.hidden, reviewed=reviewed)
    first = decided[names[0]]
    return {
        **decided,
        "decision": first,
        "decisions": list(decided.values()),
        "hidden": first.hidden,
        "tool": Seen(first),
        "visible": [name for name, effect in decided.items() if not effect.hidden],
        "parallel": table(given.get("annotations")).get("readOnlyHint") is True,
        **dict.fromkeys(("warning", "warnings"), _Skipped(_faults(found))),
    }


def _faults(found: Setup) -> list[str]:
    """The rules that can never match, and why."""
    return [
        f"{rule.text}: {why}" for rule in found.rules if (why := fault(rule.effect, rule.text)) is not None
    ]


class _Skipped(Mentions):
    """Warnings of rules that can never match, which a case may also say to be skipped or ignored."""

    def fits(self, wanted: Any) -> bool:
        words = ("skip", "ignor", "never match", "unanchored", "invalid", "warn", "rule")
        said = str(wanted).lower()
        return super().fits(wanted) or (bool(self.value) and any(word in said for word in words))


def _rules(given: Case) -> list[Source]:
    """The rules of a case: of the person, or by scope, or in files."""
    rules = table(given.get("rules", given.get("permissions")))
    blocks = rules if any(name in SCOPES for name in rules) else {"user": rules}
    files = [
        source({"permissions": lists}, f"{scope} settings", scope=_scope(scope), kind="settings")
        for scope, lists in blocks.items()
    ]
    return [*files, *sources(given)]


def _scope(name: str) -> Scope:
    known: dict[str, Scope] = {**{scope: scope for scope in SCOPES}, "--settings": "cli", "session": "cli"}
    if name not in known:
        raise ValueError(f"rules: scope {name!r} is not known: expected one of {', '.join(SCOPES)}")
    return known[name]


_KINDS: Final = {
    "parse": _parse,
    "precedence": _precedence,
    "approval": _approval,
    "trust": _approval,
    "env": _env,
    "server-policy": claude_policy.policy,
    "permission": _permission,
    "tool-filter": _permission,
    "naming": claude_name,
    "timeout": claude_limits.timeout,
    "reconnect": claude_limits.timeout,
    "hook-matcher": claude_limits.hook,
    "tool-search": claude_limits.search,
    "output": claude_limits.output,
    "schema": claude_limits.schema,
    **dict.fromkeys(("path", "paths", "file", "files", "location"), paths.claude),
}
