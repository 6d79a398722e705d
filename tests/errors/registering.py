"""Provokes what a server says of itself while it is put together, before anybody calls it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman import Context, Depends, Server
from dragoman.extensions.tasks import Tasks
from dragoman.server import Image
from dragoman.server.layers import Cache, Concurrency, RateLimit, ResponseLimit, Timeout
from tests.errors.caught import Said, at, of


def poem(about: str) -> str:
    return about


class Home:
    def method(self) -> str:
        return ""


def plain(a: int = 0) -> str:
    return str(a)


def other(a: int = 0, b: int = 0) -> str:
    return str(a + b)


def servers(folder: Path) -> list[Said]:
    """Servers that cannot be made, and what is mounted in them."""
    del folder
    outer, inner = Server("outer", version="1"), Server("inner", version="1")
    outer.add_tool(plain)
    outer.add_tool(other)
    schema = {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {}]}
    outer.add_tool(plain, name="either", input_schema=schema)
    inner.add_tool(plain)
    around = Server("around", version="1")
    around.mount(outer, prefix="o_")
    work: list[Callable[[], Any]] = [
        lambda: Server("", version="1"),
        lambda: Server("s", version="1", argument_errors="loud"),
        lambda: Server("s", version="1", page_size=0),
        lambda: Server("s", version="1", progress_rate=0),
        lambda: Server("s", version="1", lifespan=7),
        lambda: outer.mount(7),
        lambda: outer.mount(inner),
        lambda: outer.mount(around),
        lambda: outer.transform("none", name="x"),
        lambda: outer.transform("plain", fixed={"z": 1}),
        lambda: outer.transform("plain", fixed={"a": "text"}),
        lambda: outer.transform("plain", fixed={"a": 1}, renamed={"a": "b"}),
        lambda: outer.transform("plain", keep=True),
        lambda: outer.remove_tool("none"),
        lambda: RateLimit(0),
        lambda: Concurrency(0),
        lambda: Timeout(0),
        lambda: ResponseLimit(0),
        lambda: Image(b"", path="x.png"),
        lambda: Depends(7),
        lambda: Server("s", version="1", extensions=[Tasks(), Tasks()]),
        lambda: Server("s", version="1", caching={"tools/call": {"ttl_ms": 1}}),
        lambda: Cache(ttl=0),
        lambda: RateLimit(1, by="moon"),
        lambda: Image("text"),
        lambda: outer.transform("plain", name=""),
        lambda: outer.transform("other", renamed={"a": "b"}),
        lambda: outer.transform("either", fixed={"a": 1}),
    ]
    return [at(one) for one in work]


def star(*words: str) -> str:
    return ""


def yields():
    yield 1


def unknown(a: NoSuchName) -> str:  # noqa: F821  # it is the point
    return ""


def odd(a: Callable[[], int]) -> str:
    return ""


def twice(one: Context, two: Context) -> str:
    return ""


def wants(given: str) -> str:
    return given


def byplace(given: Any = Depends(lambda: 1), /) -> str:
    return ""


def around(one: Any = None) -> Any:
    return one


around.__defaults__ = (Depends(around),)


def circle(given: Any = Depends(around)) -> str:
    return ""


def placed(given: Any = Depends(byplace)) -> str:
    return ""


def needs(given: str = Depends(wants)) -> str:
    return given


def tools(folder: Path) -> list[Said]:
    """Functions that are no tools."""
    del folder
    server = Server("s", version="1")
    server.add_tool(plain)

    work: list[Callable[[], Any]] = [
        lambda: server.add_tool(plain),
        lambda: server.add_tool(lambda: ""),
        lambda: server.add_tool(7),
        lambda: server.add_tool(plain, name="p", spped=1),
        lambda: server.add_tool(plain, name="p", task=True),
        lambda: server.add_tool(plain, name="p", task="maybe"),
        lambda: server.add_tool(plain, name="p", annotations={"readOnlyHint": 7}),
        *(
            lambda one=one: server.add_tool(one)
            for one in (star, yields, unknown, odd, twice, needs, placed, circle, Home.method)
        ),
    ]
    return [at(one) for one in work]


def resources(folder: Path) -> list[Said]:
    """Functions that are no resources and no prompts."""
    del folder
    server = Server("s", version="1")
    server.prompt(poem)
    server.add_completion("poem", "about", source=["b"])

    def nothing() -> str:
        return ""

    def asks(name: str) -> str:
        return name

    def wider(other: str, more: str) -> str:
        return ""

    def keywords(**more: str) -> str:
        return ""

    work: list[Callable[[], Any]] = [
        lambda: server.resource(nothing),
        lambda: server.resource("today")(nothing),
        lambda: server.resource("notes://today")(asks),
        lambda: server.resource("notes://{name}")(nothing),
        lambda: server.resource("notes://{a}{b}")(asks),
        lambda: server.resource("notes://{a}/{a}")(asks),
        lambda: server.add_resource("notes://today", 7),
        lambda: server.prompt(keywords),
        lambda: server.prompt(7),
        lambda: server.prompt(lambda: ""),
        lambda: server.add_resource("notes://{name}", "text"),
        lambda: server.resource("notes://{name}", size=3)(asks),
        lambda: server.resource("notes://{other}")(wider),
        lambda: server.resource("notes://today", complete={"a": ["b"]})(nothing),
        lambda: server.prompt(asks, complete={"nam": ["b"]}),
        lambda: server.prompt(asks, complete={"name": 7}),
        lambda: server.prompt(asks, complete={"name": nothing}),
        lambda: server.add_completion("poem", "about", source=["b"]),
        lambda: server.resource("notes://today", ttl_ms=-1)(nothing),
        lambda: server.resource("notes://today", cache_scope="mine")(nothing),
    ]
    return [at(one) for one in work]


async def loops(folder: Path) -> list[Said]:
    """A server that is run where an event loop runs already."""
    del folder

    @asynccontextmanager
    async def unused(server: Server):
        yield

    async def begin() -> None:
        Server("s", version="1", lifespan=unused).run()

    return [await of(begin())]
