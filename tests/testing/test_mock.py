"""Mock servers: the tools of a file, with answers that fit."""

from __future__ import annotations

import json

import msgspec
import pytest

from dragoman import Client
from dragoman.errors import UsageError
from dragoman.schema.validate import Validator
from dragoman.testing import mock, sample
from tests.testing.servers import orders
from tests.testing.test_cassettes import recorded

PRICE = {
    "name": "price",
    "title": "Price",
    "description": "What it costs.",
    "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    "outputSchema": {
        "type": "object",
        "properties": {"amount": {"type": "number", "minimum": 1}, "currency": {"enum": ["EUR", "USD"]}},
        "required": ["amount", "currency"],
    },
}
PLAIN = {"name": "plain.tool", "inputSchema": {"type": "object"}}


def written(path, value):
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tools: tools,
        lambda tools: {"tools": tools},
        lambda tools: {"ok": True, "result": {"tools": tools}},
    ],
)
async def test_tools_of_a_list(wrap, tmp_path):
    async with Client(mock(written(tmp_path / "tools.json", wrap([PRICE, PLAIN])))) as client:
        listed = [msgspec.to_builtins(tool) for tool in await client.list_tools()]
        assert [tool["name"] for tool in listed] == ["price", "plain.tool"]
        assert listed[0]["inputSchema"] == PRICE["inputSchema"]
        assert listed[0]["description"] == "What it costs."
        made = await client.call_tool("price", {"id": 1})
        assert made.structured == {"amount": 1, "currency": "EUR"}
        assert made.invalid == ()
        assert (await client.call_tool("plain.tool", {"any": 1})).text == "plain.tool is a mock"
        refused = await client.call_tool("price", {"id": "x"})
        assert refused.is_error
        assert "expected an integer" in refused.text


async def test_answers_that_were_written_down(tmp_path):
    result = {"content": [], "structuredContent": {"amount": 7, "currency": "USD"}}
    answers = {
        "price": [{"arguments": {"id": 7}, "result": result}],
        "plain.tool": [{"arguments": {"a": 1}, "text": "one"}, {"text": "other"}],
    }
    file = written(tmp_path / "tools.json", {"tools": [PRICE, PLAIN], "answers": answers})
    async with Client(mock(file)) as client:
        assert (await client.call_tool("price", {"id": 7})).structured["amount"] == 7
        assert (await client.call_tool("price", {"id": 8})).structured["amount"] == 1
        assert (await client.call_tool("plain.tool", {"a": 1, "b": 2})).text == "one"
        assert (await client.call_tool("plain.tool", {"a": 2})).text == "other"


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
async def test_tools_and_answers_of_a_recording(protocol, tmp_path):
    await recorded(tmp_path / "a.jsonl", protocol=protocol)
    async with Client(mock(tmp_path / "a.jsonl"), protocol="2025-06-18") as client:
        names = [tool.name for tool in await client.list_tools()]
        assert names == [tool.name for tool in orders().tools]
        assert (await client.call_tool("lookup", {"order_id": "other"})).structured == {"price": 10}
        assert (await client.call_tool("fail")).is_error


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("{}", "expected a list of tools"),
        ('[{"name": 1}]', r"tools\[0\]: no tool: .*name"),
        ('{"tools": [], "answers": {"x": []}}', "answers.x: no tool of that name; there is none"),
        (json.dumps({"tools": [PLAIN], "answers": {"plain.tool": {}}}), "expected a list"),
        (json.dumps({"tools": [PLAIN], "answers": {"plain.tool": [{}]}}), r"\[0\]: expected an object"),
        ('[{"name": "x", "inputSchema": {"type": "nonsense"}}]', "tool 'x'"),
    ],
)
def test_files_that_are_none(content, said, tmp_path):
    path = tmp_path / "tools.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=said):
        mock(path)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 20},
        {"type": "string", "maxLength": 2},
        {"type": "integer", "minimum": 3, "multipleOf": 5},
        {"type": "integer", "exclusiveMinimum": 5},
        {"type": "number", "maximum": -2},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
        {"type": ["string", "null"]},
        {"const": 5},
        {
            "$ref": "#/$defs/a",
            "$defs": {
                "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}},
                "b": {"type": "integer"},
            },
        },
        {"type": "object", "required": ["x"]},
        {},
        True,
    ],
    ids=str,
)
def test_a_sample_fits(schema):
    assert Validator(schema).is_valid(sample(schema))


def test_a_schema_that_is_its_own_member_has_an_end():
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert Validator(schema).is_valid(sample(schema))
