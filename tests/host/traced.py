"""Calls as a host writes them, for tests that read them again."""

from __future__ import annotations

import json
from itertools import count

from dragoman.host.config.record import Origin, Rule
from dragoman.host.permissions import Decision
from dragoman.host.trace import Trace
from dragoman.model import Tool
from dragoman.protocol.naming import Name
from dragoman.schema.errors import Fault

TOOL = Tool(
    name="lookup_order",
    description="Find an order.",
    input_schema={"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
)
ALLOW = Rule("allow", "mcp__orders__lookup_order", Origin(".claude/settings.json", 3))
DENY = Rule("deny", "mcp__orders__*", Origin(".claude/settings.json", 7))
_ids = count(1)


def clock(start: int = 0):
    """A second more each time, from 2026-11-30T08:00Z on."""
    seconds = count(start)
    return lambda: "2026-11-30T08:{:02}:{:02}.000Z".format(*divmod(next(seconds), 60))


def call(
    trace: Trace,
    *,
    server="orders",
    tool="lookup_order",
    arguments=None,
    rule=ALLOW,
    faults=(),
    text="found",
    is_error=False,
    definition=TOOL,
    known=True,
):
    """Write one call; returns its id. A deny rule and faults send nothing."""
    entry = trace.begin()
    name = Name.of(server, tool)
    use = f"toolu_{next(_ids)}"
    arguments = {"order_id": "A-1042"} if arguments is None else arguments
    decision = None
    if known and not faults:
        decision = Decision(rule.effect, f"{rule.text} ({rule.origin})", rule)
    entry.tool_use(
        {"type": "tool_use", "id": use, "name": name.model, "input": arguments},
        name=name if known else None,
        faults=faults,
        decision=decision,
        tool=definition if known else None,
        config=".mcp.json:3",
    )
    by = "server"
    if not known or faults or rule.effect == "deny":
        by, is_error = "host" if not known else "schema" if faults else "permission", True
    else:
        params = {"name": tool, "arguments": arguments}
        frame = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
        entry.sent(json.dumps(frame).encode(), server=server, revision="2026-07-28", transport="stdio")
    content = [{"type": "text", "text": text}]
    block = {"type": "tool_result", "tool_use_id": use, "content": content}
    entry.result({**block, "is_error": True} if is_error else block, by=by)
    return entry.call


def fault(field="order_id"):
    return Fault(field=field, expected="a text", received="7", rule="/properties/order_id/type")
