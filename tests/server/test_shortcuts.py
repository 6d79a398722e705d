"""The ways that are short for what is common give what the long ways give, to the byte.

The same frames go to two servers. One learns as it is used: params with their envelope, what clients say
once, functions called with their arguments by position, work begun at once. The other learns nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Literal

import pytest

from dragoman import Context, Server
from dragoman.jsonrpc.message import decode_envelope
from dragoman.protocol import admission
from dragoman.protocol.reading import READING, Reading
from dragoman.revisions import BY_VERSION
from dragoman.transports import connection
from dragoman.transports.connection import ServerConnection
from tests.drivers.stdio import META, NS, request

SHAPES = {method.name: method.params for one in BY_VERSION.values() for method in one.methods.values()}
TURNS = 40  # of the loop, in which everything here comes to its end


def made() -> Server:
    server = Server("s", page_size=3)

    @server.tool
    async def add(a: int, b: int = 2) -> int:
        return a + b

    @server.tool
    async def text(t: str, style: Literal["a", "b"] = "a") -> str:
        return t + style

    @server.tool
    async def keep(xs: list[float], o: dict[str, int] | None = None) -> dict[str, Any]:
        return {"xs": xs, "o": o}

    @server.tool
    async def fails(late: bool = False) -> str:
        if late:
            await asyncio.sleep(0)
        raise ValueError("no")

    @server.tool
    async def told(ctx: Context, n: int = 1) -> dict[str, Any]:
        for step in range(n % 4):
            ctx.report_progress(step + 1, n)
            ctx.info({"step": step})
            await asyncio.sleep(0)
        info = ctx.client_info
        return {"id": ctx.request_id, "meta": ctx.meta, "name": info.name if info else None}

    @server.tool
    async def forever() -> None:
        await asyncio.get_running_loop().create_future()

    served(server)
    return server


def served(server: Server) -> None:
    """What is no tool."""

    @server.resource("res://{name}")
    async def resource(name: str) -> str:
        return name

    @server.prompt
    async def prompt(name: str) -> str:
        return name


class Unlearning(Reading):
    """Reads all params by themselves, however often a method comes."""

    def read(self, request: Any, extra: Any) -> Any:
        read = super().read(request, extra)
        self.envelope = decode_envelope
        return read


class Tasks:
    """A task for each request, as asyncio has it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.begin: Callable[[Coroutine[Any, Any, None]], Any] = loop.create_task

    def close(self) -> None:
        """There is nothing to be given up."""


# Frames -----------------------------------------------------------------------------------------------


