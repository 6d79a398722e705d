"""The experiments. Each takes the entrants in turn, A B C A B C, and keeps every sample by its row."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from . import counting
from .entrants import FASTMCP, FLOOR, OURS, PLAIN, ROOT, Entrant
from .wire import ADD, ENVIRONMENT, Http, Stdio, cpu, median, memory, one_processor, request

PAYLOAD = 10_000_000  # bytes of the large echo
DEPTH = 64  # requests in flight


@dataclass
class Run:
    """What is measured, for how long, and what came out: samples by row and entrant."""

    entrants: list[Entrant]
    rounds: int
    seconds: float
    quick: bool
    samples: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    failures: list[str] = field(default_factory=list)

    def add(self, row: str, name: str, value: float) -> None:
        self.samples[row][name].append(value)

    def with_(self, kind: str, *, plain: bool = False) -> list[Entrant]:
        """The entrants that have this way of being measured."""
        return [one for one in self.entrants if getattr(one, kind) and (plain or one.name != PLAIN)]

    @contextlib.contextmanager
    def trying(self, what: str, entrant: Entrant) -> Iterator[None]:
        """A peer that fails is left out of a row and named; the floor and ourselves must not fail."""
        try:
            yield
        except (OSError, EOFError, ValueError, RuntimeError, subprocess.SubprocessError) as exc:
            if entrant.name in (FLOOR, OURS, PLAIN):
                raise
            why = " ".join(str(exc).split("\\r\\n\\r\\n")[-1].split())[:120].strip("'")
            failure = f"{entrant.name}, {what}: {why or type(exc).__name__}"
            if failure not in self.failures:
                self.failures.append(failure)


def cold(run: Run) -> None:
    """From spawn to the first answer, and what a process has taken by its first call."""
    for number in range(2 * run.rounds + 1):
        for entrant in run.with_("stdio"):
            with run.trying("start", entrant), Stdio(entrant.stdio) as server:
                server.hello()
                first = time.perf_counter() - server.began
                used = cpu(server.pid)
                server.call("tools/call", ADD)
                peak = memory(server.pid)[1]
                if number:  # the first one fills the caches of the disk and writes compiled files
                    run.add("start", entrant.name, first * 1e3)
                    run.add("start-cpu", entrant.name, used)
                    run.add("memory", entrant.name, peak / 1024)


def imports(run: Run) -> None:
    """What importing costs above an interpreter that imports nothing."""
    codes = {"nothing": "pass", "import dragoman": "import dragoman"}
    codes |= {"msgspec and asyncio": "import asyncio, msgspec", "server": "from dragoman import Server"}
    codes |= {"client": "from dragoman import Client"}
    for number in range(2 * run.rounds + 1):
        for name, code in codes.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)
            if number:
                run.add("import", name, (time.perf_counter() - start) * 1e3)


def instructions(run: Run) -> None:
    """Instructions of one call, and of a life with one call."""
    if not counting.available():
        run.failures.append("instructions: valgrind is not installed")
        return
    for entrant in run.with_("stdio", plain=True):
        ours = entrant.name in (FLOOR, OURS, PLAIN)
        if not entrant.counted or (run.quick and not ours):
            continue
        few, many = (100, 1100) if ours else (30, 130)
        with run.trying("instructions", entrant):
            with Stdio(entrant.stdio) as server:  # writes compiled files where there are none
                server.hello()
            run.add("instructions", entrant.name, counting.per_call(entrant.stdio, few, many) / 1e3)
            if entrant.name in (FLOOR, OURS):
                cost = counting.per_call(entrant.stdio, 2 * DEPTH, 18 * DEPTH, depth=DEPTH)
                run.add("instructions-64", entrant.name, cost / 1e3)
                run.add("start-instructions", entrant.name, counting.stdio(entrant.stdio, 1) / 1e6)


def stdio(run: Run) -> None:
    """One call at a time, and 64 in flight, on servers that stay up for all rounds."""
    with contextlib.ExitStack() as stack:
        live: dict[str, Stdio] = {}
        for entrant in run.with_("stdio", plain=True):
            with run.trying("stdio", entrant):
                live[entrant.name] = stack.enter_context(Stdio(entrant.stdio))
                live[entrant.name].call("server/discover")
                live[entrant.name].one_at_a_time(0.3)
                live[entrant.name].in_flight(0.5)  # compilers that work while it runs have seen both
        for _ in range(run.rounds):
            for name, server in live.items():
                times = server.one_at_a_time(run.seconds)
                run.add("stdio", name, median([float(t) for t in times]) / 1e3)
                run.add("stdio-64", name, server.in_flight(run.seconds))


def http(run: Run) -> None:
    """64 connections with one request each."""
    with contextlib.ExitStack() as stack:
        live: dict[str, Http] = {}
        for entrant in run.with_("http"):
            with run.trying("http", entrant):
                server = stack.enter_context(Http(entrant.http))
                server.call("tools/call", ADD)
                server.load(0.3, 64)
                live[entrant.name] = server
        for _ in range(run.rounds):
            for name, server in live.items():
                run.add("http-64", name, server.load(run.seconds, 64))


def lists(run: Run) -> None:
    """Lists of many tools, calls among many tools, and what it takes to register one."""
    for size in (1_000, 10_000):
        for entrant in run.with_("stdio"):
            if size > 1_000 and (
                entrant.name == FASTMCP or (run.quick and entrant.name not in (FLOOR, OURS))
            ):
                continue  # FastMCP takes a time to register them that grows with the square of their number
            with run.trying(f"{size} tools", entrant), Stdio(entrant.stdio, tools=size) as server:
                server.hello()
                for _ in range(max(3, run.rounds) if size > 1_000 else 7):
                    run.add(f"list-{size}", entrant.name, _list(server, size))
    for _ in range(run.rounds):
        for entrant in run.with_("stdio"):
            if entrant.name == FLOOR or (run.quick and entrant.name != OURS):
                continue
            with run.trying("calls among many tools", entrant):
                _among_many(run, entrant)
    for _ in range(run.rounds):
        for count in (1_000, 10_000):
            run.add("register", f"{count} tools", _register(count))
    run.samples["register"][OURS] = run.samples["register"]["10000 tools"]


def _list(server: Stdio, size: int) -> float:
    """Milliseconds until all pages are there; reading them is not counted."""
    took, cursor, got = 0.0, None, 0
    while True:
        server.number += 1
        frame = request(server.number, "tools/list", {} if cursor is None else {"cursor": cursor})
        start = time.perf_counter()
        server.send(frame)
        line = server.line()
        took += time.perf_counter() - start
        page = json.loads(line)["result"]
        got += len(page["tools"])
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    if got != size:
        raise ValueError(f"{got} tools in the list of {size}")
    return took * 1e3


def _among_many(run: Run, entrant: Entrant) -> None:
    many = 10_000 if entrant.name in (FLOOR, OURS) else 1_000
    with Stdio(entrant.stdio, tools=10) as few, Stdio(entrant.stdio, tools=many) as much:
        for server in (few, much):
            server.hello()
            server.one_at_a_time(run.seconds / 4)
        ratios: list[float] = []
        for _ in range(9):
            one, other = (median([float(t) for t in s.one_at_a_time(run.seconds / 9)]) for s in (few, much))
            ratios.append(other / one)
        run.add("many", entrant.name, median(ratios))


def _register(count: int) -> float:
    """Milliseconds for one of `count` tools."""
    code = f"""
