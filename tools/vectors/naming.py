"""Cases of the names that a host's model sees."""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman.host.naming import (
    API_NAMES,
    CONVENTIONS,
    HostNames,
    connector,
    name_of,
    prompt_command,
    registered,
    vscode_prefixes,
)
from dragoman.host.permissions import Call
from dragoman.host.permissions.gemini import parsed
from dragoman.protocol.naming import LIMIT, Name, Names, clean

from .expecting import Fact, Present, Says
from .findings import Length
from .forms import Case, is_list

_INCOMING: Final = ("incoming", "model_name", "called_as", "model_calls", "incoming_name", "called")


def claude_name(given: Case) -> dict[str, Any]:
    """A name of Claude Code's."""
    server = connector(str(given["connector"])) if "connector" in given else str(given.get("server", ""))
    if "plugin" in given:
        server = registered(str(given["plugin"]), server)
    out: dict[str, Any] = {"registered_server": server, "server_part": clean(server)}
    if "prompt" in given:
        prompt = str(given["prompt"])
        out["command"] = prompt_command(server, prompt)
        out |= dict.fromkeys(("listed", "listed_as", "display", "label", "list"), f"/{server}:{prompt}")
    if "tool" in given:
        tool = str(given["tool"])
        out |= _about(
            name_of("claude-code", server=server, tool=tool), plain=f"mcp__{clean(server)}__{clean(tool)}"
        )
        # All the ways to take the name apart, each a tool of its own: is it one name?
        rest = f"{server}__{tool}"
        cuts = [found.start() for found in re.finditer("(?=__)", rest)]
        names = Names((rest[:cut], rest[cut + 2 :]) for cut in cuts)
        kept = names.of(server, tool)
        out["server_for_rules"] = "ambiguous" if kept is not None and kept.ambiguous else server
    return out


def host_name(host: str, given: Case) -> dict[str, Any]:
    """A name of another host's."""
    if host == "vscode" and any(name.startswith(("server_label", "label", "server_title")) for name in given):
        return _prefixed(given)
    if "name" in given and "tool" not in given:
        return {"accepted": API_NAMES["anthropic-messages"].accepts(str(given["name"]))}
    incoming = next((str(given[name]) for name in _INCOMING if name in given), None)
    pair = _pair(host, given, incoming)
    names = HostNames(host, [pair])
    found = names.of(*pair)
    if found is None:
        away = Present(False, names.left_out[pair])
        return {
            **dict.fromkeys(
                ("tool", "server", "name", "result", "visible", "shown", "accepted", "loaded"), away
            ),
            **dict.fromkeys(("warning", "filtered", "excluded"), True),
        }
    out = _about(found.model, plain=CONVENTIONS[host].plain(*pair) if host in CONVENTIONS else found.model)
    call = Call(Name(found.model, found.canonical, *pair))
    out |= dict.fromkeys(("tool", "visible", "shown", "accepted"), Present(True))
    out |= dict.fromkeys(("warning", "filtered", "excluded"), False)
    out |= dict.fromkeys(
        ("rule_key", "key", "rule", "permission_key", "rule_name", "tool_key"), found.canonical
    )
    if host == "gemini-cli":
        out |= dict.fromkeys(
            ("policy_server", "parsed_server", "server_for_policy", "server_for_rules"), parsed(call)
        )
    if incoming is not None:
        meant = names.find(incoming)
        back = None if meant is None else meant.model
        out |= dict.fromkeys(("resolves_to", "resolved", "matches", "tool_called"), back)
        out |= {"accepted": meant is not None}
        out |= {} if meant is None else {"server": meant.server, "tool": meant.tool}
    return out


def _pair(host: str, given: Case, incoming: str | None) -> tuple[str, str]:
    if incoming is not None and "server" not in given and host == "roo-code":
        _, server, tool = re.split("--|__", incoming, maxsplit=2)
        return server, tool
    return str(given.get("server", "s")), str(given["tool"])


