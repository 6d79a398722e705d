"""A server over stdio that does as its client says, however wrong that is.

    puppet.py [ignore-eof] [ignore-term] [wrap] [banner=TEXT] [die=STATUS]

Each method below is a request's; `seen` returns every line that was received.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

OUT = sys.stdout.buffer
seen: list[str] = []
held: list[object] = []


def write(data: bytes) -> None:
    OUT.write(data)
    OUT.flush()


def answer(id_: object, result: object) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}, ensure_ascii=False).encode() + b"\n")


def echo(id_, params):
    answer(id_, params)


def big(id_, params):
    answer(id_, {"text": "x" * params["size"]})


def hold(id_, params):
    held.append(id_)


def release(id_, params):
    """Answer what is held, the newest first, all in one write."""
    write(b"".join(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % one for one in reversed(held)))
    held.clear()
    answer(id_, {})


def raw(id_, params):
    """Write bytes as they are; `$id` in them is this request's id."""
    write(params["text"].replace("$id", str(id_)).encode("latin-1"))


def flood(id_, params):
    """One line of so many bytes, then a proper answer."""
    for _ in range(params["chunks"]):
        write(b"x" * 1_000_000)
    write(b"\n")
    answer(id_, {})


def say(id_, params):
    os.write(2, params["text"].encode("latin-1"))
    answer(id_, {})


def die(id_, params):
    write(params.get("text", "").replace("$id", str(id_)).encode())
    os.write(2, params.get("stderr", "").encode())
    if "signal" in params:
        os.kill(os.getpid(), params["signal"])
    os._exit(params.get("status", 0))


def leave(id_, params):
    """Close a descriptor and run on."""
    answer(id_, {})
    os.close(params["fd"])
    while True:
        signal.pause()


def bear(id_, params):
    """Start a process that outlives this one, holds every stream, and heeds nothing."""
    code = "from signal import *\nfor n in 1, 2, 15: signal(n, SIG_IGN)\nprint(flush=True)\npause()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=0, stdout=subprocess.PIPE, stderr=2)
    assert child.stdout
    child.stdout.readline()
    answer(id_, {"pid": child.pid})


def heir(id_, params):
    """Exit while something that was started from here holds stdout open."""
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    os._exit(params["status"])


def deaf(id_, params):
    """Read nothing until SIGUSR1."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    answer(id_, {"pid": os.getpid()})
    signal.sigwait({signal.SIGUSR1})


def where(id_, params):
    found = {"pid": os.getpid(), "group": os.getpgid(0), "cwd": str(Path.cwd()), "env": dict(os.environ)}
    answer(id_, found)


def report(id_, params):
    answer(id_, seen)


def main() -> None:
    options = dict(word.partition("=")[::2] for word in sys.argv[1:])
    if "ignore-term" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "wrap" in options:  # as npx does: stay, and start what really serves
        words = [word for word in sys.argv[1:] if word != "wrap"]
        sys.exit(subprocess.run([sys.executable, __file__, *words], check=False).returncode)
    if "banner" in options:
        write(options["banner"].encode() + b"\n")
    if "die" in options:
        os.write(2, b"no database\n")
        os._exit(int(options["die"]))
    methods = {**globals(), "seen": report}
    for line in sys.stdin.buffer:
        seen.append(line.decode())
        message = json.loads(line)
        if "method" in message and "id" in message:
            methods[message["method"]](message["id"], message.get("params"))
    while "ignore-eof" in options:
        signal.pause()


main()
