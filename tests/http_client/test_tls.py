"""TLS with a certificate of our own making, certificates of clients, and proxies in between."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl

import pytest

from dragoman.errors import ClosedError, ConnectError, UsageError
from dragoman.transports.http_client import HttpTransport

from .server import Ears, call, connected, serving
from .tls import proxying, server_context


async def plain(asked):
    await asked.result({"scheme": asked.headers["host"]})


async def ask(transport):
    return json.loads(bytes((await transport.exchange(call())).result))


async def test_a_certificate_of_an_authority_that_is_known(pki):
    async with serving(plain, server_context(pki)) as server:
        async with connected(server.url, verify=str(pki / "ca.pem")) as transport:
            for _ in range(3):
                assert await ask(transport) == {"scheme": f"127.0.0.1:{server.port}"}
        assert server.connections == 1


async def test_a_certificate_of_nobody_known(pki):
    async with serving(plain, server_context(pki)) as server, connected(server.url) as transport:
        with pytest.raises(ConnectError, match="its certificate is not accepted") as caught:
            await ask(transport)
    assert "verify=" in caught.value.hint


async def test_a_certificate_for_another_name(pki):
    async with serving(plain, server_context(pki)) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        async with connected(url, verify=str(pki / "ca.pem")) as transport:
            with pytest.raises(ConnectError, match="localhost"):
                await ask(transport)


async def test_anyone_is_accepted_when_that_is_asked_for(pki):
    async with serving(plain, server_context(pki)) as server:
        async with connected(server.url, verify=False) as transport:
            assert await ask(transport)
        context = ssl.create_default_context(cafile=str(pki / "ca.pem"))
        async with connected(server.url, verify=context) as transport:
            assert await ask(transport)


@pytest.mark.parametrize("as_pair", [True, False])
async def test_the_certificate_of_the_client(pki, as_pair):
    both = pki / "both.pem"
    both.write_text((pki / "client.pem").read_text() + (pki / "client.key").read_text())
    cert = (str(pki / "client.pem"), str(pki / "client.key")) if as_pair else str(both)
    ca = str(pki / "ca.pem")
    async with serving(plain, server_context(pki, wants_client=True)) as server:
        async with connected(server.url, verify=ca, cert=cert) as transport:
            assert await ask(transport)
        async with connected(server.url, verify=ca) as transport:
            with pytest.raises(
                (ClosedError, ConnectError)
            ):  # TLS 1.3: the refusal may come after the handshake
                await ask(transport)


async def test_files_that_are_not_there_are_named():
    for options in ({"verify": "/no/such/ca.pem"}, {"cert": "/no/such/cert.pem"}):
        async with connected("https://127.0.0.1:1/", **options) as transport:
            with pytest.raises(UsageError, match=rf"{next(iter(options))}: /no/such"):
                await ask(transport)


async def test_tls_where_plain_http_is_spoken():
    async def plain_only(reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain_only, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with connected(f"https://127.0.0.1:{port}/mcp") as transport:
            with pytest.raises(ConnectError, match="TLS failed") as caught:
                await ask(transport)
    assert "speaks TLS" in caught.value.hint


async def test_plain_http_where_tls_is_spoken(pki):
    async with serving(plain, server_context(pki)) as server:
        async with connected(server.url.replace("https:", "http:")) as transport:
            with pytest.raises(ClosedError):
                await ask(transport)


async def test_giving_up_closes_a_connection_with_tls(pki):
    closed = asyncio.Event()

    async def answer(asked):
        await asked.gone()
        closed.set()

    async with serving(answer, server_context(pki)) as server:
        async with connected(server.url, verify=str(pki / "ca.pem")) as transport:
            task = asyncio.create_task(transport.exchange(call()))
            await server.arrived(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await closed.wait()


# Proxies -------------------------------------------------------------------------------------------


async def test_plain_requests_name_the_whole_url_to_the_proxy():
    async with proxying() as proxy, serving(plain) as server:
        async with connected(
            server.url + "?a=b", proxy=f"http://me:p%40ss@127.0.0.1:{proxy.port}"
        ) as transport:
            assert await ask(transport)
            assert await ask(transport)
    (head,) = proxy.heads
    credentials = base64.b64encode(b"me:p@ss")
    assert head.startswith(b"POST http://127.0.0.1:%d/mcp?a=b HTTP/1.1\r\n" % server.port)
    assert b"Proxy-Authorization: Basic " + credentials in head


async def test_tls_goes_through_a_tunnel_that_sees_nothing(pki):
    async with proxying() as proxy, serving(plain, server_context(pki)) as server:
        async with connected(
            server.url,
            proxy=f"http://me:pw@127.0.0.1:{proxy.port}",
            verify=str(pki / "ca.pem"),
            headers={"Authorization": "Bearer secret"},
        ) as transport:
            assert await ask(transport)
            assert await ask(transport)
    (head,) = proxy.heads
    assert head.startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % server.port)
    assert b"Proxy-Authorization: Basic bWU6cHc=" in head
    assert b"secret" not in head
    assert "proxy-authorization" not in server.asked[0].headers


@pytest.mark.parametrize(("status", "hint"), [(407, "user and password"), (403, None)])
async def test_a_proxy_that_refuses(pki, status, hint):
    async with proxying(status) as proxy:
        url = "https://far.example/mcp"
        async with connected(url, proxy=f"http://me:hunter2@127.0.0.1:{proxy.port}") as transport:
            with pytest.raises(
                ConnectError, match=rf"refused to connect to far.example:443: HTTP {status}"
            ) as caught:
                await ask(transport)
    assert "hunter2" not in str(caught.value)
    assert (hint is None) == (caught.value.hint is None)
    assert (hint or "") in (caught.value.hint or "")


async def test_a_proxy_that_is_not_there(unused_port):
    async with connected("http://far.example/", proxy=f"http://127.0.0.1:{unused_port}") as transport:
        with pytest.raises(
            ConnectError, match=f"through the proxy 127.0.0.1:{unused_port}: connection refused"
        ):
            await ask(transport)


async def test_the_proxy_of_the_environment_is_used(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    async with proxying(502) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        transport = HttpTransport("http://far.example/mcp")
        ears = Ears()
        await transport.open(ears.hear, ears.answer)
        with pytest.raises(Exception, match="502"):
            await transport.exchange(call())
        await transport.close()
    assert proxy.heads[0].startswith(b"POST http://far.example/mcp HTTP/1.1\r\n")
