"""The values of mirrored headers: their encoding, and what they have to agree with."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.protocol.headers import decode_value, encode_value
from tests.http.things import things
from tests.http.wire import post, routed, stateless

# The table of 2026-07-28, Streamable HTTP, "Value Encoding".
EXAMPLES = [
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
]


@pytest.mark.parametrize(("value", "header"), EXAMPLES)
def test_examples_of_the_specification(value: str, header: str) -> None:
    assert encode_value(value) == header
    assert decode_value(header) == value


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("", ""),
        ("  us-west1\t", "us-west1"),
        ("a b\tc", "a b\tc"),
        ("SGVsbG8=", "SGVsbG8="),  # no markers: literal
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),  # one marker: literal
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),  # the markers are case-sensitive
        ("=?base64??=", ""),
    ],
)
def test_decode(header: str, value: str) -> None:
    assert decode_value(header) == value


@pytest.mark.parametrize(
    "header",
    [
        "=?base64?SGVsbG8?=",
        "=?base64?SGVs!!!bG8=?=",
        "=?base64?/w==?=",
        "=?base64?SGVs bG8=?=",
        "é",
        "a\x01b",
        "=?base64?é?=",
    ],
)
def test_malformed_values(header: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        decode_value(header)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_round_trip(value: str) -> None:
    header = encode_value(value)
    assert header.isascii()
    assert header == "" or header.isprintable()
    assert header == header.strip()
    assert decode_value(header) == value


def deploy(**arguments: Any) -> dict[str, Any]:
    return stateless("tools/call", {"name": "deploy", "arguments": arguments})


REGION = deploy(region="Hello")
ACCEPTED = [
    (REGION, {"mcp_param_region": "Hello"}),
    (REGION, {"mcp_param_region": " Hello "}),
    (REGION, {"mcp_param_region": "=?base64?SGVsbG8=?="}),
    (REGION, {"MCP_PARAM_REGION": "Hello"}),
    (REGION, {"mcp_param_region": "Hello", "mcp_param_unknown": "ignored \x80"}),
    (deploy(region="SGVsbG8="), {"mcp_param_region": "SGVsbG8="}),
    (deploy(region="=?base64?SGVsbG8="), {"mcp_param_region": "=?base64?SGVsbG8="}),
    (deploy(region="서울"), {"mcp_param_region": "=?base64?7ISc7Jq4?="}),
    (deploy(region=""), {"mcp_param_region": ""}),
    (deploy(region="a", size=42), {"mcp_param_region": "a", "mcp_param_size": "42"}),
    (deploy(region="a", size=42), {"mcp_param_region": "a", "mcp_param_size": "42.0"}),
    (deploy(region="a", size=-7), {"mcp_param_region": "a", "mcp_param_size": "-7"}),
    (deploy(region="a", dry=True), {"mcp_param_region": "a", "mcp_param_dry": "true"}),
    (deploy(region="a", size=None), {"mcp_param_region": "a"}),
]


@pytest.mark.parametrize(("message", "headers"), ACCEPTED)
async def test_mirrored_parameter_agrees(message: Any, headers: dict[str, str]) -> None:
    answer = await post(things().server.asgi(), message, routed(message, **headers))
    assert answer.status == 200, answer


REFUSED = [
    (REGION, {}),
    (REGION, {"mcp_param_region": "hello"}),
    (REGION, {"mcp_param_region": ""}),
    (REGION, {"mcp_param_region": "=?base64?SGVsbG8?="}),
    (REGION, {"mcp_param_region": "=?base64?SGVs!!!bG8=?="}),
    (REGION, {"mcp_param_region": "Hell\xf6"}),
    (deploy(region="a", size=42), {"mcp_param_region": "a"}),
    (deploy(region="a", size=42), {"mcp_param_region": "a", "mcp_param_size": "43"}),
    (deploy(region="a", size=42), {"mcp_param_region": "a", "mcp_param_size": "42.5"}),
    (deploy(region="a", size=42), {"mcp_param_region": "a", "mcp_param_size": "forty-two"}),
    (
        deploy(region="a", size=9007199254740991),
        {"mcp_param_region": "a", "mcp_param_size": "9007199254740991.5"},
    ),
    (deploy(region="a", dry=True), {"mcp_param_region": "a", "mcp_param_dry": "True"}),
    (deploy(region="a", dry=True), {"mcp_param_region": "a", "mcp_param_dry": "1"}),
    (deploy(region="a"), {"mcp_param_region": "a", "mcp_param_dry": "true"}),
    (deploy(region="a", size=None), {"mcp_param_region": "a", "mcp_param_size": "null"}),
]


@pytest.mark.parametrize(("message", "headers"), REFUSED)
async def test_mirrored_parameter_disagrees(message: Any, headers: dict[str, str]) -> None:
    answer = await post(things().server.asgi(), message, routed(message, **headers))
    assert (answer.status, answer.code) == (400, -32020), answer
    assert "Mcp-Param-" in answer.json["error"]["message"]


@pytest.mark.parametrize("name", ["=?base64?YWRk?=", " add ", "add\t"])
async def test_names_are_decoded_before_they_are_compared(name: str) -> None:
    message = stateless("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
    assert (await post(things().server.asgi(), message, routed(message, mcp_name=name))).status == 200


async def test_a_name_that_looks_encoded_is_not_taken_as_it_stands() -> None:
    # The header decodes to "add", so it does not match a body that says the very characters of the header.
    message = stateless("tools/call", {"name": "=?base64?YWRk?="})
    answer = await post(things().server.asgi(), message)
    assert answer.code == -32020


async def test_a_name_beyond_ascii() -> None:
    server = things().server

    async def weather() -> str:
        return "sunny"

    server.add_tool(weather, name="날씨")
    message = stateless("tools/call", {"name": "날씨"})
    answer = await post(server.asgi(), message, routed(message, mcp_name=encode_value("날씨")))
    assert answer.json["result"]["structuredContent"] == {"result": "sunny"}


async def test_header_names_in_any_case() -> None:
    message = stateless("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
    headers = {name.upper(): value for name, value in routed(message).items()}
    assert (await post(things().server.asgi(), message, headers)).status == 200
