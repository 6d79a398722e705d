"""A server that breaks in the way that a call asks for: over stdio or HTTP, in one of two revisions.

    python -m tools.soak.served stdio|http REVISION NAME LEDGER [PORT]

It is written apart from the package, as the specification has it. LEDGER gets the number of each call that
it worked on, a line each; a call that it has met before is served well. Over HTTP its port is on its
stdout, and it ends when its stdin does.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from .faults import STDIO
from .kernel import Kernel
from .over_http import Http
from .over_stdio import Stdio


async def serve_http(kernel: Kernel, port: int) -> None:
    """Until the end of stdin."""
    server = await asyncio.start_server(Http(kernel).connected, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    await reader.read()
    os._exit(0)


def main() -> None:
    transport, revision, name, ledger, *port = sys.argv[1:]
    kernel = Kernel(revision, name, Path(ledger))
    if transport == STDIO:
        asyncio.run(Stdio(kernel).serve())
    else:
        asyncio.run(serve_http(kernel, int(port[0]) if port else 0))


if __name__ == "__main__":
    main()
