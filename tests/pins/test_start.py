"""What a stdio server loads before its first answer: nothing that it can do without."""

from __future__ import annotations

import subprocess
import sys

# Each costs a part of a start that can be measured, and none is needed before something unusual happens.
SPARED = {
    "argparse",
    "concurrent.futures.thread",
    "copy",
    "dataclasses",
    "ipaddress",
    "json",
    "pathlib",
    "queue",
    "tempfile",
    "urllib.parse",
}


def loaded(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_what_a_server_does_without() -> None:
    server = "from dragoman import Server\nserver = Server('x')\n@server.tool\ndef add(a: int) -> int: ...\n"
    needless = (loaded(server) - loaded("import asyncio, msgspec")) & SPARED
    assert not needless, f"the start of a server loads {', '.join(sorted(needless))}"


def test_the_table_of_budgets_is_whole() -> None:
    """Every measured row stands in the table, and every entrant's file is there."""
    from bench.budgets import ROWS
    from bench.entrants import CLIENTS, SERVERS

    assert len({(row.key, row.entrant) for row in ROWS}) == len(ROWS)
    assert all((SERVERS / f"{name}_server.py").exists() for name in ("dragoman", "mcp", "fastmcp"))
    assert all((CLIENTS / f"{name}_client.py").exists() for name in ("floor", "dragoman", "mcp", "fastmcp"))
