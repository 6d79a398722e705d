"""The peers, how they are started, what they are asked, and what comes of it.

The tests hold what happens against these tables, and the page of the documentation is written from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests import needs

HERE = Path(__file__).parent
NEWEST, HANDSHAKE = "2026-07-28", "2025-11-25"

Transport = Literal["stdio", "http"]

# What lines, JSON and encodings stumble over, and more of it than fits into a pipe.
ODD = '\u2028\u2029\x85\r\n\t\\"\x00\x7f\ufeff\U0001f600 한 {}[]: data: \n\ndata: ' + 40_000 * "한\n"
Call = tuple[str, Mapping[str, Any]]


# --- servers of others ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is asked of a server. `good` with the text it answers; `long` tells that it began by progress,
    unless `started` is `sent`; `echo` gives back one argument, after some words; `counter` says how many
    calls of `long` were stopped. `resources`, `templates` and `prompts` are how many it lists; `reads` are
    URIs with what stands there, `prompt` one with what it says. `change` changes what stands at `watched`,
    and with `adds` the list of tools; `still` ends what it began.

    In texts, {folder} is a folder with a file hello.txt, {page} the URL of that file.
    """

    tools: int
    good: Call | None = None
    text: str = ""
    echo: tuple[str, str, str] | None = None
    refused: Call | None = None
    fails: Call | None = None
    progress: tuple[Call, list[float]] | None = None
    long: Call | None = None
    started: Literal["progress", "sent"] = "progress"
    counter: str | None = None
    resources: int = 0
    templates: int = 0
    reads: Sequence[tuple[str, str]] = ()
    prompts: int = 0
    prompt: tuple[Call, str] | None = None
    watched: str | None = None
    change: Call | None = None
    adds: bool = False
    still: Call | None = None


@dataclass(frozen=True)
class ServerRow:
    """What comes of one server, transport and way of opening. An error is its code or `isError`.

    `told` are the changes that were heard of, out of all that the server could have told.
    """

    peer: str
    transport: Transport
    protocol: str
    revision: str
    refused: str = "isError"
    unknown: str = "isError"
    cancelled: str = "stopped"
    told: str = "-"
    end: str = "exit 0"

    @property
    def id(self) -> str:
        return f"{self.peer}-{self.transport}-{self.protocol}"


