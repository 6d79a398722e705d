"""Who is measured: the floor, ourselves, and the peers that are installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = ROOT / ".peers"
SERVERS, CLIENTS = HERE / "servers", HERE / "clients"

FLOOR, OURS, PLAIN, MCP, FASTMCP, TS = "floor", "dragoman", "plain def", "mcp", "fastmcp", "ts"


@dataclass(frozen=True)
class Entrant:
    """Commands by what they do; `http` takes `--http PORT`, servers take `--tools N`."""

    name: str
    stdio: list[str] = field(default_factory=list)
    http: list[str] = field(default_factory=list)
    client: list[str] = field(default_factory=list)
    version: str = ""
    counted: bool = True  # by instructions: what a compiler makes while it runs cannot be


def ours_and_floor() -> list[Entrant]:
    python = sys.executable
    server = [python, str(SERVERS / "dragoman_server.py")]
    floor = [python, str(CLIENTS / "floor_client.py")]
    client = [python, str(CLIENTS / "dragoman_client.py")]
    return [
        Entrant(
            FLOOR,
            [python, str(SERVERS / "floor_stdio.py")],
            [python, str(SERVERS / "floor_asgi.py")],
            floor,
            version="asyncio + msgspec",
        ),
        Entrant(OURS, server, server, client, version=_version(python, "dragoman")),
        Entrant(PLAIN, [*server, "--plain"]),
    ]


def peers() -> list[Entrant]:
    """Those that are installed, in the order of the table."""
    found = []
    for name, folder in ((MCP, "mcp2"), (FASTMCP, "fastmcp4")):
        python = PEERS / folder / "bin" / "python"
        if (PEERS / folder / ".stamp").exists():
            server = [str(python), str(SERVERS / f"{name}_server.py")]
            client = [str(python), str(CLIENTS / f"{name}_client.py")]
            found.append(Entrant(name, server, server, client, _version(str(python), name)))
    node, modules = PEERS / "bin" / "node", PEERS / "npm" / "node_modules"
    if node.exists() and (modules / "@modelcontextprotocol" / "server").exists():
        # Imports of a module are resolved from where its file is.
        server = [str(node), shutil.copy(SERVERS / "ts_server.mjs", modules.parent / "bench_server.mjs")]
        client = [str(node), shutil.copy(CLIENTS / "ts_client.mjs", modules.parent / "bench_client.mjs")]
        manifest = (modules / "@modelcontextprotocol" / "server" / "package.json").read_text()
        version = manifest.partition('"version": "')[2].partition('"')[0]
        found.append(Entrant(TS, server, server, client, version, counted=False))
    return found


def _version(python: str, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
