"""A host that is going to be killed: starts a puppet, says which processes there are, waits.

host.py [fork] PUPPET-OPTION ...
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from dragoman.jsonrpc.message import Request, encode_error, encode_request
from dragoman.transports.base import Outgoing
from dragoman.transports.child import ChildLimits, ChildTransport

PUPPET = Path(__file__).with_name("puppet.py")


async def refuse(request: Request) -> bytes:
    return encode_error(request.id, -32601, "Method not found")


async def main() -> None:
    words = sys.argv[1:]
    fork = "fork" in words
    command = [sys.executable, str(PUPPET), *(word for word in words if word != "fork")]
    transport = ChildTransport(command, limits=ChildLimits(grace=(0.2, 0.2)))
    await transport.open(print, refuse)
    pids = []
    for number, method in enumerate(("where", "bear"), 1):
        answer = await transport.exchange(Outgoing(number, method, encode_request(number, method, {})))
        pids.append(json.loads(bytes(answer.result))["pid"])
    forked = os.fork() if fork else None
    if forked == 0:
        while True:
            signal.pause()
    facts = transport.facts()
    print(json.dumps({"pids": pids, "forked": forked, "leader": facts["pid"], "watched": facts["watched"]}))
    sys.stdout.flush()
    await asyncio.Event().wait()


asyncio.run(main())