SCRIPTED = Plan(
    tools=8,
    good=("add", {"a": 2, "b": 3}),
    text="5",
    echo=("echo", "text", ""),
    refused=("add", {"a": "two", "b": 3}),
    fails=("fail", {}),
    progress=(("steps", {"count": 3}), [1, 2, 3]),
    long=("wait", {}),
    counter="waits_stopped",
    resources=1,
    templates=1,
    reads=[("notes://today", "rain"), ("notes://monday/weather", "monday: sun")],
    prompts=1,
    prompt=(("greet", {"who": "Ann"}), "Say hello to Ann."),
    watched="notes://today",
    change=("change", {}),
    adds=True,
)
EVERYTHING = Plan(
    tools=13,
    good=("get-sum", {"a": 2, "b": 3}),
    text="The sum of 2 and 3 is 5.",
    echo=("echo", "message", "Echo: "),
    refused=("get-sum", {"a": "two", "b": 3}),
    progress=(("trigger-long-running-operation", {"duration": 0.3, "steps": 3}), [1, 2, 3]),
    long=("trigger-long-running-operation", {"duration": 1, "steps": 10}),
    resources=7,
    templates=2,
    reads=[
        ("demo://resource/static/document/features.md", "Everything"),
        ("demo://resource/dynamic/text/3", "Resource 3"),
    ],
    prompts=4,
    prompt=(("args-prompt", {"city": "Seoul"}), "weather in Seoul"),
    watched="demo://resource/static/document/features.md",
    change=("toggle-subscriber-updates", {}),
    still=("toggle-subscriber-updates", {}),
)
FILESYSTEM = Plan(
    tools=14,
    good=("read_text_file", {"path": "{folder}/hello.txt"}),
    text="안녕하세요\n",
    refused=("read_text_file", {"path": 7}),
    fails=("read_text_file", {"path": "/proc/version"}),
    long=("directory_tree", {"path": "{folder}"}),
    started="sent",
)
MEMORY = Plan(
    tools=9,
    good=("search_nodes", {"query": "nobody"}),
    text='"entities": []',
    refused=("search_nodes", {"query": 7}),
    fails=("add_observations", {"observations": [{"entityName": "nobody", "contents": ["nothing"]}]}),
    long=("read_graph", {}),
    started="sent",
    resources=1,
    reads=[("memory://knowledge-graph", '"entities"')],
    watched="memory://knowledge-graph",
    change=("create_entities", {"entities": [{"name": "Ann", "entityType": "person", "observations": []}]}),
)
THOUGHT = {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
THINKING = Plan(
    tools=1,
    good=("sequentialthinking", THOUGHT),
    text='"thoughtNumber": 1',
    refused=("sequentialthinking", {"thought": "one"}),
    long=("sequentialthinking", THOUGHT),
    started="sent",
)
PLAYWRIGHT = Plan(tools=25)  # what else it has starts a browser
FETCH = Plan(
    tools=1,
    good=("fetch", {"url": "{page}", "raw": True}),
    text="안녕하세요",
    refused=("fetch", {"url": 7}),
    fails=("fetch", {"url": "{page}/no-such-page"}),
    long=("fetch", {"url": "{page}"}),
    started="sent",
    prompts=1,
    prompt=(("fetch", {"url": "{page}"}), "안녕하세요"),
)
GIT = Plan(
    tools=12,
    good=("git_status", {"repo_path": "{folder}"}),
    text="hello.txt",
    refused=("git_status", {"repo_path": 7}),
    fails=("git_status", {"repo_path": "/proc"}),
    long=("git_status", {"repo_path": "{folder}"}),
    started="sent",
)
TIME = Plan(
    tools=2,
    good=("convert_time", {"source_timezone": "Asia/Seoul", "time": "12:00", "target_timezone": "UTC"}),
    text='"time_difference": "-9.0h"',
    refused=("convert_time", {"source_timezone": 7}),
    fails=("get_current_time", {"timezone": "Nowhere/At_All"}),
    long=("get_current_time", {"timezone": "UTC"}),
    started="sent",
)


@dataclass(frozen=True, kw_only=True)
class ServerPeer:
    """A server of others. `ready` begins the line in which one says where it listens, `host` is the name by
    which it wants to be called; `environment` is what it has to be told there. One over HTTP `tells` what it
    answers, or not.
    """

    package: str
    venv: str = ""  # none: npm
    plan: Plan = SCRIPTED
    ready: str = "^port"
    port_option: str | None = None
    host: str = "127.0.0.1"
    tells: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, transport: Transport, folder: Path) -> list[str]:
        """What to run; `folder` has a file hello.txt."""
        raise AssertionError(f"{self.package} has no command line")


@dataclass(frozen=True, kw_only=True)
class PythonServer(ServerPeer):
    kind: str

    def command(self, transport: Transport, folder: Path) -> list[str]:
        return [needs.peer_python(self.venv), str(HERE / "peers" / "server.py"), self.kind, transport]


@dataclass(frozen=True, kw_only=True)
class TypeScriptServer(ServerPeer):
    def command(self, transport: Transport, folder: Path) -> list[str]:
        return [needs.node(), str(HERE / "peers" / "server.mjs"), str(needs.npm_modules()), transport]


@dataclass(frozen=True, kw_only=True)
class NpmServer(ServerPeer):
    """A program of the registry as it is. `arguments` by transport."""

    arguments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    script: str = "dist/index.js"

    def command(self, transport: Transport, folder: Path) -> list[str]:
        program = needs.npm_package(self.package) / self.script
        return [
            needs.node(),
            str(program),
            *(word.format(folder=folder) for word in self.arguments[transport]),
        ]


