"""What the demo plays, and what is expected of each scene.

Scenes go through the host as a model's calls would; none of them is painted here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from dragoman.cli.demo.answers import Answers
from dragoman.cli.demo.stage import SERVER, Run, Shown, Stage, json, line_of, member, methods, sent, told
from dragoman.errors import ConnectError, RemoteError
from dragoman.host import Host, Trace
from dragoman.jsonrpc.message import INVALID_PARAMS

ORDER: Final = "A-1042"
_TOOLS: Final = {"lookup_order", "create_note", "refund_order"}


async def play(run: Run, answers: Answers, *, env: Mapping[str, str]) -> AsyncIterator[Shown]:
    """Play all scenes of one run, and yield each when it is over.

    Raises:
        ConnectError: the server could not be reached.
    """
    stage = Stage(run, answers)
    host = Host.from_files(
        run.folder,
        host=run.case.host,
        mode=run.case.mode,
        more=run.more,
        user=False,  # the reader's own rules would change what is to be seen
        trusted=True,  # it is the demo's own folder
        env=env,
        protocol=run.revision.version,
        ask=answers,
        trace=Trace(stage.lines.append),
        tap=stage.frames.append,
    )
    async with host:
        stage.host = host
        session = host.sessions[SERVER]
        if session.state != "connected":
            raise ConnectError(
                f"no connection over {run.name}: {session.why}", server=SERVER, stage="connect"
            )
        for scene in _SCENES:
            shown = await scene(stage)
            run.shown.append(shown)
            yield shown


# Scenes --------------------------------------------------------------------------------------------------


async def _discovery(stage: Stage) -> Shown:
    shown = await stage.host.tools()
    frames = stage.taken()
    session, revision = stage.session, stage.run.revision
    first = "initialize" if revision.handshake else "server/discover"
    spoken = session.client is not None and session.client.revision is revision
    names = sorted(str(block["name"]) for block in shown)
    sees = frozenset(name.rpartition("__")[2] for name in names)
    ok = spoken and set(session.tools) == _TOOLS and first in methods(frames) and sees == stage.run.case.sees
    hidden = ", ".join(sorted(set(session.tools) - sees)) or "none"
    return Shown(
        title="discovery",
        asked=None,
        frames=frames,
        decided="the server's entry",
        place=stage.place(session.config.origin.file, session.config.origin.line),
        outcome=f"speaks {revision.version}; the model sees {', '.join(names)}; kept out of its sight: "
        f"{hidden}",
        expected=f"{first} agrees on {revision.version}; of three tools the model is shown "
        f"{', '.join(sorted(stage.run.case.sees))}",
        ok=ok,
    )


async def _good(stage: Stage) -> Shown:
    asked, outcome, frames = await stage.call("lookup_order", {"order_id": ORDER})
    decided, place = stage.ruled(outcome)
    result = outcome.result
    found = result is not None and member(result.structured, "/order_id") == ORDER
    return Shown(
        title="a good call",
        asked=asked,
        frames=frames,
        decided=decided,
        place=place,
        outcome=told(outcome),
        expected=f"the server finds {ORDER}",
        ok=found and outcome.by == "server" and not outcome.is_error and sent(frames) == ["lookup_order"],
    )


async def _schema(stage: Stage) -> Shown:
    asked, outcome, frames = await stage.call("lookup_order", {"order_id": "1042"})
    rule = outcome.faults[0].rule if outcome.faults else ""
    keyword = member(stage.session.tools["lookup_order"].input_schema, rule)
    return Shown(
        title="a call that the schema refuses",
        asked=asked,
        frames=frames,
        decided=f"inputSchema#{rule} {json(keyword)}",
        place=line_of(stage, str(keyword)),
        outcome=told(outcome),
        expected="refused by the schema, nothing sent",
        ok=outcome.by == "schema" and outcome.is_error and not frames and rule.endswith("/pattern"),
    )


async def _asked(stage: Stage) -> Shown:
    return await _question(stage, "create_note", text="Call before delivery", title="a call that needs a yes")


async def _refund(stage: Stage) -> Shown:
    if stage.run.case.refund == "ask":
        return await _question(stage, "refund_order", amount=18900, title="a refund")
    asked, outcome, frames = await stage.call("refund_order", {"order_id": ORDER, "amount": 18900})
    decided, place = stage.ruled(outcome)
    denied = outcome.decision is not None and outcome.decision.effect == "deny"
    return Shown(
        title="a denied call",
        asked=asked,
        frames=frames,
        decided=decided,
        place=place,
        outcome=told(outcome),
        expected="denied by the host's rules, nothing sent",
        ok=denied and outcome.by == "permission" and not frames,
    )


async def _question(stage: Stage, tool: str, *, title: str, **arguments: Any) -> Shown:
    """A call that a person is asked about: sent once there is a yes, and not at all without."""
    before = len(stage.answers.given)
    asked, outcome, frames = await stage.call(tool, {"order_id": ORDER, **arguments})
    decided, place = stage.ruled(outcome)
    yes = stage.answers.given[before:] == [True]
    no = stage.answers.given[before:] == [False]
    done = outcome.by == "server" and not outcome.is_error and sent(frames) == [tool]
    declined = outcome.by == "permission" and outcome.is_error and not frames
    return Shown(
        title=title,
        asked=asked,
        frames=frames,
        decided=decided,
        place=place,
        outcome=told(outcome),
        expected="asked once; with yes the server does it" if yes else "asked once; with no, nothing is sent",
        ok=(yes and done) or (no and declined),
    )


async def _failing(stage: Stage) -> Shown:
    asked, outcome, frames = await stage.call("lookup_order", {"order_id": "Z-9999"})
    decided, place = stage.ruled(outcome)
    result = outcome.result
    return Shown(
        title="a tool's own error",
        asked=asked,
        frames=frames,
        decided=decided,
        place=place,
        outcome=told(outcome),
        expected="the call is allowed, and the tool itself says that there is no such order",
        ok=result is not None and result.is_error and "Z-9999" in result.text,
    )


async def _unknown(stage: Stage) -> Shown:
    asked, outcome, frames = await stage.call("cancel_order", {"order_id": ORDER})
    return Shown(
        title="an unknown tool",
        asked=asked,
        frames=frames,
        decided=f"the table of names: {len(stage.host.names)} tools, and none of that name",
        place="",
        outcome=told(outcome),
        expected="refused by the host, nothing sent",
        ok=outcome.by == "host" and outcome.is_error and not frames,
    )


async def _unknown_there(stage: Stage) -> Shown:
    code, text = 0, "the server answered with a result"
    try:
        if stage.session.client is not None:
            await stage.session.client.call_tool("cancel_order", {"order_id": ORDER})
    except RemoteError as exc:
        code, text = exc.code, f"error {exc.code}: {exc.message}"
    frames = stage.taken()
    return Shown(
        title="an unknown tool, past the host",
        asked=None,
        frames=frames,
        decided="the server's own list of tools",
        place=stage.place("server.py"),
        outcome=text,
        expected=f"the server answers error {INVALID_PARAMS}",
        ok=code == INVALID_PARAMS and sent(frames) == ["cancel_order"],
    )


async def _trace(stage: Stage) -> Shown:
    call = msgspec.json.decode(stage.lines[0], type=_Line).call
    good = [line for line in stage.lines if msgspec.json.decode(line, type=_Line).call == call]
    read = [msgspec.json.decode(line, type=_Line) for line in good]
    kinds = [line.kind for line in read]
    names = [line.request["params"]["name"] for line in read if line.request]
    return Shown(
        title="the trace of the good call",
        asked=None,
        frames=(),
        decided=f"linked by call {call}",
        place="",
        outcome=", ".join(kinds),
        expected="three lines: what the model asked, what was sent, what came back",
        ok=kinds == ["tool_use", "tools/call", "result"] and names == ["lookup_order"],
        lines=tuple(line.rstrip(b"\n") for line in good),
    )


class _Line(msgspec.Struct):
    kind: str
    call: str
    request: dict[str, Any] = {}


_SCENES: Final = (
    _discovery,
    _good,
    _schema,
    _asked,
    _refund,
    _failing,
    _unknown,
    _unknown_there,
    _trace,
)