import sys, time
sys.argv += ["--tools", "2"]
sys.path.insert(0, {str(ROOT / "bench" / "servers")!r})
import dragoman_server as bench
tools = [bench.more(number) for number in range({count})]
start = time.perf_counter()
for tool in tools:
    bench.server.add_tool(tool)
print((time.perf_counter() - start) * 1e3 / {count})
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=ENVIRONMENT
    )
    return float(done.stdout)


def big(run: Run) -> None:
    """A large text there and back: how much the peak of memory grows, in payloads."""
    text = "x" * PAYLOAD
    for _ in range(min(run.rounds, 3)):
        for entrant in run.with_("stdio"):
            with run.trying("large echo, stdio", entrant), Stdio(entrant.stdio) as server:
                server.hello()
                server.call("tools/call", ADD)
                before = memory(server.pid)[1]
                server.echo(text)
                run.add("big-stdio", entrant.name, (memory(server.pid)[1] - before) * 1024 / PAYLOAD)
        for entrant in run.with_("http"):
            with run.trying("large echo, http", entrant), Http(entrant.http) as server:
                server.call("tools/call", ADD)
                before = memory(server.pid)[1]
                server.call("tools/call", {"name": "echo", "arguments": {"text": text}})
                run.add("big-http", entrant.name, (memory(server.pid)[1] - before) * 1024 / PAYLOAD)


def streams(run: Run) -> None:
    """What an open listen stream holds, with very many of them open."""
    count = 200 if run.quick else 1_000
    for entrant in run.with_("http"):
        with run.trying("listen streams", entrant), Http(entrant.http) as server:
            server.call("tools/call", ADD)
            server.load(0.5, 64)  # what grows once has grown
            before = memory(server.pid)[0]
            with contextlib.ExitStack() as opened:
                for number in range(count):
                    opened.enter_context(server.listen(number + 1))
                server.call("tools/call", ADD)
                run.add("streams", entrant.name, (memory(server.pid)[0] - before) / count)


def clients(run: Run) -> None:
    """Clients against the same bare server, one call at a time."""
    floor = run.entrants[0]
    with Http([*floor.http, "--raw"]) as server:
        places = {"stdio": json.dumps(floor.stdio), "http": f"http://127.0.0.1:{server.port}/mcp"}
        for _ in range(run.rounds):
            for transport, place in places.items():
                for entrant in run.with_("client"):
                    with run.trying(f"client, {transport}", entrant), one_processor(server.pid):
                        command = [*entrant.client, transport, place, str(run.seconds)]
                        run.add(f"client-{transport}", entrant.name, _client(command))


def _client(command: list[str]) -> float:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=ENVIRONMENT)
    found = [line for line in done.stdout.splitlines() if line.startswith("JSON ")]
    if not found:
        raise RuntimeError((done.stdout + done.stderr)[-400:])
    return json.loads(found[0][5:])["p50_us"]


EXPERIMENTS: dict[str, Callable[[Run], None]] = {
    "cold": cold,
    "imports": imports,
    "instructions": instructions,
    "stdio": stdio,
    "http": http,
    "lists": lists,
    "big": big,
    "streams": streams,
    "clients": clients,
}
