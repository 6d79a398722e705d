"""Annotations that are text: `from __future__ import annotations`, local classes, type-checking imports."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, TypedDict

import msgspec
import pytest
from msgspec import Meta

from dragoman.errors import UsageError
from dragoman.schema.signature import reflect

if TYPE_CHECKING:
    from decimal import Decimal

    from somewhere import Context


class Order(msgspec.Struct):
    id: Annotated[str, Meta(pattern="^[A-Z]$")]
    parts: list[Order] = []


def test_module_level_classes():
    def tool(order: Order, note: str | None = None) -> Order: ...

    signature = reflect(tool)
    assert signature.decode(b'{"order": {"id": "A", "parts": [{"id": "B"}]}}') == {
        "order": Order("A", [Order("B")]),
        "note": None,
    }
    assert signature.output_schema is not None
    assert signature.output_schema["properties"]["id"] == {"type": "string", "pattern": "^[A-Z]$"}


def test_local_classes_also_recursive_ones():
    @dataclasses.dataclass
    class Leaf:
        value: int

    @dataclasses.dataclass
    class Node:
        leaf: Leaf
        next: Node | None = None

    def tool(node: Node) -> Node: ...

    signature = reflect(tool)
    decoded = signature.decode(b'{"node": {"leaf": {"value": 1}, "next": {"leaf": {"value": 2}}}}')
    assert decoded == {"node": Node(Leaf(1), Node(Leaf(2)))}
    assert set(signature.input_schema["$defs"]) == {"Node", "Leaf"}
    assert signature.output is not None
    assert signature.output.structured(Node(Leaf(1))) == {"leaf": {"value": 1}, "next": None}


def test_local_typed_dicts_and_structs():
    class Inner(msgspec.Struct):
        value: int

    class Outer(TypedDict):
        inner: Inner

    def tool(outer: Outer): ...

    assert reflect(tool).decode(b'{"outer": {"inner": {"value": 1}}}') == {"outer": {"inner": Inner(1)}}


def test_a_local_class_seen_from_a_decorator():
    class Local(msgspec.Struct):
        value: int

    def register(function):
        return reflect(function)

    @register
    def tool(local: Local) -> None: ...

    assert tool.decode(b'{"local": {"value": 1}}') == {"local": Local(1)}


def test_a_context_imported_for_the_type_checker_alone():
    class Context:
        pass

    known = Context
    del Context

    def tool(ctx: Context, a: int) -> None: ...

    signature = reflect(tool, context_types=(known,))
    assert signature.context == "ctx"
    assert signature.decode(b'{"a": 1}') == {"a": 1}


def test_another_class_of_the_context_s_name_is_not_taken_for_it():
    class Other:
        pass

    Other.__name__ = "Order"

    def tool(order: Order) -> None: ...

    assert reflect(tool, context_types=(Other,)).context is None


def test_a_type_imported_for_the_type_checker_alone_is_named_with_the_remedy():
    def tool(price: Decimal) -> None: ...

    with pytest.raises(UsageError, match="Decimal") as caught:
        reflect(tool)
    assert "TYPE_CHECKING" in (caught.value.hint or "")


def test_methods_of_local_classes():
    class Local(msgspec.Struct):
        value: int

    class Service:
        def tool(self, local: Local) -> int:
            return local.value

    assert reflect(Service().tool).decode(b'{"local": {"value": 3}}') == {"local": Local(3)}
