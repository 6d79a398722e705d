"""A server over stdio that breaks in the way that the name of the called tool says.

broken.py [FILE]     FILE counts its starts, a byte each
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

OUT = sys.stdout.buffer


def write(data: bytes) -> None:
    OUT.write(data)
    OUT.flush()


def result(id_: object, text: str = "well") -> bytes:
    content = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": content}, ensure_ascii=False).encode()


def line(id_: object, text: str = "well") -> bytes:
    return result(id_, text) + b"\n"


def well(id_):
    write(line(id_))


def dies_before(id_):
    os.write(2, b"out of luck\n")
    os._exit(3)


def dies_during(id_):
    write(line(id_)[:20])
    os._exit(4)


def dies_after(id_):
    write(line(id_))
    os._exit(5)


def closes_stdout(id_):
    os.close(1)
    time.sleep(60)


def stops_reading(id_):
    write(line(id_))
    time.sleep(60)


def half_a_line(id_):
    write(line(id_)[:-10])
    time.sleep(60)


def bad_byte(id_):
    write(line(id_).replace(b"well", b"w\xffll"))


def banner(id_):
    write(b"Server ready!\n{not json\n\n" + line(id_))


def long_line(id_):
    for _ in range(100):
        write(b"x" * 1_000_000)
    write(b"\n" + line(id_))


def crlf(id_):
    write(result(id_) + b"\r\n")


def mark(id_):
    write(b"\xef\xbb\xbf" + line(id_))


def separators(id_):
    write(line(id_, "a\u2028b\u2029c\x85d"))


def floods(id_):
    notice = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
    for _ in range(100):
        write(notice * 1000)
    write(line(id_))


def wrong_id(id_):
    write(line(id_ + 1000) + line(id_))


def twice(id_):
    write(line(id_) * 2)


def text_id(id_):
    write(line(str(id_)))


def byte_by_byte(id_):
    for byte in line(id_):
        write(bytes([byte]))
        time.sleep(0.001)


def trickles(id_):
    for byte in line(id_):
        write(bytes([byte]))
        time.sleep(0.1)


def slow(id_):
    time.sleep(0.5)
    write(line(id_))


def hangs(id_):
    while True:
        time.sleep(60)


def pid(id_):
    write(line(id_, str(os.getpid())))


def fault(id_, name):
    held.append(line(id_, name))
    if len(held) == 3:  # out of order: the last one first
        write(b"".join(reversed(held)))


held: list[bytes] = []
TOOLS = [
    {"name": "safe", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}},
    {"name": "hangs", "inputSchema": {"type": "object"}},
    {"name": "pid", "inputSchema": {"type": "object"}},
]
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "broken", "version": "1"},
}


def call(id_, name, starts):
    if name in ("safe", "once"):  # the first process ends in the middle of it
        if starts == 1:
            os._exit(9)
        write(line(id_, f"start {starts}"))
    elif name == "poison":
        os._exit(9)
    elif name.startswith("held"):
        fault(id_, name)
    else:
        globals()[name](id_)


def main() -> None:
    starts = 1
    if len(sys.argv) > 1:
        with Path(sys.argv[1]).open("a") as file:
            file.write("s")
        starts = Path(sys.argv[1]).stat().st_size
    for received in sys.stdin.buffer:
        message = json.loads(received)
        method, id_ = message.get("method"), message.get("id")
        if method == "initialize":
            answer = {"result": HELLO}
        elif method == "tools/list":
            answer = {"result": {"tools": TOOLS}}
        elif method == "ping":
            answer = {"result": {}}
        elif method == "tools/call":
            call(id_, message["params"]["name"], starts)
            continue
        else:
            answer = {"error": {"code": -32601, "message": "Method not found"}}
        if id_ is not None:
            write(json.dumps({"jsonrpc": "2.0", "id": id_, **answer}).encode() + b"\n")


main()
