"""Valid values of a JSON Schema as the specification's schemas use it, drawn from a seeded generator."""

from __future__ import annotations

import random
from typing import Any

from tests.spec.oracle import Schema, resolve

WORDS = ("", "text", "naïve", "日本語", 'quote " and \\', "line\nbreak", "\u2028")
FORMATS = {"uri": "https://example.org/a?b=c", "byte": "aGk=", "uri-template": "file:///{path}"}
MAX_DEPTH = 8


class Sampler:
    """Draws values of one revision's definitions; `full` gives every optional member, else some."""

    def __init__(self, revision: str, seed: int, *, full: bool = False) -> None:
        self.revision = revision
        self.random = random.Random(seed)
        self.full = full

    def draw(self, schema: Schema, depth: int = 0) -> Any:
        schema = resolve(self.revision, schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if "anyOf" in schema:
            return self.draw(self.random.choice(schema["anyOf"]), depth + 1)
        if "allOf" in schema:
            parts = [self.draw(part, depth) for part in schema["allOf"]]
            return {name: value for part in parts for name, value in part.items()}
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = self.random.choice(kind)
        if kind is None:
            return self.anything()
        return getattr(self, f"draw_{kind}")(schema, depth)

    def draw_object(self, schema: Schema, depth: int) -> dict[str, Any]:
        if "properties" not in schema:
            values = schema.get("additionalProperties", {})
            number = 0 if depth > MAX_DEPTH else self.random.randint(0, 2)
            return {f"key {index}": self.draw(values or {}, depth + 1) for index in range(number)}
        required = schema.get("required", ())
        return {
            name: self.draw(child, depth + 1)
            for name, child in schema["properties"].items()
            if name in required or (depth <= MAX_DEPTH and (self.full or self.random.random() < 0.5))
        }

    def draw_array(self, schema: Schema, depth: int) -> list[Any]:
        number = 0 if depth > MAX_DEPTH else self.random.randint(0, 2)
        return [self.draw(schema["items"], depth + 1) for _ in range(number)]

    def draw_string(self, schema: Schema, depth: int) -> str:
        return FORMATS.get(schema.get("format", ""), self.random.choice(WORDS))

    def draw_integer(self, schema: Schema, depth: int) -> int:
        return self.random.choice(
            [value for value in (0, 1, -1, 2**53) if value >= schema.get("minimum", value)]
        )

    def draw_number(self, schema: Schema, depth: int) -> int | float:
        if schema.get("maximum") == 1:
            return self.random.choice((0, 1, 0.5, 1.0))
        return self.random.choice((0, 3, -2.5, 1.0, 1e-9))

    def draw_boolean(self, schema: Schema, depth: int) -> bool:
        return self.random.random() < 0.5

    def draw_null(self, schema: Schema, depth: int) -> None:
        return None

    def anything(self) -> Any:
        return self.random.choice((None, True, 0, 1.0, "text", [], [1, "two"], {}, {"a": {"b": [None]}}))