def _about(model: str, *, plain: str) -> dict[str, Any]:
    """What a case may ask of a name: itself, its length, or what it has in the place of what was cut."""
    digits = re.search(r"_([0-9a-f]{8,})$", model)
    tail = digits is not None and model != plain
    long = len(plain) > LIMIT
    overflow = Says(
        model, rf"{len(digits[1])}|hash|suffix" if tail and digits is not None else "cut|trunc|none"
    )
    name: Fact = _Longer(model) if long else Fact(model)
    return {
        **dict.fromkeys(("name", "model_name", "tool_name", "full_name"), name),
        "length": len(model),
        "prefix": model,
        **dict.fromkeys(("max_len", "max_length", "limit", "max"), Length(len(model))),
        "overflow": overflow,
        "pattern": _Pattern(model),
    }


class _Longer(Fact):
    """A name that was longer than fits, of which a case may say in words that it is shortened."""

    def fits(self, wanted: Any) -> bool:
        text = str(wanted)
        return text == self.value or (
            " " in text and re.search("short|cut|trunc|hash|map|API error", text) is not None
        )


class _Pattern(Fact):
    """The form of a name: a pattern, or what it begins with and how many digits of a hash end it."""

    def fits(self, wanted: Any) -> bool:
        text = str(wanted)
        if " " not in text:
            return re.search(text, str(self.value)) is not None
        count = re.search(r"(\d+)[ -](?:hex|digit)", text)
        start = re.match(r"[A-Za-z0-9_-]+", text)
        digits = "" if count is None else rf"_[0-9a-f]{{{count[1]}}}$"
        begins = start is None or "_" not in start[0] or str(self.value).startswith(start[0].rstrip("_"))
        return count is not None and begins and re.search(digits, str(self.value)) is not None


def _prefixed(given: Case) -> dict[str, Any]:
    """VS Code's names, which begin with the server's label."""
    names = ("server_labels", "labels", "server_label", "label", "server_title")
    told: object = next(given[name] for name in names if name in given)
    given.get("server")
    labels = [str(label) for label in (told if is_list(told) else [told])]
    labels *= int(given.get("duplicate", given.get("duplicates", 1)))
    prefixes = vscode_prefixes(labels)
    many = is_list(told)
    lengths = [len(prefix) for prefix in prefixes]
    out: dict[str, Any] = {
        "prefix": prefixes if many and len(prefixes) > 1 else prefixes[-1],
        "prefixes": prefixes,
        **dict.fromkeys(("prefix_length", "prefix_len", "length"), lengths[-1]),
        "max_len": Length(max(lengths)),
    }
    if "tool" in given:
        pair = (labels[0], str(given["tool"]))
        found = HostNames("vscode", [pair]).of(*pair)
        out |= {} if found is None else {"name": found.model, "length": len(found.model)}
    return out


def codex_name(servers: list[str], tools: list[str]) -> dict[str, Any]:
    """Names of Codex', where several may be one."""
    names = [name.model for name in HostNames("codex", [(s, t) for s in servers for t in tools])]
    longest = max(len(name) for name in names)
    tail = all(re.search(r"_[0-9a-f]{12}$", name) is not None for name in names)
    start = _common(names)
    out: dict[str, Any] = {
        "name": names[0],
        "names": names,
        "length": longest,
        "namespace": names[0].rpartition("__")[0],
        "pattern": _Collided(names[0], start) if tail else _Pattern(names[0]),
        **dict.fromkeys(("max_len", "max_length", "limit"), Length(longest)),
        "overflow": Says(names, "12") if tail else Fact(names),
        "collision": Says(names, "suffix|hash|12") if tail and start else Fact(names),
    }
    return out


class _Collided(_Pattern):
    """The form of names of which each ends in digits of its own; `start` is what they have before."""

    def __init__(self, value: str, start: str) -> None:
        super().__init__(value)
        self.start = start

    def fits(self, wanted: Any) -> bool:
        return bool(self.start) and super().fits(wanted)


def _common(names: list[str]) -> str:
    """What names have before their own digits; nothing where two tools have one name."""
    starts = {re.sub(r"_[0-9a-f]{12}$", "", name) for name in names}
    return starts.pop() if len(starts) == 1 and len(set(names)) == len(names) else ""