@dataclass(frozen=True, kw_only=True)
class PythonProgram(ServerPeer):
    arguments: Sequence[str] = ()

    def command(self, transport: Transport, folder: Path) -> list[str]:
        program = str(Path(needs.peer_python(self.venv)).with_name(self.package))
        return [program, *(word.format(folder=folder) for word in self.arguments)]


SERVERS: dict[str, ServerPeer] = {
    "everything": NpmServer(
        package="@modelcontextprotocol/server-everything",
        plan=EVERYTHING,
        arguments={"stdio": ["stdio"], "http": ["streamableHttp"]},
        ready="listening on port",
        port_option="PORT",
    ),
    "filesystem": NpmServer(
        package="@modelcontextprotocol/server-filesystem", plan=FILESYSTEM, arguments={"stdio": ["{folder}"]}
    ),
    "memory": NpmServer(
        package="@modelcontextprotocol/server-memory",
        plan=MEMORY,
        arguments={"stdio": []},
        environment={"MEMORY_FILE_PATH": "{folder}/memory.jsonl"},
    ),
    "thinking": NpmServer(
        package="@modelcontextprotocol/server-sequential-thinking", plan=THINKING, arguments={"stdio": []}
    ),
    "playwright": NpmServer(
        package="@playwright/mcp",
        plan=PLAYWRIGHT,
        arguments={"stdio": [], "http": []},
        script="cli.js",
        ready="^Listening on http",
        host="localhost",
        tells=False,
        port_option="PLAYWRIGHT_MCP_PORT",
    ),
    "time": PythonProgram(package="mcp-server-time", venv="servers", plan=TIME),
    "git": PythonProgram(package="mcp-server-git", venv="servers", plan=GIT),
    "fetch": PythonProgram(
        package="mcp-server-fetch", venv="servers", plan=FETCH, arguments=["--allow-private-ips"]
    ),
    "mcp2": PythonServer(package="mcp", venv="mcp2", kind="mcp2"),
    "mcp1": PythonServer(package="mcp", venv="mcp1", kind="mcp1"),
    "fastmcp3": PythonServer(package="fastmcp", venv="mcp1", kind="fastmcp3"),
    "fastmcp4": PythonServer(package="fastmcp", venv="fastmcp4", kind="fastmcp4"),
    "typescript": TypeScriptServer(package="@modelcontextprotocol/server"),
}

TOLD = {
    ("mcp2", NEWEST): "tools, resource",
    ("fastmcp3", HANDSHAKE): "tools",
    ("fastmcp4", HANDSHAKE): "tools",
    ("typescript", NEWEST): "tools, resource",
    ("typescript", HANDSHAKE): "tools, resource",
}

SERVER_ROWS = [
    ServerRow("everything", "stdio", "auto", HANDSHAKE, cancelled="sent", told="resource"),
    ServerRow(
        "everything", "http", "auto", HANDSHAKE, cancelled="sent", told="resource", end="session deleted"
    ),
    ServerRow("filesystem", "stdio", "auto", HANDSHAKE, cancelled="sent"),
    ServerRow("memory", "stdio", "auto", HANDSHAKE, cancelled="sent", told="resource"),
    ServerRow("thinking", "stdio", "auto", HANDSHAKE, cancelled="sent"),
    ServerRow("playwright", "stdio", "auto", HANDSHAKE, refused="-", unknown="-", cancelled="-"),
    ServerRow("playwright", "http", "auto", HANDSHAKE, refused="-", unknown="-", cancelled="-", end="-"),
    ServerRow("time", "stdio", "auto", NEWEST, unknown="-32602", cancelled="sent"),
    ServerRow("time", "stdio", HANDSHAKE, HANDSHAKE, unknown="-32602", cancelled="sent"),
    ServerRow("git", "stdio", "auto", NEWEST, unknown="-32602", cancelled="sent"),
    ServerRow("git", "stdio", HANDSHAKE, HANDSHAKE, unknown="-32602", cancelled="sent"),
    ServerRow("fetch", "stdio", "auto", NEWEST, unknown="-32602", cancelled="sent"),
    ServerRow("fetch", "stdio", HANDSHAKE, HANDSHAKE, unknown="-32602", cancelled="sent"),
    *(
        ServerRow(
            peer,
            transport,
            protocol,
            revision,
            end=end,
            unknown=unknown,
            told=TOLD.get((peer, revision), "-"),
        )
        for peer, newest in [
            ("mcp2", True),
            ("mcp1", False),
            ("fastmcp4", True),
            ("fastmcp3", False),
            ("typescript", True),
        ]
        for transport in ("stdio", "http")
        for protocol, revision in [("auto", NEWEST if newest else HANDSHAKE), (HANDSHAKE, HANDSHAKE)]
        for unknown in ["-32602" if peer == "typescript" else "isError"]
        for end in [
            "exit 0"
            if transport == "stdio"
            else "nothing to end"
            if revision == NEWEST
            else "session deleted"
        ]
        if newest or protocol == "auto"
    ),
]

