"""Suggestions: what may be filled in for an argument of a prompt, or a variable of a template."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pytest

from dragoman import Context, Refusal, Server, UsageError
from dragoman.model import CompleteResult, Completion
from dragoman.server.depends import Depends
from tests.server.pair import Pair
from tests.server.test_resources import ALL, LATEST, ON_ALL, ON_BOTH


class Style(enum.Enum):
    PLAIN = "plain"
    FANCY = "fancy"


async def complete(
    pair: Pair, ref: str, argument: str, value: str, settled: dict[str, str] | None = None
) -> dict[str, Any]:
    """The answer's result; `ref` is a prompt's name, or a URI or template."""
    kind = {"type": "ref/resource", "uri": ref} if "://" in ref else {"type": "ref/prompt", "name": ref}
    params: dict[str, Any] = {"ref": kind, "argument": {"name": argument, "value": value}}
    if settled is not None:
        params["context"] = {"arguments": settled}
    return await pair.ask("completion/complete", params)


async def values(pair: Pair, ref: str, argument: str, value: str, **settled: str) -> list[str]:
    answer = await complete(pair, ref, argument, value, settled or None)
    assert "result" in answer, answer
    return answer["result"]["completion"]["values"]


@ON_ALL
async def test_a_function_suggests_for_an_argument_of_a_prompt(revision: str) -> None:
    server = Server("s")

    @server.prompt
    def review(language: str) -> str:
        return language

    @server.completion("review", "language")
    async def languages(typed: str) -> list[str]:
        return [name for name in ("python", "pytorch", "rust") if name.startswith(typed)]

    async with Pair(server, revision) as pair:
        answer = await complete(pair, "review", "language", "py")
        found = answer["result"]["completion"]
        assert found == {"values": ["python", "pytorch"], "total": 2, "hasMore": False}
    assert await languages("r") == ["rust"]


@ON_ALL
async def test_a_function_suggests_for_a_variable_of_a_template(revision: str) -> None:
    server = Server("s")

    @server.resource("orders://{order_id}/{part}")
    def order(order_id: str, part: str) -> str:
        return order_id

    @server.completion("orders://{order_id}/{part}", "order_id")
    def ids(typed: str) -> list[str]:
        return [f"{typed}-1", f"{typed}-2"]

    async with Pair(server, revision) as pair:
        assert await values(pair, "orders://{order_id}/{part}", "order_id", "A") == ["A-1", "A-2"]
        # By a URI of the family too (2026-07-28, utilities/completion: Data Types).
        assert await values(pair, "orders://A/items", "order_id", "A") == ["A-1", "A-2"]
        assert await values(pair, "orders://{order_id}/{part}", "part", "A") == []


@ON_BOTH
async def test_what_is_settled_before_counts(revision: str) -> None:
    server = Server("s")
    frameworks = {"python": ["flask", "fastapi"], "rust": ["axum"]}

    @server.prompt
    def review(language: str, framework: str) -> str:
        return f"{language} {framework}"

    @server.completion("review", "framework")
    def suggest(typed: str, settled: dict[str, str], ctx: Context) -> list[str]:
        assert ctx.revision == revision
        known = frameworks.get(settled.get("language", ""), [])
        return [name for name in known if name.startswith(typed)]

    async with Pair(server, revision) as pair:
        assert await values(pair, "review", "framework", "fla", language="python") == ["flask"]
        assert await values(pair, "review", "framework", "", language="rust") == ["axum"]
        assert await values(pair, "review", "framework", "fla") == []


@ON_BOTH
async def test_the_values_of_a_type_suggest_themselves(revision: str) -> None:
    server = Server("s")

    @server.prompt
    def typed(
        style: Style,
        level: Literal["low", "high"],
        number: Literal[1, 20],
        flag: bool,
        maybe: Style | None = None,
        text: str = "",
    ) -> str:
        return "x"

    @server.resource("test://{style}{?flag}")
    def family(style: Style, flag: bool = False) -> str:
        return "x"

    async with Pair(server, revision) as pair:
        assert await values(pair, "typed", "style", "") == ["plain", "fancy"]
        assert await values(pair, "typed", "style", "FA") == ["fancy"]
        assert await values(pair, "typed", "style", "an") == ["fancy"]  # in its middle, if not at its start
        assert await values(pair, "typed", "level", "h") == ["high"]
        assert await values(pair, "typed", "number", "2") == ["20"]
        assert await values(pair, "typed", "flag", "t") == ["true"]
        assert await values(pair, "typed", "maybe", "p") == ["plain"]
        assert await values(pair, "typed", "text", "a") == []
        assert await values(pair, "test://{style}{?flag}", "style", "f") == ["fancy"]
        assert await values(pair, "test://{style}{?flag}", "flag", "f") == ["false"]


async def test_options_name_values_enums_and_functions() -> None:
    server = Server("s")

    def shout(typed: str) -> list[str]:
        return [typed.upper()]

    @server.prompt(
        complete={"a": ["one", "two", "tower"], "b": Style, "c": shout, "d": lambda typed: [typed]}
    )
    def prompt(a: str, b: str, c: str, d: str, e: Literal["x"] = "x") -> str:
        return "x"

    server.add_resource("test://{a}", lambda a: a, name="t", complete={"a": ("one", "two")})
    server.add_completion("prompt", "e", source=["y"])
    async with Pair(server) as pair:
        # What begins with the text goes before what holds it.
        assert await values(pair, "prompt", "a", "t") == ["two", "tower"]
        assert await values(pair, "prompt", "a", "o") == ["one", "two", "tower"]
        assert await values(pair, "prompt", "b", "pl") == ["plain"]
        assert await values(pair, "prompt", "c", "pl") == ["PL"]
        assert await values(pair, "prompt", "d", "pl") == ["pl"]
        assert await values(pair, "prompt", "e", "") == ["y"]  # what is said apart counts more
        assert await values(pair, "test://{a}", "a", "t") == ["two"]


async def test_at_most_a_hundred_are_sent_and_how_many_there_are() -> None:
    server = Server("s")

    @server.prompt(complete={"a": [f"{n:03}" for n in range(250)]})
    def prompt(a: str, b: str, c: str) -> str:
        return "x"

    @server.completion("prompt", "b")
    def many(typed: str) -> Any:
        return (str(n) for n in range(101))

    @server.completion("prompt", "c")
    def whole(typed: str) -> Completion:
        return Completion(values=[str(n) for n in range(150)], total=5000, has_more=True)

    async with Pair(server) as pair:
        found = (await complete(pair, "prompt", "a", ""))["result"]["completion"]
        assert found["values"] == [f"{n:03}" for n in range(100)]
        assert (found["total"], found["hasMore"]) == (250, True)
        found = (await complete(pair, "prompt", "a", "24"))["result"]["completion"]
        assert (found["total"], found["hasMore"], len(found["values"])) == (13, False, 13)
        found = (await complete(pair, "prompt", "b", ""))["result"]["completion"]
        assert (found["total"], found["hasMore"], len(found["values"])) == (101, True, 100)
        found = (await complete(pair, "prompt", "c", ""))["result"]["completion"]
        assert (found["total"], found["hasMore"], len(found["values"])) == (5000, True, 100)


@pytest.mark.parametrize(
    ("returned", "sent"),
    [
        (None, []),
        ([], []),
        ("one", ["one"]),
        (("a", "b"), ["a", "b"]),
        ([Style.FANCY, 5], ["fancy", "5"]),
        (Completion(values=["a"]), ["a"]),
        (CompleteResult(completion=Completion(values=["a"])), ["a"]),
    ],
)
async def test_what_a_function_may_return(returned: Any, sent: list[str]) -> None:
    server = Server("s")
    server.add_prompt(lambda a: a, name="prompt", complete={"a": lambda typed: returned})
    async with Pair(server) as pair:
        assert await values(pair, "prompt", "a", "") == sent


@ON_ALL
async def test_what_there_is_not_is_named(revision: str) -> None:
    server = Server("s")
    server.add_prompt(lambda a, b: a, name="prompt", complete={"a": ["x"]})
    server.add_resource("test://fixed", "x")
    server.add_resource("test://{x}/y", lambda x: x, name="t")
    async with Pair(server, revision) as pair:
        for ref, argument, message in (
            ("promt", "a", "Unknown prompt: promt"),
            ("test://none", "a", "Unknown resource template: test://none"),
            ("test://{z}/y", "z", "has no z"),  # a URI of the family, so to say
            ("prompt", "c", "Unknown argument: prompt has no c (it has a, b)"),
            ("test://fixed", "a", "Unknown argument: test://fixed has no a (it has none)"),
        ):
            error = (await complete(pair, ref, argument, ""))["error"]
            assert error["code"] == -32602
            assert message in error["message"]


@pytest.mark.parametrize("revision", ALL)
async def test_a_server_that_never_suggests_does_not_say_it_would(revision: str) -> None:
    server = Server("s")
    server.add_prompt(lambda a: a, name="prompt")
    async with Pair(server, revision) as pair:
        error = (await complete(pair, "prompt", "a", ""))["error"]
        assert error["code"] == -32601  # utilities/completion: Error Handling
    server.add_completion("prompt", "a", source=["x"])
    async with Pair(server, revision) as pair:
        if revision == LATEST:
            said = (await pair.ask("server/discover"))["result"]["capabilities"]
        else:
            said = pair.frames[0]["result"]["capabilities"]
        # 2024-11-05 has completion, and no capability for it.
        assert said.get("completions") == (None if revision == "2024-11-05" else {})
        assert await values(pair, "prompt", "a", "") == ["x"]


@ON_BOTH
async def test_what_a_function_raises_is_an_internal_error(revision: str) -> None:
    server = Server("s")

    def fails(typed: str) -> list[str]:
        raise ValueError("the moon is full")

    def refuses(typed: str) -> list[str]:
        raise Refusal(-32000, "not for you")

    server.add_prompt(lambda a, b: a, name="prompt", complete={"a": fails, "b": refuses})
    async with Pair(server, revision) as pair:
        error = (await complete(pair, "prompt", "a", ""))["error"]
        assert (error["code"], error["message"]) == (-32603, "prompt, a: the moon is full")
        assert (await complete(pair, "prompt", "b", ""))["error"]["code"] == -32000


async def test_dependencies_reach_completions() -> None:
    server = Server("s")

    def known() -> list[str]:
        return ["a", "b"]

    def suggest(typed: str, names: Annotated[list[str], Depends(known)]) -> list[str]:
        return names

    server.add_prompt(lambda a: a, name="prompt", complete={"a": suggest})
    async with Pair(server) as pair:
        assert await values(pair, "prompt", "a", "") == ["a", "b"]


def _none() -> list[str]:
    return []


def _three(a: str, b: dict[str, str], c: str) -> list[str]:
    return []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (_none, "has to take what was typed"),
        (_three, "has to take what was typed"),
        ("abc", "sequence of strings"),
        ([1, 2], "sequence of strings"),
        (5, "sequence of strings"),
    ],
)
def test_what_cannot_be_is_told_when_it_is_added(source: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Server("s").add_completion("prompt", "a", source=source)


def test_one_argument_has_one_source() -> None:
    server = Server("s")
    server.add_completion("prompt", "a", source=["x"])
    with pytest.raises(UsageError, match="already"):
        server.add_completion("prompt", "a", source=["y"])
