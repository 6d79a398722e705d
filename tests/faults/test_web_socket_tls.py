"""WebSocket with TLS, by certificates of our own making, and through proxies."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from dragoman import Client
from dragoman.errors import ConnectError
from dragoman.transports.http_base import HttpOptions
from tests.faults.sockets import sockets
from tests.faults.test_http import BOUND
from tests.http_client.tls import proxying, server_context


async def speaks(url: str, **options: object) -> None:
    """Connect, and have large and small texts come back."""
    async with asyncio.timeout(BOUND), Client(url, http=HttpOptions(**options)) as client:
        texts = ["서울\u2028", "x" * 300_000, ""]
        results = await asyncio.gather(*(client.call_tool(text) for text in texts))
        assert [result.text for result in results] == texts


async def test_a_certificate_of_an_authority_that_is_known(pki) -> None:
    async with sockets(tls=server_context(pki)) as server:
        await speaks(server.url, verify=str(pki / "ca.pem"))
        await server.ended.wait()


async def test_a_certificate_of_nobody_known(pki) -> None:
    async with asyncio.timeout(BOUND), sockets(tls=server_context(pki)) as server:
        with pytest.raises(ConnectError, match="certificate") as caught:
            await Client(server.url).connect()
        assert caught.value.stage == "connect"
        assert "127.0.0.1" in str(caught.value)
        assert server.sockets == []


async def test_a_certificate_for_another_name(pki) -> None:
    async with asyncio.timeout(BOUND), sockets(tls=server_context(pki)) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        with pytest.raises(ConnectError, match="certificate"):
            await Client(url, http=HttpOptions(verify=str(pki / "ca.pem"))).connect()


async def test_anyone_is_accepted_when_that_is_asked_for(pki) -> None:
    async with sockets(tls=server_context(pki)) as server:
        await speaks(server.url, verify=False)


async def test_the_certificate_of_the_client(pki) -> None:
    async with sockets(tls=server_context(pki, wants_client=True)) as server:
        cert = (str(pki / "client.pem"), str(pki / "client.key"))
        await speaks(server.url, verify=str(pki / "ca.pem"), cert=cert)


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"no\r\n\r\n")
    writer.close()


async def test_tls_where_none_is_spoken() -> None:
    async with asyncio.timeout(BOUND), await asyncio.start_server(answers, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(ConnectError, match="TLS failed"):
            await Client(f"wss://127.0.0.1:{port}/mcp").connect()


async def test_a_proxy_that_is_none() -> None:
    async with asyncio.timeout(BOUND), await asyncio.start_server(answers, "127.0.0.1", 0) as listening:
        proxy = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        with pytest.raises(ConnectError, match=r"the proxy .* gave no answer that is HTTP"):
            await Client("wss://far.example/mcp", http=HttpOptions(proxy=proxy), retry_for=0.0).connect()


@pytest.mark.parametrize("secure", [False, True])
async def test_through_a_tunnel_that_sees_nothing_of_it(pki, secure: bool) -> None:
    context: ssl.SSLContext | None = server_context(pki) if secure else None
    async with proxying() as proxy, sockets(tls=context) as server:
        url = server.url + "?key=secret"
        await speaks(url, verify=str(pki / "ca.pem"), proxy=f"http://me:pw@127.0.0.1:{proxy.port}")
        port = server.port
    (head,) = proxy.heads
    assert head.startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % port)
    assert b"Proxy-Authorization: Basic bWU6cHc=" in head
    assert b"secret" not in head
    assert "proxy-authorization" not in server.sockets[0].headers


@pytest.mark.parametrize(("status", "hint"), [(407, "user and password"), (403, None)])
async def test_a_proxy_that_refuses(status: int, hint: str | None) -> None:
    async with asyncio.timeout(BOUND), proxying(status) as proxy:
        options = HttpOptions(proxy=f"http://me:hunter2@127.0.0.1:{proxy.port}")
        with pytest.raises(ConnectError, match=f"far.example:443: HTTP {status}") as caught:
            await Client("wss://far.example/mcp", http=options, retry_for=0.0).connect()
    assert "hunter2" not in str(caught.value)
    assert (hint is None) == (caught.value.hint is None)
    assert (hint or "") in (caught.value.hint or "")


async def test_a_proxy_that_is_not_there(unused_port: int) -> None:
    options = HttpOptions(proxy=f"http://127.0.0.1:{unused_port}")
    async with asyncio.timeout(BOUND):
        with pytest.raises(ConnectError, match=f"through the proxy .*:{unused_port}: .* refused"):
            await Client("ws://far.example/mcp", http=options, retry_for=0.0).connect()


async def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with asyncio.timeout(BOUND), proxying(502) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(ConnectError, match="HTTP 502"):
            await Client("wss://far.example/mcp", retry_for=0.0).connect()
    assert proxy.heads[0].startswith(b"CONNECT far.example:443 HTTP/1.1\r\n")
