"""Tools, results and streamed answers that the tests of all APIs share.

The streams have the shapes of the providers' published types, which a test checks; what they say is made up.
"""

from __future__ import annotations

from typing import Any

from dragoman.client import OtherContent, ToolResult
from dragoman.host.models.base import Shown
from dragoman.model import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

PNG = "iVBORw0KGgo="
NODE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
    },
    "required": ["name", "children"],
}


def tool(name: str = "mcp__orders__find", schema: dict[str, Any] | None = None, **more: Any) -> Shown:
    given = schema if schema is not None else {"type": "object", "properties": {"id": {"type": "string"}}}
    return Shown(name, Tool(name="find", description="Finds it.", input_schema=given), **more)


SCHEMAS: dict[str, dict[str, Any]] = {
    "no parameters": {"type": "object"},
    "one": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    "optional": {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}},
    "bounds": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10, "default": 5},
            "s": {"type": "string", "minLength": 1, "pattern": "^a", "format": "uri", "examples": ["ab"]},
            "l": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 2},
            "d": {"type": "string", "format": "date-time"},
        },
    },
    "array without items": {"type": "object", "properties": {"l": {"type": "array"}}},
    "any value": {"type": "object", "properties": {"v": {}}},
    "map": {
        "type": "object",
        "properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}},
    },
    "enums": {
        "type": "object",
        "properties": {
            "s": {"enum": ["a", "b"]},
            "n": {"type": "integer", "enum": [1, 2]},
            "c": {"const": "x"},
            "z": {"type": ["string", "null"], "enum": ["a", None]},
        },
        "required": ["s"],
    },
    "definitions": {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A", "description": "The a."}, "b": {"$ref": "#/$defs/B"}},
        "definitions": {"A": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "$defs": {"B": {"type": "string"}},
    },
    "recursive": {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Node"}},
        "required": ["tree"],
        "$defs": {"Node": NODE},
    },
    "root reference": {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}},
    "unions": {
        "type": "object",
        "properties": {
            "u": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "v": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "w": {"type": ["string", "integer"]},
            "x": {"allOf": [{"type": "string"}, {"maxLength": 3}]},
        },
    },
    "root alternatives": {
        "type": "object",
        "properties": {"c": {"type": "string"}},
        "oneOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ],
    },
    "tuple": {"type": "object", "properties": {"t": {"type": "array", "prefixItems": [{"type": "string"}]}}},
    "conditions": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "if": {"required": ["a"]},
        "then": {"minProperties": 1},
        "not": {"required": ["z"]},
        "dependentRequired": {"a": ["b"]},
        "patternProperties": {"^x-": {"type": "string"}},
    },
    "pointer": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}},
    },
    "elsewhere": {"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}},
}

RESULTS: dict[str, ToolResult] = {
    "empty": ToolResult(content=[]),
    "text": ToolResult(content=[TextContent(text="one"), TextContent(text="two")]),
    "image": ToolResult(content=[TextContent(text="x"), ImageContent(data=PNG, mime_type="image/png")]),
    "image alone": ToolResult(content=[ImageContent(data=PNG, mime_type="image/png")]),
    "drawing": ToolResult(content=[ImageContent(data=PNG, mime_type="image/svg+xml")]),
    "audio": ToolResult(content=[AudioContent(data="AAAA", mime_type="audio/wav")]),
    "link": ToolResult(content=[ResourceLink(uri="x://1", name="one", description="The first.")]),
    "document": ToolResult(
        content=[EmbeddedResource(resource=TextResourceContents(uri="x://1", text="body"))]
    ),
    "pdf": ToolResult(
        content=[
            EmbeddedResource(
                resource=BlobResourceContents(uri="x://a/b.pdf", blob="AAAA", mime_type="application/pdf")
            )
        ]
    ),
    "bytes": ToolResult(content=[EmbeddedResource(resource=BlobResourceContents(uri="x://1", blob="AAAA"))]),
    "other": ToolResult(content=[OtherContent("video", {})]),
    "structured": ToolResult(content=[], structured={"a": 1, "city": "서울"}, has_structured=True),
    "structured and text": ToolResult(
        content=[TextContent(text='{"a": 1}')], structured={"a": 1}, has_structured=True
    ),
    "null": ToolResult(content=[], structured=None, has_structured=True),
    "failed": ToolResult(content=[TextContent(text="no such order")], is_error=True),
    "failed with image": ToolResult(content=[ImageContent(data=PNG, mime_type="image/png")], is_error=True),
    "failed in silence": ToolResult(content=[], is_error=True),
}