# Servers that know handshakes only, asked for the newest revision and nothing else: the error. A status
# without an answer to the request is told as it is.
REFUSED_ROWS: list[tuple[str, Transport, str]] = [
    ("everything", "stdio", "NegotiationError"),
    ("everything", "http", "NegotiationError"),
    ("filesystem", "stdio", "NegotiationError"),
    ("mcp1", "stdio", "NegotiationError"),
    ("mcp1", "http", "HttpError"),
]

# Servers that ask back during a call, by requests of their own or by `input_required`.
ASKING_ROWS: list[tuple[str, Transport, str]] = [
    (peer, transport, protocol)
    for peer, protocols in [
        ("mcp2", (NEWEST, HANDSHAKE)),
        ("mcp1", (HANDSHAKE,)),
        ("fastmcp3", (HANDSHAKE,)),
        ("fastmcp4", (HANDSHAKE,)),
        ("typescript", (NEWEST, HANDSHAKE)),
    ]
    for transport in ("stdio", "http")
    for protocol in protocols
]

# The tools of the everything server that ask back: with what, and what of the answer is in the result.
EVERYTHING_ASKS: dict[str, tuple[Call, str]] = {
    "form": (("trigger-elicitation-request", {}), "Ann"),
    "model": (("trigger-sampling-request", {"prompt": "Say a word", "maxTokens": 10}), "a model's word"),
    "roots": (("get-roots-list", {}), "file:///srv/project"),
}

# Servers that are asked for each older revision, and agree.
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18")
OLDER_ROWS: list[tuple[str, Transport]] = [("everything", "stdio"), ("everything", "http"), ("mcp2", "http")]


# --- clients of others ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClientRow:
    """What comes of one client of others at our server. `end` is what it says when it leaves."""

    peer: str
    transport: Transport
    revision: str
    cancelled: str = "stopped"
    end: str = "exit 0"

    @property
    def id(self) -> str:
        return f"{self.peer}-{self.transport}"


@dataclass(frozen=True, kw_only=True)
class ClientPeer:
    """A client of others, in one of its ways to open a connection, by the methods in `opens`. `words` go
    before the target.
    """

    package: str
    shown: str
    opens: Sequence[str]
    venv: str = ""
    script: str
    words: Sequence[str] = ()

    @property
    def asks(self) -> bool:
        """Whether it asks the server who it is."""
        return bool(self.opens)

    def command(self, target: Sequence[str]) -> list[str]:
        script = str(HERE / "peers" / self.script)
        if self.venv:
            return [needs.peer_python(self.venv), script, *self.words, *target]
        return [needs.node(), script, str(needs.npm_modules()), *self.words, *target]


