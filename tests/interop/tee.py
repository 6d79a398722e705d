"""Runs a program and writes down each line of its input and output: python tee.py LOG PROGRAM [ARGUMENT ...]

A line of the log is `>` or `<` and the line, written before it is passed on. Ends as the program ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from threading import Lock, Thread
from typing import IO


def copy(mark: bytes, source: IO[bytes], sink: IO[bytes]) -> None:
    for line in source:
        with lock:
            log.write(mark + line)
        try:
            sink.write(line)
            sink.flush()
        except OSError:
            break
    with suppress(OSError):
        sink.close()


lock = Lock()
with open(sys.argv[1], "ab", buffering=0) as log:  # noqa: PTH123  # as short as a program can be
    process = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    Thread(target=copy, args=(b">", sys.stdin.buffer, process.stdin), daemon=True).start()
    back = Thread(target=copy, args=(b"<", process.stdout, sys.stdout.buffer))
    back.start()
    status = process.wait()
    back.join()
    log.write(f"={status}\n".encode())
# Not sys.exit: the thread that reads stdin may wait for more of it for ever.
os._exit(status)
