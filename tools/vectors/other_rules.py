"""Cases of what all other hosts' rules decide."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Final

from dragoman.host.config.record import Scope, Situation, Source
from dragoman.host.dialects import DIALECTS
from dragoman.host.permissions import Call

from .expecting import Effect, Says, Seen
from .forms import Case, call, calls, is_table, listed, situation, source, table

_TIERS: Final[dict[str, Scope]] = {
    **dict.fromkeys(("default", "1", "built-in"), "system"),
    **dict.fromkeys(("extension", "2"), "plugin"),
    **dict.fromkeys(("workspace", "project", "3"), "project"),
    **dict.fromkeys(("user", "4", ""), "user"),
    **dict.fromkeys(("admin", "5"), "managed"),
}


def permission(host: str, given: Case, *, files: list[Source]) -> dict[str, Any]:
    """What is decided on the calls of a case."""
    dialect = DIALECTS[host]
    told = _mode(host, given)
    setup = dialect.read([*files, *_RULES[host](given)], told)
    if setup.failure is not None:
        raise ValueError(f"the files do not load: {setup.failure.text}")
    names = calls(given) or ["s/t"]
    decided: dict[str, Effect] = {}
    reviews: list[bool] = []
    for name in names:
        decision = dialect.judge(setup, _call(host, name, given=given), situation=told)
        # In this mode another model is asked about what is on no list; there is none here.
        reviewed = ("classifier",) if "auto-review" in told.mode and decision.effect == "ask" else ()
        decided[name] = Effect(decision.effect, hidden=decision.hidden, reviewed=reviewed)
        reviews.append(decision.review)
    first = decided[names[0]]
    out: dict[str, Any] = {
        **decided,
        "decision": first,
        "decisions": list(decided.values()),
        "tool": Seen(first),
        "hidden": first.hidden,
        "visible": [name for name, effect in decided.items() if not effect.hidden],
    }
    if host == "vscode":
        said = "confirm|ask|review|yes|prompt" if reviews[0] else "^(?!.*confirm)|shown|none|no"
        shown = Says(reviews[0], said)
        out |= dict.fromkeys(("result", "result_confirmation", "confirm_result", "confirms_result"), shown)
        words = ("result is confirmed", "result confirm") if reviews[0] and first.value == "allow" else ()
        out["decision"] = Effect(first.value, hidden=first.hidden, reviewed=words)
    return out


def _mode(host: str, given: Case) -> Situation:
    told = situation(given)
    cli = host == "cursor" and (
        "cli" in str(given.get("surface", ""))
        or "permissions" in given
        or any("cli" in name for name in [*given, *table(given.get("files"))])
    )
    mode = "cli" if cli else told.mode
    if host == "cursor":
        mode = re.sub(r"[\s_]+", "-", mode.lower())
    if host == "gemini-cli":
        mode = {"auto_edit": "autoEdit", "auto-edit": "autoEdit", "YOLO": "yolo"}.get(mode, mode)
    return replace(told, mode=mode, env={})


def _call(host: str, name: str, *, given: Case) -> Call:
    if "/" in name:
        return call(name, given, separator="/")
    if host == "continue":
        return call(f"{name.partition('_')[0]}/{name}", given, separator="/")
    if host == "opencode":
        return call(name, given, separator="_")
    if ":" in name and host in ("cursor", "zed"):
        return call(name.removeprefix("mcp:").replace(":", "/", 1), given, separator="/")
    if host == "gemini-cli" and name.startswith("mcp_"):
        return call(name.removeprefix("mcp_"), given, separator="_")
    return call(f"{given.get('server', 's')}/{name}", given, separator="/")


# Rules ---------------------------------------------------------------------------------------------------


def _cursor(given: Case) -> list[Source]:
    found: list[Source] = []
    words = ("cli", "permissions", "allowlist", "team", "admin")
    named = [(name, given[name]) for name in given if any(word in name.lower() for word in words)]
    places = [name for name in ("user", "workspace", "project") if "mcpAllowlist" in table(given.get(name))]
    named += [(f"{name} permissions.json", given[name]) for name in places]
    for name, content in [*named, *table(given.get("files")).items()]:
        place: Any = "project" if name.startswith(("<", ".cursor", "workspace")) else "user"
        scope: Any = "managed" if "team" in name or "admin" in name else place
        inner = table(content)
        if "cli" in name and is_table(content):
            written = content if "permissions" in inner else {"permissions": content}
            found.append(source(written, name, scope=scope, kind="cli"))
        elif "permissions.json" in name:
            found.append(source(content, name, scope=scope, kind="permissions"))
        elif name == "permissions":
            found.append(source({"permissions": content}, "cli.json", scope="project", kind="cli"))
        elif "allowlist" in name.lower() or scope == "managed":
            kind = "permissions" if scope == "managed" or name == "mcpAllowlist" else "ide"
            listing = inner.get("mcpAllowlist", content)
            found.append(source({"mcpAllowlist": listing}, name, scope=scope, kind=kind))
    return found


def _policies(given: Case) -> list[Source]:
    """Gemini's rules as policy files of the tiers that they name, the person's else."""
    texts: dict[Scope, str] = {}
    rules = [(rule, "") for rule in listed(given.get("rules"))]
    rules += [(rule, tier) for tier in _TIERS for rule in listed(given.get(f"{tier}_rules"))]
    for rule, tier in rules:
        members = table(rule)
        told = str(members.pop("tier", tier)).lower()
        if told not in _TIERS:
            raise ValueError(f"tier {told!r} is not known: expected one of {', '.join(filter(None, _TIERS))}")
        lines = "".join(f"{name} = {_toml(value)}\n" for name, value in members.items())
        texts[_TIERS[told]] = texts.get(_TIERS[told], "") + "[[rule]]\n" + lines
    if "toml" in given or "policy" in given:
        texts["user"] = texts.get("user", "") + str(given.get("toml", given.get("policy")))
    more: dict[str, Any] = {name: given[name] for name in ("mcp", "tools") if is_table(given.get(name))}
    for name in given:
        block, dot, member = name.partition(".")
        if dot and block in ("mcp", "tools"):
            more.setdefault(block, {})[member] = given[name]
    if given.get("trust") is True:
        more["mcpServers"] = {"s": {"command": "x", "trust": True}}
    more |= table(given.get("settings"))
    files = [source(more, "settings.json", scope="user", kind="settings")] if more else []
    policies = [Source(text, f"{scope} rules.toml", scope, "policy") for scope, text in texts.items()]
    return [*policies, *files]


def _toml(value: Any) -> str:
    if is_table(value):
        pairs = (f"{json.dumps(name)} = {_toml(item)}" for name, item in table(value).items())
        return "{" + ", ".join(pairs) + "}"
    return json.dumps(value)


def _vscode(given: Case) -> list[Source]:
    settings = {name: given[name] for name in given if name.startswith("chat.")}
    settings |= table(given.get("settings"))
    return [source(settings, "settings.json", scope="user", kind="settings")] if settings else []


def _opencode(given: Case) -> list[Source]:
    content = {name: given[name] for name in ("permission", "permissions") if name in given}
    return [source(content, "opencode.json", kind="config")] if content else []


def _zed(given: Case) -> list[Source]:
    if "tool_permissions" not in given and "agent" not in given:
        return []
    content = {
        "agent": given["agent"] if "agent" in given else {"tool_permissions": given["tool_permissions"]}
    }
    return [source(content, "settings.json", scope="user", kind="settings")]


def _continue(given: Case) -> list[Source]:
    content = {"policies": listed(given.get("policies"))}
    return [source(content, "permissions", scope="user", kind="permissions")]


def _copilot(given: Case) -> list[Source]:
    told = given.get("argv")
    words = re.findall(r"(?:[^\s\"']|\"[^\"]*\"|'[^']*')+", told) if isinstance(told, str) else listed(told)
    text = "\n".join(str(word).replace("'", "").replace('"', "") for word in words)
    return [Source(text, "command line", "cli", "options")]


def _none(given: Case) -> list[Source]:
    del given
    return []


_RULES: Final = {
    "cursor": _cursor,
    "gemini-cli": _policies,
    "vscode": _vscode,
    "opencode": _opencode,
    "zed": _zed,
    "continue": _continue,
    "copilot-cli": _copilot,
    "cline": _none,
    "roo-code": _none,
    "claude-desktop": _none,
}
