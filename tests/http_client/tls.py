"""Certificates of our own making, and a proxy, for tests of TLS over HTTP and WebSocket."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from contextlib import asynccontextmanager

import pytest

from tests.needs import program


def _openssl(folder, *arguments):
    subprocess.run([program("openssl"), *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """An authority, a server that it vouches for as 127.0.0.1, and a client that it vouches for."""
    folder = tmp_path_factory.mktemp("pki")
    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    usage = "keyUsage=critical,keyCertSign,cRLSign"
    _openssl(folder, *new, "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem", "-addext", usage)
    for name, more in (("server", "subjectAltName=IP:127.0.0.1"), ("client", "extendedKeyUsage=clientAuth")):
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE")
        files = ("-keyout", f"{name}.key", "-out", f"{name}.pem")
        _openssl(folder, *new, "-subj", f"/CN={name}", *signed, *files, "-addext", more)
    return folder


def server_context(pki, *, wants_client: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / "server.pem", pki / "server.key")
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(pki / "ca.pem")
    return context


class Proxy:
    """Passes requests on, absolute or by CONNECT, and notes what it was told."""

    def __init__(self, refuse: int | None = None) -> None:
        self.heads: list[bytes] = []
        self.refuse = refuse
        self.port = 0
        self._pumps: set[asyncio.Task] = set()

    async def serve(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            method, target, _ = head.split(b"\r\n")[0].split()
            if self.refuse:
                writer.write(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % self.refuse)
                return
            where = target if method == b"CONNECT" else target.split(b"/")[2]
            host, _, port = where.rpartition(b":")
            upstream_reader, upstream = await asyncio.open_connection(host.decode(), int(port))
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                upstream.write(head.replace(b"http://" + where, b"", 1))
            pumps = [
                asyncio.create_task(_pump(a, b)) for a, b in ((reader, upstream), (upstream_reader, writer))
            ]
            self._pumps.update(pumps)
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            upstream.close()
        finally:
            writer.close()

    async def stop(self):
        for pump in self._pumps:
            pump.cancel()
        if self._pumps:
            await asyncio.wait(self._pumps)


async def _pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def proxying(refuse=None):
    proxy = Proxy(refuse)
    async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as listening:
        proxy.port = listening.sockets[0].getsockname()[1]
        yield proxy
        await proxy.stop()