CLIENTS: dict[str, ClientPeer] = {
    "mcp2-auto": ClientPeer(
        package="mcp",
        shown='`mode="auto"`',
        opens=["server/discover"],
        venv="mcp2",
        script="client_mcp2.py",
        words=["auto"],
    ),
    "mcp2-legacy": ClientPeer(
        package="mcp",
        shown='`mode="legacy"`',
        opens=["initialize"],
        venv="mcp2",
        script="client_mcp2.py",
        words=["legacy"],
    ),
    "mcp2-pinned": ClientPeer(
        package="mcp",
        shown=f'`mode="{NEWEST}"`',
        opens=[],
        venv="mcp2",
        script="client_mcp2.py",
        words=[NEWEST],
    ),
    "mcp1": ClientPeer(package="mcp", shown="", opens=["initialize"], venv="mcp1", script="client_mcp1.py"),
    "typescript-auto": ClientPeer(
        package="@modelcontextprotocol/client",
        shown='`mode: "auto"`',
        opens=["server/discover"],
        script="client.mjs",
        words=["auto"],
    ),
    "typescript-legacy": ClientPeer(
        package="@modelcontextprotocol/client",
        shown='`mode: "legacy"`',
        opens=["initialize"],
        script="client.mjs",
        words=["legacy"],
    ),
    "typescript1": ClientPeer(
        package="@modelcontextprotocol/sdk", shown="", opens=["initialize"], script="client.mjs", words=["1"]
    ),
}

CLIENT_ROWS = [
    ClientRow(peer, transport, revision, end=end)
    for peer, revision in [
        ("mcp2-auto", NEWEST),
        ("mcp2-legacy", HANDSHAKE),
        ("mcp2-pinned", NEWEST),
        ("mcp1", HANDSHAKE),
        ("typescript-auto", NEWEST),
        ("typescript-legacy", HANDSHAKE),
        ("typescript1", HANDSHAKE),
    ]
    for transport in ("stdio", "http")
    for end in [
        "exit 0" if transport == "stdio" else "nothing to end" if revision == NEWEST else "session deleted"
    ]
]


# --- skills -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SkillRow:
    """A package of others that serves skills or uses them, in one way to speak; with `directories` or not."""

    peer: Literal["fastmcp4", "typescript"]
    transport: Transport
    protocol: str
    revision: str
    directories: bool = True

    @property
    def id(self) -> str:
        return f"{self.peer}-{self.transport}-{self.protocol}"

    @property
    def package(self) -> tuple[str, str]:
        """Its name, and the environment that it lives in."""
        return ("fastmcp", "fastmcp4") if self.peer == "fastmcp4" else ("@modelcontextprotocol/server", "")

    def command(self, *words: str) -> list[str]:
        if self.peer == "fastmcp4":
            return [needs.peer_python(self.peer), str(HERE / "peers" / "skills.py"), *words]
        return [needs.node(), str(HERE / "peers" / "skills.mjs"), str(needs.npm_modules()), *words]


SKILL_SERVERS = [
    SkillRow(peer, transport, protocol, revision, peer == "typescript")
    for peer, newest in [("fastmcp4", True), ("typescript", False)]
    for transport in ("stdio", "http")
    for protocol, revision in [("auto", NEWEST), (HANDSHAKE, HANDSHAKE)]
    if protocol == "auto" or not newest  # FastMCP has them on the newest revision only
]
SKILL_CLIENTS = [
    SkillRow(peer, transport, protocol, revision, peer == "typescript")
    for peer, protocol, revision in [
        ("fastmcp4", "auto", NEWEST),
        ("typescript", "auto", NEWEST),
        ("typescript", "legacy", HANDSHAKE),
    ]
    for transport in ("stdio", "http")
]


# --- versions ---------------------------------------------------------------------------------------


def version(package: str, venv: str = "") -> str:
    """The locked version of a package that is installed as a peer; without `venv` one of npm."""
    peers = needs.ROOT / "tests" / "peers"
    if venv:
        found = re.search(
            rf"^{re.escape(package)}==([^\s\\]+)",
            (peers / "python" / f"{venv}.txt").read_text(),
            re.MULTILINE,
        )
        assert found is not None, f"{venv}.txt locks no {package}"
        return found[1]
    locked: str = json.loads((peers / "npm" / "package-lock.json").read_text())["packages"][
        f"node_modules/{package}"
    ]["version"]
    return locked