class Frames:
    """Frames by chance, of which most are what a client sends."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.id = 0
        self.last = b"{}"

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def meta(self) -> Any:
        pick = self.random.choice
        offered = pick([{}, {"elicitation": {}}, {"extensions": {"a/b": {}}}])
        meta: dict[str, Any] = {NS + "protocolVersion": "2026-07-28", NS + "clientCapabilities": offered}
        if self.maybe(0.7):
            meta[NS + "clientInfo"] = {"name": pick(["one", "two", "dr\u00e9"]), "version": "1"}
        if self.maybe(0.2):
            meta[NS + "logLevel"] = pick(["debug", "info", "error", "none"])
        if self.maybe(0.3):
            meta["progressToken"] = pick([1, "t", "", 0, 2**70, 1.0, None, True])
        if self.maybe(0.1):
            meta[NS + "protocolVersion"] = pick(["2025-11-25", "1999-01-01", "", 1, None])
        if self.maybe(0.1):
            del meta[pick(list(meta))]
        return pick([None, [], "x", {}]) if self.maybe(0.05) else meta

    def good(self, said: dict[str, Any]) -> dict[str, Any]:
        named = self.random.choice([{"name": "add", "arguments": {"a": 1}}, {"name": "told"}])
        return {**named, "_meta": {**META, **said}}

    def params(self, method: str) -> dict[str, Any]:
        pick = self.random.choice
        params: dict[str, Any] = {}
        if method == "tools/call":
            params["name"] = pick(["add", "text", "keep", "fails", "told", "forever", "nobody"])
            params["arguments"] = self.arguments(params["name"])
        elif method == "resources/read":
            params["uri"] = pick(["res://a", "res://%C3%A9", "nope://", 1])
        elif method == "prompts/get":
            params |= {"name": pick(["prompt", "nobody"]), "arguments": pick([{"name": "n"}, {}, None])}
        elif method == "initialize":
            version = pick(["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
            info = {"name": "old", "version": "1"}
            params |= {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        elif self.maybe(0.3):
            params["cursor"] = pick(["", "x", None, 1])
        if self.maybe(0.85):
            params["_meta"] = self.meta()
        if self.maybe(0.05):
            params[pick(["x", "task", "requestState", "inputResponses"])] = pick([None, 1, "x", {}, [[]]])
        return params

    def arguments(self, tool: str) -> Any:
        pick = self.random.choice
        if self.maybe(0.1):
            return pick([None, [], "x", {}, {"z": 1}])
        if tool == "add":
            return {"a": pick([1, 1.0, 2**80, "1", None, True])} | pick([{}, {"b": 1}, {"b": None}])
        if tool == "text":
            return {"t": pick(["", "\u2028", "a\nb", 1])} | pick([{}, {"style": "b"}, {"style": "c"}])
        if tool == "keep":
            return {"xs": pick([[], [1, 2.5], [None], 1])} | pick([{}, {"o": {"a": 1}}, {"o": {"a": "1"}}])
        return pick([{}, {"n": 3}, {"late": True}, {"n": "x"}])

    def message(self) -> Any:
        pick = self.random.choice
        self.id += 1
        if self.maybe(0.3):  # nothing is wrong with it
            said = {NS + "clientInfo": {"name": pick(["one", "two"]), "version": "1"}}
            return request(self.id, "tools/call", self.good(said))
        if self.maybe(0.1):
            wanted = pick([self.id - 1, self.id - 2, None, "x"])
            return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wanted}}
        if self.maybe(0.05):
            return {"jsonrpc": "2.0", "id": self.id - 1} | pick([{"result": {}}, {"error": {}}])
        method = pick(["tools/call"] * 9 + ["initialize", "ping", "nope", *SHAPES])
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self.id, "method": method}
        message["params"] = self.params(method)
        if self.maybe(0.1):
            message["id"] = pick(["s", "", -1, 2**64, 1.0, 1.5, None, True, [], self.id - 1])
        if self.maybe(0.05):
            message["params"] = pick([None, [], [1], "x"])
        if self.maybe(0.05):
            message[pick(["result", "error", "jsonrpc", "x"])] = pick(
                [None, "", "1.0", {}, {"method": "ping"}]
            )
        return message

    def written(self, value: Any) -> str:
        """As JSON that not everybody would write: blanks, escapes, members twice or elsewhere, 1e0 for 1."""
        blank = self.random.choice(["", "", " ", "\t", "\r"])
        if isinstance(value, dict):
            members = list(value.items())
            if self.maybe(0.2):
                self.random.shuffle(members)
            if members and self.maybe(0.1):
                name, member = self.random.choice(members)
                other = self.random.choice([member, None, 1, "ping", {"name": "add"}])
                members.insert(self.random.randrange(len(members) + 1), (name, other))
            parts = [f"{blank}{self.written(name)}{blank}:{self.written(one)}" for name, one in members]
            return "{" + ",".join(parts) + blank + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(self.written, value)) + blank + "]"
        if isinstance(value, str) and self.maybe(0.1):
            return '"' + "".join(f"\\u{ord(char):04x}" for char in value) + '"'
        if type(value) is int and self.maybe(0.1):
            return self.random.choice(
                [f"{value}.0", f"{value}e0", f"{value}0E-1", "-0", "1e400", f"0{value}"]
            )
        return json.dumps(value, ensure_ascii=self.maybe(0.5))

    def frame(self) -> bytes:
        if self.maybe(0.1):  # nearly as before
            return self.last.replace(b'"one"', b'"two"') if self.maybe(0.5) else self.last
        message = [self.message(), self.message()] if self.maybe(0.03) else self.message()
        text = self.written(message) if self.maybe(0.5) else json.dumps(message)
        data = bytearray(text.encode())
        if self.maybe(0.1):
            at = self.random.randrange(len(data))
            data[at : at + self.random.randrange(3)] = self.random.randbytes(self.random.randrange(3))
        if self.maybe(0.1):
            depth = self.random.choice([124, 125, 126, 127, 128, 180])
            deep = b'"params":{"x":' + b'{"":' * depth + b"1" + b"}" * depth + b","
            data = data.replace(b'"params": {', deep, 1)
        self.last = bytes(data)
        return self.last


# Both ways --------------------------------------------------------------------------------------------


def in_order(frame: bytes) -> bytes:
    """The answers to a batch come in any order (JSON-RPC 2.0, section 6)."""
    if not frame.startswith(b"["):
        return frame
    return json.dumps(sorted(json.loads(frame), key=json.dumps)).encode()


async def answers(server: Server, frames: list[bytes], *, before: Callable[[], None]) -> list[list[bytes]]:
    """What comes back for each of the frames."""
    loop = asyncio.get_running_loop()
    sent: list[bytes] = []
    one = ServerConnection(server.kernel, sent.append)
    came: list[list[bytes]] = []
    for frame in frames:
        before()
        loop.call_soon(one.receive, frame)  # as from a pipe: within no task
        for _ in range(TURNS):
            await asyncio.sleep(0)
        came.append(list(map(in_order, sent)))
        sent.clear()
    await one.cancel()
    assert not one.in_flight
    return came


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Takes the short ways away, until it is told to give them back."""

    def take() -> pytest.MonkeyPatch:
        unlearning = Unlearning(SHAPES)
        monkeypatch.setattr(connection, "READING", unlearning)
        monkeypatch.setattr(admission, "READING", unlearning)
        monkeypatch.setattr(connection, "Starter", Tasks)
        return monkeypatch

    yield take
    monkeypatch.undo()


def forget() -> None:
    """Nothing that was said before counts."""
    admission._heard.last = admission._NOTHING
    admission._NOTHING.caller = None
    admission._heard.said.clear()


@pytest.mark.parametrize("seed", range(12))
async def test_short_ways_and_long_ways_give_the_same(seed: int, long_ways: Callable[[], Any]) -> None:
    by_chance = Frames(seed)
    frames = [by_chance.frame() for _ in range(150)]
    short = await answers(made(), frames, before=lambda: None)
    patch = long_ways()
    server = made()
    for tool in server.tools:
        tool.begin = None
    long = await answers(server, frames, before=forget)
    patch.undo()
    for frame, by_short, by_long in zip(frames, short, long, strict=True):
        assert by_short == by_long, frame
    assert READING.envelope is not decode_envelope  # the short way was there to be taken
    results = [answer for came in short for answer in came if b'"result":' in answer]
    assert len(results) > 30  # this is no test of refusals alone
