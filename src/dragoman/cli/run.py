"""`dragoman run FILE[:NAME]`: serve the server of a Python file.

The standard streams belong to the protocol before the first line of the file runs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dragoman.cli import loading, output
from dragoman.errors import DragomanError, UsageError
from dragoman.server import Server
from dragoman.transports.stdio import Streams, run_stdio

if TYPE_CHECKING:
    from argparse import Namespace
    from types import SimpleNamespace


def run(options: Namespace | SimpleNamespace) -> int:
    """Serve until the input ends or a signal comes; returns the exit status."""
    try:
        if options.http is None:
            streams = Streams.claim()
            server = _server(options)
            run_stdio(server.kernel, streams=streams)
        else:
            host, port = address(options.http)
            server = _server(options)
            try:
                server.asgi(path=options.path)
            except ValueError as exc:  # hosts, origins or proxies in the environment
                raise UsageError(str(exc)) from None
            server.run("http", host=host, port=port, path=options.path)
    except DragomanError as exc:
        if isinstance(exc, loading.FileError):
            output.note(exc.report)
        return output.fail(exc, json=options.json)
    return 0


def _server(options: Namespace | SimpleNamespace) -> Server:
    file, name = loading.split(options.target)
    sys.argv = [str(file), *options.argument]
    return loading.find(loading.load(file), name, file=file)


def address(text: str) -> tuple[str, int]:
    """`HOST:PORT`, `:PORT`, `PORT` or `[IPv6]:PORT` as host and port; 127.0.0.1 where no host is named.

    Raises:
        UsageError: it is none of these.
    """
    host, colon, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 <= int(port) < 1 << 16:
        raise UsageError(f"--http {text!r}: expected HOST:PORT, with a port from 0 to 65535")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise UsageError(f"--http {text!r}: expected an IPv6 address in brackets", hint=f"[{host}]:{port}")
    return (host.strip("[]") if colon else "") or "127.0.0.1", int(port)
