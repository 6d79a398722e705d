"""What the faulty servers answer, whatever it is that they break, and how they end."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from .faults import NEW

LATE: Final = 2.6  # seconds, longer than a call of the soak waits
STALL: Final = 0.8
HUNG: Final = 4.0  # over HTTP, after which it ends; over stdio whoever started it has to see to that
NOTICE: Final = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
FLOOD: Final = 300
LISTEN: Final = "subscriptions/listen"
_BURST: Final = 5
_OFFERED: Final = {"tools": {"listChanged": True}}

Message = dict[str, Any]


class Kernel:
    """What the server answers, whatever it is that it breaks."""

    def __init__(self, revision: str, name: str, ledger: Path) -> None:
        self.revision = revision
        self.name = name
        self.listeners: dict[Any, Callable[[bytes], None]] = {}  # by the id of their request
        self.met = {int(line) for line in ledger.read_text().split()} if ledger.exists() else set[int]()
        self._ledger = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def fault(self, message: Message) -> str:
        """The fault that this call asks for, "" for none; one that was met before is served well."""
        arguments = message["params"]["arguments"]
        return "" if arguments["number"] in self.met else str(arguments["fault"])

    def work(self, message: Message) -> None:
        """Do what the call is for: once, as far as this server can tell."""
        number = message["params"]["arguments"]["number"]
        self.met.add(number)
        os.write(self._ledger, b"%d\n" % number)

    def changed(self) -> None:
        """Tell all who listen that the list of tools has changed, several times."""
        for id_, tell in list(self.listeners.items()):
            for _ in range(_BURST):
                tell(self.notice("notifications/tools/list_changed", id_))

    def acknowledge(self, message: Message) -> bytes:
        """What is said first to a request to listen."""
        wish = message["params"]["notifications"]
        return self.notice("notifications/subscriptions/acknowledged", message["id"], notifications=wish)

    def notice(self, method: str, id_: Any, **params: Any) -> bytes:
        """A notification, with the subscription that it belongs to where there is one."""
        if self.revision == NEW:
            params["_meta"] = {"io.modelcontextprotocol/subscriptionId": id_}
        return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()

    def answer(self, message: Message, fault: str = "") -> bytes:
        """The answer to a request of any method, on one line."""
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        method = message["method"]
        if method == "tools/call":
            if fault == "error":
                answer["error"] = {"code": -32000, "message": "out of paper", "data": {"tray": 2}}
            else:
                answer["result"] = self._called(message, fault)
        else:
            found = self._greeting(method)
            answer |= {"error": {"code": -32601, "message": "Method not found"}} if found is None else found
        return json.dumps(answer, ensure_ascii=False).encode()

    def _called(self, message: Message, fault: str) -> Message:
        text = f"{self.name} {message['params']['arguments']['number']}"
        if fault == "separators":
            text += " \u2028\u2029\x85 서울"
        result: Message = {"content": [{"type": "text", "text": text}]}
        return self._result({**result, "isError": True} if fault == "tool error" else result)

    def _result(self, result: Message) -> Message:
        return {"resultType": "complete", **result} if self.revision == NEW else result

    def _greeting(self, method: str) -> Message | None:
        fresh = {"ttlMs": 3_600_000, "cacheScope": "private"} if self.revision == NEW else {}
        if method == "tools/list":
            schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
            look = {"name": "look", "inputSchema": schema, "annotations": {"readOnlyHint": True}}
            return {"result": self._result({"tools": [{"name": "do", "inputSchema": schema}, look], **fresh})}
        if method == "server/discover" and self.revision == NEW:
            found: Message = {"supportedVersions": [NEW], "capabilities": _OFFERED, **fresh}
            return {"result": self._result(found)}
        if self.revision == NEW:
            return None
        if method == "initialize":
            info = {"name": self.name, "version": "1"}
            hello: Message = {
                "protocolVersion": self.revision,
                "capabilities": _OFFERED,
                "serverInfo": info,
            }
            return {"result": hello}
        return {"result": {}} if method == "ping" else None


def killed() -> None:
    """End as a process does that the system, or a person, kills."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    """Do nothing more, for ever, and take no hint to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)
