"""Values that functions supply to handlers, beside what the client sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Annotated, Any

import pytest

from dragoman import Context, Depends, Refusal, Server, ToolError, UsageError
from tests.server.pair import Pair, text
from tests.server.test_asking import Asked

REVISIONS = ["2025-11-25", "2026-07-28"]
told: list[str] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    told.clear()


async def database(ctx: Context) -> AsyncIterator[str]:
    told.append("open")
    try:
        yield f"db of {ctx.principal}"
    except BaseException as exc:
        told.append(f"rollback {type(exc).__name__}")
        raise
    finally:
        told.append("close")


def user(db: Annotated[str, Depends(database)]) -> str:
    told.append("user")
    return f"user in {db}"


Database = Annotated[str, Depends(database)]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_dependency_is_supplied_hidden_and_resolved_once_a_request(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def find(number: int, db: Database, who: str = Depends(user)) -> str:
        """Find something."""
        return f"{number} {db}, {who}"

    async with Pair(server, revision) as pair:
        (tool,) = (await pair.ask("tools/list"))["result"]["tools"]
        assert list(tool["inputSchema"]["properties"]) == ["number"]
        assert tool["inputSchema"]["required"] == ["number"]
        assert text(await pair.call("find", number=1)) == "1 db of None, user in db of None"
        assert told == ["open", "user", "close"]
        await pair.call("find", number=2)
        assert told == ["open", "user", "close"] * 2


async def test_a_client_cannot_give_it() -> None:
    server = Server("s")

    @server.tool
    async def find(db: Database) -> str:
        return db

    @server.tool
    async def open_find(db: Database, **more: str) -> str:
        return db

    async with Pair(server) as pair:
        for name in ("find", "open_find"):
            result = await pair.call(name, db="mine")
            assert result["isError"] is True
        assert told == []


class Settings:
    def __init__(self, ctx: Context, size: int = 3) -> None:
        self.size = size
        self.revision = ctx.revision


class Plain:
    pass


class Answer:
    async def __call__(self, ctx: Context) -> int:
        return 42


def thread() -> int:
    return threading.get_ident()


def generator() -> Iterator[int]:
    entered = threading.get_ident()
    yield entered
    told.append("left in a thread" if threading.get_ident() != threading.main_thread().ident else "left")


async def coroutine() -> str:
    await asyncio.sleep(0)
    return "awaited"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (coroutine, "awaited"),
        (lambda: 5, 5),
        (Answer(), 42),
        (partial(lambda a, ctx=None: a, 7), 7),
    ],
    ids=["async", "lambda", "instance", "partial"],
)
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_all_kinds_of_functions(function: Any, expected: Any, kind: str) -> None:
    server = Server("s")

    async def deferred(value: Any = Depends(function)) -> Any:
        return value

    def plain(value: Any = Depends(function)) -> Any:
        return value

    server.add_tool(deferred if kind == "async" else plain, name="f")
    async with Pair(server) as pair:
        assert text(await pair.call("f")) == str(expected)


async def test_a_class_is_a_supplier_too() -> None:
    server = Server("s")

    @server.tool
    async def f(settings: Annotated[Settings, Depends(Settings)], plain: Plain = Depends(Plain)) -> str:
        return f"{settings.size} {settings.revision} {type(plain).__name__}"

    async with Pair(server) as pair:
        assert text(await pair.call("f")) == "3 2026-07-28 Plain"


async def test_plain_functions_and_generators_run_in_a_thread_unless_told_otherwise() -> None:
    server = Server("s")

    @server.tool
    async def f(
        a: int = Depends(thread),
        b: int = Depends(generator),
        c: int = Depends(thread, cache=False, inline=True),
    ) -> list[bool]:
        here = threading.get_ident()
        return [a != here, b != here, c == here]

    async with Pair(server) as pair:
        assert (await pair.call("f"))["structuredContent"] == {"result": [True, True, True]}
        assert told == ["left in a thread"]


async def test_without_the_cache_it_is_supplied_for_each() -> None:
    server = Server("s")
    numbers = iter(range(9))

    def number() -> int:
        return next(numbers)

    def pair_of(a: int = Depends(number, cache=False), b: int = Depends(number, cache=False)) -> list[int]:
        return [a, b]

    @server.tool
    async def f(ab: list[int] = Depends(pair_of), c: int = Depends(number), d: int = Depends(number)) -> Any:
        return [*ab, c, d]

    async with Pair(server) as pair:
        assert text(await pair.call("f")) == "[0,1,2,2]"


# Cleaning up -------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_it_is_cleaned_up_last_in_first_out_and_after_the_call(revision: str) -> None:
    server = Server("s")

    async def outer() -> AsyncIterator[int]:
        yield 1
        told.append("outer")

    def inner(value: int = Depends(outer)) -> Iterator[int]:
        yield value + 1
        told.append("inner")

    @server.tool
    def f(value: int = Depends(inner)) -> int:
        told.append("call")
        return value

    async with Pair(server, revision) as pair:
        assert text(await pair.call("f")) == "2"
    assert told == ["call", "inner", "outer"]


@pytest.mark.parametrize(
    ("raised", "shown"),
    [(ToolError("no such order"), "no such order"), (ValueError("bad"), "bad")],
)
async def test_it_sees_the_error_of_the_call(raised: Exception, shown: str) -> None:
    server = Server("s")

    @server.tool
    async def f(db: Database) -> str:
        raise raised

    async with Pair(server) as pair:
        result = await pair.call("f")
        assert (result["isError"], text(result)) == (True, shown)
    assert told == ["open", f"rollback {type(raised).__name__}", "close"]


async def test_it_cannot_make_a_call_succeed_that_failed_but_may_say_what_the_error_is() -> None:
    server = Server("s")

    async def swallows() -> AsyncIterator[int]:
        try:
            yield 1
        except ValueError:
            told.append("swallowed")

    async def translates() -> AsyncIterator[int]:
        try:
            yield 1
        except ValueError as exc:
            raise ToolError(f"translated {exc}") from None

    async def bad(value: int = Depends(swallows)) -> str:
        raise ValueError("bad")

    async def worse(value: int = Depends(translates)) -> str:
        raise ValueError("worse")

    server.add_tool(bad)
    server.add_tool(worse)
    async with Pair(server) as pair:
        assert text(await pair.call("bad")) == "bad"
        assert text(await pair.call("worse")) == "translated worse"
    assert told == ["swallowed"]


async def test_a_failure_to_clean_up_is_the_answer_of_a_call_that_went_well() -> None:
    server = Server("s")

    async def commits() -> AsyncIterator[int]:
        yield 1
        raise ToolError("could not commit")

    @server.tool
    async def f(value: int = Depends(commits)) -> int:
        return value

    async with Pair(server) as pair:
        result = await pair.call("f")
        assert (result["isError"], text(result)) == (True, "could not commit")


async def test_what_was_supplied_is_cleaned_up_when_the_next_cannot_be() -> None:
    server = Server("s")

    def forbidden(db: Database) -> str:
        raise Refusal(4003, "not yours")

    @server.tool
    async def f(value: str = Depends(forbidden)) -> str:
        told.append("call")
        return value

    async with Pair(server) as pair:
        answer = await pair.ask("tools/call", {"name": "f"})
        assert answer["error"] == {"code": 4003, "message": "not yours"}
    assert told == ["open", "rollback Refusal", "close"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_it_is_cleaned_up_when_the_call_is_cancelled(revision: str) -> None:
    server = Server("s")
    begun = asyncio.Event()
    closed = asyncio.Event()

    async def held() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)  # cleaning up may take time of its own
            closed.set()

    @server.tool
    async def waits(value: int = Depends(held)) -> int:
        begun.set()
        await asyncio.Event().wait()
        return value

    async with Pair(server, revision) as pair:
        id_ = pair.send("tools/call", {"name": "waits"})
        async with asyncio.timeout(20):
            await begun.wait()
            pair.tell("notifications/cancelled", {"requestId": id_})
            await closed.wait()


async def test_it_is_cleaned_up_when_the_time_of_the_tool_is_over() -> None:
    server = Server("s")

    @server.tool(timeout=0.01)
    async def slow(db: Database) -> str:
        await asyncio.Event().wait()
        return db

    async with Pair(server) as pair:
        assert text(await pair.call("slow")) == "slow did not finish within 0.01 s"
    assert told == ["open", "rollback CancelledError", "close"]


# Where it may stand ------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_prompts_and_resources_have_dependencies_too(revision: str) -> None:
    server = Server("s")

    @server.prompt
    async def ask(topic: str, db: Database) -> str:
        return f"{topic} in {db}"

    @server.resource("notes://{name}")
    async def note(name: str, db: Database) -> str:
        return f"{name} in {db}"

    async with Pair(server, revision) as pair:
        got = (await pair.ask("prompts/get", {"name": "ask", "arguments": {"topic": "t"}}))["result"]
        assert got["messages"][0]["content"]["text"] == "t in db of None"
        (listed,) = (await pair.ask("prompts/list"))["result"]["prompts"]
        assert [argument["name"] for argument in listed["arguments"]] == ["topic"]
        read = (await pair.ask("resources/read", {"uri": "notes://n"}))["result"]
        assert read["contents"][0]["text"] == "n in db of None"
    assert told == ["open", "close"] * 2


async def test_a_resource_read_by_a_tool_shares_what_the_tool_was_supplied_with() -> None:
    server = Server("s")

    @server.resource("notes://today")
    async def note(db: Database) -> str:
        told.append("read")
        return db

    @server.tool
    async def f(db: Database, ctx: Context) -> str:
        (contents,) = await ctx.read_resource("notes://today")
        return contents.text

    async with Pair(server) as pair:
        assert text(await pair.call("f")) == "db of None"
    assert told == ["open", "read", "close"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_dependency_may_ask_the_client(revision: str) -> None:
    server = Server("s", secret="0123456789abcdef")

    async def confirmed(ctx: Context) -> AsyncIterator[bool]:
        answer = await ctx.elicit("Sure?", bool)
        yield bool(answer.data)
        told.append("close")

    @server.tool
    async def f(ctx: Context, sure: bool = Depends(confirmed)) -> str:
        name = await ctx.elicit("Name?", str)
        return f"{sure} {name.data}"

    def answer(method: str, params: dict[str, Any]) -> Any:
        return {"action": "accept", "content": {"value": True if params["message"] == "Sure?" else "ada"}}

    async with Asked(server, revision, answer) as pair:
        assert text(await pair.run("f")) == "True ada"
    assert told == ["close"]


# Tests of the author's ---------------------------------------------------------------------------


async def test_another_function_may_supply_it_in_tests() -> None:
    server = Server("s")

    @server.tool
    async def f(who: str = Depends(user)) -> str:
        return who

    def fake() -> Iterator[str]:
        yield "fake db"
        told.append("fake closed")

    def wrapped(db: Database) -> str:  # what replaces a function may depend on it
        return f"wrapped {db}"

    async with Pair(server) as pair:
        server.overrides[database] = fake
        assert text(await pair.call("f")) == "user in fake db"
        assert told == ["user", "fake closed"]
        server.overrides[database] = wrapped
        assert text(await pair.call("f")) == "user in wrapped db of None"
        del server.overrides[database]
        assert text(await pair.call("f")) == "user in db of None"


# What cannot be ----------------------------------------------------------------------------------


def needs_argument(order: int) -> int:
    return order


def by_position(ctx: Context, /) -> int:
    return 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (needs_argument, "nothing supplies its parameter 'order'"),
        (by_position, "ctx can only be given by position"),
        (print, "not a Python function"),
    ],
)
def test_a_dependency_that_cannot_be_supplied_is_refused_when_the_tool_is_made(
    function: Callable[..., Any], said: str
) -> None:
    server = Server("s")

    def tool(value: int = Depends(function)) -> int:
        return value

    with pytest.raises(UsageError, match=said):
        server.add_tool(tool)


def test_a_dependency_that_needs_itself_is_refused() -> None:
    def loop(value: int = 0) -> int:
        return value

    loop.__defaults__ = (Depends(loop),)

    def tool(value: int = Depends(loop)) -> int:
        return value

    with pytest.raises(UsageError, match="needs itself: loop -> loop"):
        Server("s").add_tool(tool)


def test_what_cannot_be_called_supplies_nothing() -> None:
    with pytest.raises(UsageError, match="Depends: expected a function, received 5"):
        Depends(5)
