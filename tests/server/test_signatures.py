"""Whatever the signature of a tool's function, each argument reaches the parameter that has its name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from dragoman import Context, Server
from tests.server.pair import Pair, text


async def plain(a: str, b: str = "B", c: str = "C") -> str:
    return a + b + c


async def by_name(a: str, *, c: str = "C", b: str = "B") -> str:
    return a + b + c


async def by_position(a: str, b: str = "B", /, c: str = "C") -> str:
    return a + b + c


async def open_ended(a: str, b: str = "B", **rest: str) -> str:
    return a + b + rest["c"]


async def with_context(a: str, ctx: Context, b: str = "B") -> str:
    return a + b + type(ctx).__name__


async def context_by_position(ctx: Context, a: str, /) -> str:
    return a + type(ctx).__name__


async def only_a_context(ctx: Context, /) -> str:
    return type(ctx).__name__


async def nothing() -> str:
    return "nothing"


async def a_default_first(b: str = "B", a: str = "A") -> str:
    return a + b


def not_async(a: str, b: str = "B", c: str = "C") -> str:
    return a + b + c


class Box:
    async def method(self, a: str, b: str = "B") -> str:
        return a + b

    async def __call__(self, a: str, b: str = "B") -> str:
        return a + b


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """As decorators do it that look for an argument by its name."""

    @functools.wraps(function)
    async def around(**keywords: Any) -> str:
        return "wrapped " + await function(**keywords)

    return around


CASES = {
    "plain": (plain, {"c": "x", "a": "a"}, "aBx"),
    "by name": (by_name, {"c": "x", "a": "a"}, "aBx"),
    "by position": (by_position, {"c": "x", "a": "a"}, "aBx"),
    "open-ended": (open_ended, {"c": "x", "a": "a"}, "aBx"),
    "with a context": (with_context, {"a": "a"}, "aBContext"),
    "a context by position": (context_by_position, {"a": "a"}, "aContext"),
    "only a context": (only_a_context, {}, "Context"),
    "nothing": (nothing, {}, "nothing"),
    "defaults only": (a_default_first, {"a": "a"}, "aB"),
    "not async": (not_async, {"c": "x", "a": "a"}, "aBx"),
    "wrapped": (wrapped(plain), {"c": "x", "a": "a"}, "wrapped aBx"),
    "partial, by name": (functools.partial(plain, b="P"), {"c": "x", "a": "a"}, "aPx"),
    "partial, by position": (functools.partial(plain, "P"), {"c": "x"}, "PBx"),
    "a method": (Box().method, {"a": "a"}, "aB"),
    "an object": (Box(), {"a": "a"}, "aB"),
}


@pytest.mark.parametrize(("function", "arguments", "said"), CASES.values(), ids=CASES.keys())
async def test_arguments_reach_their_parameters(
    function: Callable[..., Any], arguments: dict[str, str], said: str
) -> None:
    server = Server("s", version="1")
    server.add_tool(function, name="tool")
    async with Pair(server) as pair:
        assert text(await pair.call("tool", **arguments)) == said


async def test_a_schema_of_the_author_s_may_leave_out_what_has_a_default() -> None:
    server = Server("s", version="1")
    schema = {"type": "object", "properties": {"c": {"type": "string"}, "a": {"type": "string"}}}
    server.add_tool(plain, name="tool", input_schema=schema)
    async with Pair(server) as pair:
        assert text(await pair.call("tool", c="x", a="a")) == "aBx"


async def test_what_only_the_exact_reading_takes_reaches_a_plain_function() -> None:
    server = Server("s", version="1")

    @server.tool
    async def add(a: int, b: int = 2) -> int:
        return a + b

    async with Pair(server) as pair:
        result = (await pair.ask("tools/call", {"name": "add", "arguments": {"a": 5.0}}))["result"]
        assert result["structuredContent"] == {"result": 7}
        result = (await pair.ask("tools/call", {"name": "add", "arguments": {"a": 5.5}}))["result"]
        assert result["isError"]
        assert "a: expected an integer" in result["content"][0]["text"]
