"""Cases of Codex, whose files are written as TOML with words around it."""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman.host.config import codex
from dragoman.host.config.expand import environment, expand
from dragoman.host.config.record import Scope, Setup, Situation, Source
from dragoman.host.dialects import DIALECTS
from dragoman.host.naming import HostNames
from dragoman.host.permissions import Call
from dragoman.protocol.naming import Name

from .expecting import Child, Effect, Fact, Present, Says
from .forms import Case, facts, present, situation, table

_HOST: Final = DIALECTS["codex"]
_LABEL: Final = re.compile(
    r"\s*(?P<who>requirements(?:\.toml)?|config(?:\.toml)?|project|user|system|managed(?:_config\.toml)?|session)\b"
    r"(?P<words>[^\[\]=:]*?)(?P<colon>:)?\s*(?=\[|[A-Za-z_.]+\s*=|$)"
)
_SCOPES: Final[dict[str, Scope]] = {
    "config": "user",
    "project": "project",
    "user": "user",
    "system": "system",
    "managed": "managed",
    "session": "cli",
}
_KEY: Final = re.compile(r"(?<=[\s\]])(?=[A-Za-z_][A-Za-z0-9_.\"-]*\s*=)")
_TOP: Final = re.compile(r"^\s*(approval_policy|sandbox_mode|projects|mcp_servers)\b")


def run(kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of this kind."""
    return {"naming": _naming, "approval": _approval}.get(kind, _files)(given)


def sources(given: Case) -> tuple[list[Source], bool]:
    """The files that a case's text has, and whether the project is trusted."""
    text = str(given.get("toml", ""))
    trusted = "not trusted" not in text and "untrusted" not in text and given.get("trusted", True) is True
    found: list[Source] = []
    for part in _parts(text):
        label = _LABEL.match(part)
        who = label["who"] if label is not None else "user"
        body = part[label.end() :] if label is not None else part
        toml = _toml(body)
        if not toml.strip():
            continue
        if who.startswith("requirements"):
            found.append(Source(toml, "requirements.toml", "managed", "requirements"))
            continue
        scope = _SCOPES[re.split(r"[._]", who)[0]]
        found.append(Source(toml, f"{scope} config.toml", scope, "config"))
    if found and not any(
        re.search(r"\b(command|url|enabled)\s*=|mcp_servers\]", file.text) for file in found
    ):
        first = found[0]
        found[0] = _completed(first, "a") if "mcp_servers.a]" in first.text else first
    for name, content in table(given.get("files")).items():
        scope = "project" if not name.startswith(("~", "/etc")) else "system" if "/etc" in name else "user"
        kind = "requirements" if "requirements" in name else "config"
        found.append(Source(str(content), name, scope, kind))
    return found, trusted


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"\s*;\s*", text) if part.strip()]


def _toml(body: str) -> str:
    """TOML on lines of its own, out of words on one line; keys of a server alone get a server."""
    body = re.sub(r"\(defaults\)|\band sandbox (?P<mode>[\w-]+)", _sandbox, body)
    body = re.sub(r"(not trusted|trusted|untrusted|project not trusted)\s*$", "", body)
    if "\n" not in body:
        body = _KEY.sub("\n", body)
    lines = [line.strip().rstrip(",") for line in body.split("\n") if line.strip()]
    if lines and not lines[0].startswith("[") and not _TOP.match(lines[0]) and "=" in lines[0]:
        lines = ["[mcp_servers.a]", *lines]
    return "\n".join(line for line in lines if line.startswith("[") or "=" in line or line[-1:] in "]},")


def _sandbox(found: re.Match[str]) -> str:
    return f'\nsandbox_mode="{found["mode"]}"' if found["mode"] else ""


def _setup(given: Case) -> tuple[Setup, Situation]:
    files, trusted = sources(given)
    told = situation({name: value for name, value in given.items() if name != "mode"}, trusted=trusted)
    return codex.read(files, told), told


def _files(given: Case) -> dict[str, Any]:
    setup, told = _setup(given)
    names = list(dict.fromkeys(standing.config.name for standing in setup))
    out: dict[str, Any] = {
        "servers": {name: facts(config, told.env) for name, config in setup.active.items()},
        "config": Present(setup.failure is None, "" if setup.failure is None else setup.failure.text),
        "error": Says("", "") if setup.failure is not None else Fact(None),
    }
    if names:
        out["server"] = present(setup, names[0], env=told.env)
        config = setup.servers[0].config
        full, _ = expand(config, told.env)
        out |= facts(config, told.env)
        child = environment(full, told.env)
        out["child_env"] = Child(child)
        out["env"] = child
        out["visible"] = [tool for tool in given.get("tools", ()) if config.lists(str(tool))]
    else:
        out["server"] = Present(False, "there is none")
    return out


def _approval(given: Case) -> dict[str, Any]:
    text = str(given.get("toml", ""))
    files, _ = sources(given)
    bare = [file for file in files if "mcp_servers" not in file.text]
    server = "s"
    if bare and len(bare) == len(files):
        files.append(Source('[mcp_servers.s]\ncommand = "x"', "config.toml", "user", "config"))
    elif files:
        found = re.search(r"mcp_servers\.([A-Za-z0-9_-]+)", files[0].text)
        server = found[1] if found is not None else server
        files = [_completed(file, server) for file in files]
    told = situation({name: value for name, value in given.items() if name != "mode"})
    tool = str(given.get("tool", (re.search(r"tools\.([A-Za-z0-9_-]+)", text) or ["", "t"])[1]))
    setup = codex.read(files, told)
    name = Name(tool, tool, server, tool)
    call = Call(name, annotations=table(given.get("annotations")), meta=table(given.get("tool_meta")))
    decision = _HOST.judge(setup, call, situation=told)
    return {"decision": Effect(decision.effect, hidden=decision.hidden), "tool": Effect(decision.effect)}


def _completed(file: Source, server: str) -> Source:
    """A file whose server has something to start, which a case about approval leaves out."""
    if re.search(r"^(command|url)\s*=", file.text, re.MULTILINE) is not None:
        return file
    head = f"[mcp_servers.{server}]"
    text = file.text if head in file.text else f"{file.text}\n{head}"
    return Source(text.replace(head, f'{head}\ncommand = "x"', 1), file.file, file.scope, file.kind)


def _naming(given: Case) -> dict[str, Any]:
    text = str(given.get("toml", ""))
    servers = [str(given["server"])] if "server" in given else re.findall(r'"([^"]*)"', text)
    length = re.search(r"tool of (\d+) chars", text)
    if length is not None:
        servers, tools = servers[:1], ["t" * int(length[1])]
    elif "tool" in given:
        tools = [str(given["tool"])]
    else:
        *servers, tool = servers
        tools = [tool]
    names = [name.model for name in HostNames("codex", [(s, t) for s in servers for t in tools])]
    longest = max(len(name) for name in names)
    tail = all(re.search(r"_[0-9a-f]{12}$", name) is not None for name in names)
    return {
        "name": names[0],
        "names": names,
        "pattern": Says(names, "12 hex digits", re.escape(_common(names))) if tail else Fact(names),
        "max_len": Says(longest, rf"\b{longest}\b"),
        "overflow": Says(names, "12 hex digits") if tail else Fact(names),
    }


def _common(names: list[str]) -> str:
    """What names have before their own digits; nothing that a case could say if two are one name."""
    starts = {re.sub(r"_[0-9a-f]{12}$", "", name) for name in names}
    return starts.pop() if len(starts) == 1 and len(set(names)) == len(names) else "two tools of one name"
