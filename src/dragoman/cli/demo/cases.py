"""In which ways the demo is played for each host, and what that host is to make of the order service.

What is expected is written down here by hand, from what the hosts' own documentation says; nothing is
computed by the code that decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

_ALL: Final = frozenset({"lookup_order", "create_note", "refund_order"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way: which of its host's files has the server's entry, and in which mode the host runs.

    `surface` is what people call the mode. Looking up is allowed and a note asked about in every one;
    `refund` is what becomes of a refund, and `sees` are the tools that the model is shown.
    """

    host: str
    file: str
    refund: Literal["ask", "deny"]
    sees: frozenset[str]
    transport: Literal["stdio", "http"] = "stdio"
    mode: str = ""
    surface: str = ""


CASES: Final[Mapping[str, tuple[Case, ...]]] = {
    # Deny beats ask beats allow; a tool that is denied whatever its arguments are is not shown.
    "claude-code": (
        Case(host="claude-code", file=".mcp.json", refund="deny", sees=_ALL - {"refund_order"}),
        Case(
            host="claude-code",
            file="http.mcp.json",
            refund="deny",
            sees=_ALL - {"refund_order"},
            transport="http",
        ),
    ),
    # What only reads runs by its own word; `prompt` asks; a disabled tool is not there.
    "codex": (Case(host="codex", file=".codex/config.toml", refund="deny", sees=_ALL - {"refund_order"}),),
    # The editor has a list of what it does not ask about, and denies nothing; the command line does.
    "cursor": (
        Case(host="cursor", file=".cursor/mcp.json", refund="ask", sees=_ALL, surface="editor"),
        Case(
            host="cursor",
            file=".cursor/mcp.json",
            refund="deny",
            sees=_ALL,
            mode="cli",
            surface="command line",
        ),
    ),
}
