"""Story 4: `get_weather` for 서울 over HTTP, stateless: headers, a list that keeps, a stream."""

from __future__ import annotations

import base64
import http.client
import json
import sys

import pytest

from dragoman import Client
from tests.spec.oracle import validate_frame
from tests.transcripts import player

REVISION = "2026-07-28"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory):
    command = [sys.executable, player.example("weather"), "0"]
    with player.http_server(command, tmp_path_factory.mktemp("weather")) as address:
        yield address


def test_the_transcript(address: tuple[str, int, str]) -> None:
    player.play_http(f"weather-{REVISION}", REVISION, address)


def test_the_headers_of_the_transcript_are_those_a_client_derives() -> None:
    for line in player.transcript(f"weather-{REVISION}"):
        if "to_server" in line and line["to_server"]["id"] != 6:  # 6 lies on purpose
            assert line["headers"] == player.derived(line["to_server"], REVISION)


def test_progress_comes_before_the_answer_and_not_with_it(address: tuple[str, int, str]) -> None:
    """The stream is sent as it grows: chunked, never buffered by what stands between."""
    host, port, path = address
    call = next(
        line for line in player.transcript(f"weather-{REVISION}") if line.get("to_server", {}).get("id") == 4
    )
    connection = http.client.HTTPConnection(host, port, timeout=player.TIME_LIMIT)
    connection.request("POST", path, json.dumps(call["to_server"]).encode(), call["headers"])
    response = connection.getresponse()
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert "content-length" not in response.headers
    frames = player.events(response.read())
    assert [frame.get("method", "answer") for frame in frames] == [*["notifications/progress"] * 2, "answer"]
    connection.close()


def test_a_tool_name_that_is_no_header_text_goes_as_base64(address: tuple[str, int, str]) -> None:
    """Streamable HTTP, Value Encoding: a name outside ASCII is sent as `=?base64?...?=`."""
    host, port, path = address
    call = next(
        line for line in player.transcript(f"weather-{REVISION}") if line.get("to_server", {}).get("id") == 3
    )
    frame = json.loads(json.dumps(call["to_server"]))
    frame["params"]["name"] = "날씨"
    coded = f"=?base64?{base64.b64encode('날씨'.encode()).decode()}?="
    connection = http.client.HTTPConnection(host, port, timeout=player.TIME_LIMIT)
    connection.request("POST", path, json.dumps(frame).encode(), {**call["headers"], "mcp-name": coded})
    response = connection.getresponse()
    answer = json.loads(response.read())
    # The header was understood: what is wrong is that there is no such tool.
    assert (response.status, answer["error"]["code"]) == (400, -32602)
    connection.close()


async def test_a_client_uses_the_list_for_as_long_as_it_keeps(address: tuple[str, int, str]) -> None:
    """Caching, TTL Field: within `ttlMs` no second `tools/list` crosses the wire; with `refresh` one does."""
    host, port, path = address
    wire: list[tuple[str, dict]] = []
    reports: list[tuple[float, float | None, str | None]] = []

    def tap(direction: str, frame: bytes) -> None:
        wire.append((direction, json.loads(frame)))

    async with Client(f"http://{host}:{port}{path}", tap=tap) as client:
        first = await client.list_tools()
        assert await client.list_tools() == first
        result = await client.call_tool(
            "get_weather", {"location": "서울"}, progress=lambda *report: reports.append(report)
        )
        assert await client.list_tools(refresh=True) == first
    assert result.text == '{"location":"서울","temperature":21.5,"wind":3.0,"conditions":"맑음"}'
    assert result.structured == {"location": "서울", "temperature": 21.5, "wind": 3.0, "conditions": "맑음"}
    assert reports == [(1, 2, "서울 1/2"), (2, 2, "서울 2/2")]
    sent = [frame for direction, frame in wire if direction == "out"]
    assert [frame["method"] for frame in sent] == [
        "server/discover",
        "tools/list",
        "tools/call",
        "tools/list",
    ]
    methods = {frame["id"]: frame["method"] for frame in sent}
    for direction, frame in wire:
        way = "to_server" if direction == "out" else "to_client"
        validate_frame(REVISION, frame, methods.get(frame.get("id")), way, exact=True)
