"""Prompts: what a list shows of them, and the messages that a client of each revision gets."""

from __future__ import annotations

import asyncio
import enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from dragoman import (
    Audio,
    Context,
    File,
    Icon,
    Image,
    InputRequiredResult,
    Message,
    Meta,
    PromptMessage,
    Refusal,
    ResourceLink,
    Server,
    TextContent,
    UsageError,
)
from dragoman.model import (
    ElicitFormParams,
    ElicitRequest,
    GetPromptResult,
    TextResourceContents,
)
from dragoman.server.depends import Depends
from tests.server.pair import Pair
from tests.server.test_asking import Asked, accept
from tests.server.test_resources import HANDSHAKES, ON_ALL, ON_BOTH, hints


class Style(enum.Enum):
    PLAIN = "plain"
    FANCY = "fancy"


async def get(pair: Pair, name: str, /, **arguments: str) -> list[dict[str, Any]]:
    """The messages of a prompt."""
    answer = await pair.ask("prompts/get", {"name": name, "arguments": arguments})
    assert "result" in answer, answer
    return answer["result"]["messages"]


async def refused(pair: Pair, name: str, /, **arguments: Any) -> dict[str, Any]:
    answer = await pair.ask("prompts/get", {"name": name, "arguments": arguments})
    assert "error" in answer, answer
    return answer["error"]


def says(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


# Lists -----------------------------------------------------------------------------------------------


@ON_ALL
async def test_a_list_shows_what_the_author_said_and_the_revision_knows(revision: str) -> None:
    server = Server("s")

    @server.prompt(
        title="Request Code Review",
        icons=[Icon(src="https://example.com/icon.svg", mime_type="image/svg+xml")],
        meta={"example.com/key": 1},
    )
    def code_review(
        code: Annotated[str, Meta(title="Code")],
        language: Literal["python", "rust"],
        ctx: Context,
        strictness: int = 3,
        style: Style = Style.PLAIN,
        since: str | None = None,
    ) -> str:
        """Asks the model to look at code.

        Args:
            code: The code to review.
            strictness: How strict to be.
        """
        return code

    arguments: list[dict[str, Any]] = [
        {"name": "code", "description": "The code to review.", "required": True},
        {"name": "language", "description": 'one of "python", "rust"', "required": True},
        {"name": "strictness", "description": "How strict to be. (an integer)", "required": False},
        {"name": "style", "description": 'one of "plain", "fancy"', "required": False},
        {"name": "since", "required": False},
    ]
    expected: dict[str, Any] = {
        "name": "code_review",
        "description": "Asks the model to look at code.",
        "arguments": arguments,
    }
    if revision >= "2025-06-18":
        expected["title"] = "Request Code Review"
        expected["_meta"] = {"example.com/key": 1}
        arguments[0]["title"] = "Code"
    if revision >= "2025-11-25":
        expected["icons"] = [{"src": "https://example.com/icon.svg", "mimeType": "image/svg+xml"}]
    async with Pair(server, revision) as pair:
        assert (await pair.ask("prompts/list"))["result"]["prompts"] == [expected]
    assert [prompt.name for prompt in server.prompts] == ["code_review"]


async def test_names_come_from_the_decorator_or_the_function() -> None:
    server = Server("s")

    @server.prompt("first")
    def one() -> str:
        return "1"

    @server.prompt(name="second", description="The second one")
    def two() -> str:
        """Not this."""
        return "2"

    server.add_prompt(lambda: "3", name="third")
    async with Pair(server) as pair:
        assert (await pair.ask("prompts/list"))["result"]["prompts"] == [
            {"name": "first"},
            {"name": "second", "description": "The second one"},
            {"name": "third"},
        ]
        assert await get(pair, "third") == [says("3")]
    assert one() == "1"


@ON_BOTH
async def test_lists_come_in_pages_and_change(revision: str) -> None:
    server = Server("s", page_size=2, caching={"prompts/list": {"ttl_ms": 5, "cache_scope": "private"}})
    for number in range(3):
        server.add_prompt(lambda: "x", name=f"p{number}")
    async with Pair(server, revision) as pair:
        await pair.ask("prompts/list")
        first = (await pair.ask("prompts/list"))["result"]
        second = (await pair.ask("prompts/list", {"cursor": first["nextCursor"]}))["result"]
        found = [[prompt["name"] for prompt in page["prompts"]] for page in (first, second)]
        assert found == [["p0", "p1"], ["p2"]]
        assert hints(first) == hints(second) == ((5, "private") if revision > "2026" else (None, None))
        server.remove_prompt("p2")
        assert "nextCursor" not in (await pair.ask("prompts/list"))["result"]
        assert (await refused(pair, "p2"))["code"] == -32602


async def test_a_server_without_prompts_has_none_of_their_methods() -> None:
    server = Server("s")
    async with Pair(server) as pair:
        assert "prompts" not in (await pair.ask("server/discover"))["result"]["capabilities"]
        assert (await pair.ask("prompts/list"))["error"]["code"] == -32601
        assert (await pair.ask("prompts/get", {"name": "x"}))["error"]["code"] == -32601
        server.add_prompt(lambda: "x", name="x")
        said = (await pair.ask("server/discover"))["result"]["capabilities"]
        assert said["prompts"] == {"listChanged": True}
        server.remove_prompt("x")  # the list is there still, and empty
        assert (await pair.ask("prompts/list"))["result"]["prompts"] == []


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_session_is_told_that_the_list_changed(revision: str) -> None:
    server = Server("s")
    server.add_prompt(lambda: "x", name="x")
    async with Pair(server, revision) as pair:
        await pair.ask("ping")
        before = len(pair.frames)
        server.remove_prompt("x")
        server.notify_prompts_changed()
        await pair.said(before + 2)
        told = [frame["method"] for frame in pair.frames[before:]]
        assert told == ["notifications/prompts/list_changed"] * 2


async def test_a_listener_is_told_that_the_list_changed() -> None:
    server = Server("s")
    server.add_prompt(lambda: "x", name="x")
    async with Pair(server) as pair:
        id_ = pair.send("subscriptions/listen", {"notifications": {"promptsListChanged": True}})
        await pair.said(1)
        server.add_resource("test://x", "x")
        server.remove_prompt("x")
        await pair.said(2)
        assert pair.frames[1] == {
            "jsonrpc": "2.0",
            "method": "notifications/prompts/list_changed",
            "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": id_}},
        }


# Messages --------------------------------------------------------------------------------------------

LINK = ResourceLink(uri="file:///a.txt", name="a.txt")
EMBEDDED = TextResourceContents(uri="test://x", mime_type="text/plain", text="inside")


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("Hello", [says("Hello")]),
        ("", [says("")]),
        ([], []),
        (["one", "two"], [says("one"), says("two")]),
        (("one",), [says("one")]),
        (Message("Hello"), [says("Hello")]),
        ([Message("Hi", role="assistant"), "so"], [says("Hi", "assistant"), says("so")]),
        (PromptMessage(role="assistant", content=TextContent(text="Hi")), [says("Hi", "assistant")]),
        (TextContent(text="Hi"), [says("Hi")]),
        (
            Image(b"png", format="png"),
            [{"role": "user", "content": {"type": "image", "data": "cG5n", "mimeType": "image/png"}}],
        ),
        (
            Message(Audio(b"wav", format="wav"), role="assistant"),
            [
                {
                    "role": "assistant",
                    "content": {"type": "audio", "data": "d2F2", "mimeType": "audio/wav"},
                }
            ],
        ),
        (
            EMBEDDED,
            [
                {
                    "role": "user",
                    "content": {
                        "type": "resource",
                        "resource": {"uri": "test://x", "mimeType": "text/plain", "text": "inside"},
                    },
                }
            ],
        ),
        (
            LINK,
            [{"role": "user", "content": {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"}}],
        ),
    ],
)
@ON_BOTH
async def test_what_a_function_returns_becomes_messages(revision: str, value: Any, messages: Any) -> None:
    server = Server("s")

    @server.prompt
    async def prompt() -> Any:
        """A prompt."""
        return value

    async with Pair(server, revision) as pair:
        result = (await pair.ask("prompts/get", {"name": "prompt"}))["result"]  # without `arguments`
        assert result["messages"] == messages
        assert result["description"] == "A prompt."


async def test_a_whole_result_is_sent_as_it_is(tmp_path: Path) -> None:
    server = Server("s")
    (tmp_path / "a.pdf").write_bytes(b"%PDF")

    @server.prompt
    def whole() -> GetPromptResult:
        """Not this."""
        message = PromptMessage(role="user", content=TextContent(text="Hi"))
        return GetPromptResult(description="This", messages=[message], meta={"example.com/a": 1})

    @server.prompt
    def file() -> File:
        return File(path=tmp_path / "a.pdf")

    async with Pair(server) as pair:
        result = (await pair.ask("prompts/get", {"name": "whole"}))["result"]
        assert (result["description"], result["messages"]) == ("This", [says("Hi")])
        assert result["_meta"]["example.com/a"] == 1
        (message,) = await get(pair, "file")
        assert message["content"]["resource"] == {
            "uri": "file:///a.pdf",
            "mimeType": "application/pdf",
            "blob": "JVBERg==",
        }


@pytest.mark.parametrize(
    ("revision", "link", "audio"),
    [
        ("2024-11-05", "text", "text"),
        ("2025-03-26", "text", "audio"),
        ("2025-06-18", "resource_link", "audio"),
        ("2025-11-25", "resource_link", "audio"),
        ("2026-07-28", "resource_link", "audio"),
    ],
)
async def test_content_that_a_revision_lacks_is_told_in_text(revision: str, link: str, audio: str) -> None:
    server = Server("s")

    @server.prompt
    def both() -> list[Any]:
        return [LINK, Audio(b"wav", format="wav")]

    async with Pair(server, revision) as pair:
        first, second = await get(pair, "both")
        assert (first["content"]["type"], second["content"]["type"]) == (link, audio)
        if link == "text":
            assert first["content"]["text"] == "a.txt: file:///a.txt"


# Arguments -------------------------------------------------------------------------------------------


@ON_ALL
async def test_arguments_are_read_as_their_types(revision: str) -> None:
    server = Server("s")

    @server.prompt
    def typed(text: str, number: int, tags: list[str], style: Style = Style.PLAIN, flag: bool = False) -> str:
        return repr((text, number, tags, style, flag))

    async with Pair(server, revision) as pair:
        messages = await get(pair, "typed", text="5", number="5", tags='["a", "b"]', flag="true", style="")
        assert messages == [says(repr(("5", 5, ["a", "b"], Style.PLAIN, True)))]


@ON_ALL
async def test_arguments_that_do_not_fit_are_named(revision: str) -> None:
    server = Server("s")

    @server.prompt
    def typed(text: str, number: Annotated[int, Meta(ge=1)] = 1) -> str:
        return text * number

    async with Pair(server, revision) as pair:
        error = await refused(pair, "typed")
        assert error == {
            "code": -32602,
            "message": "Invalid arguments for typed:\n- text: expected a string; received nothing",
            "data": {"field": "text", "expected": "a string", "received": "nothing"},
        }
        error = await refused(pair, "typed", text="a", number="0")
        assert (error["code"], error["data"]["field"]) == (-32602, "number")
        assert error["data"]["expected"] == "a number of at least 1"
        error = await refused(pair, "typed", text="a", nubmer="5")
        assert 'unknown argument "nubmer"; did you mean "number"?' in error["message"]
        assert (await refused(pair, "typed", text=5))["code"] == -32602  # arguments are strings


@ON_ALL
async def test_an_unknown_prompt_is_named(revision: str) -> None:
    server = Server("s")
    server.add_prompt(lambda: "x", name="x")
    async with Pair(server, revision) as pair:
        error = await refused(pair, "y")
        assert error == {"code": -32602, "message": "Unknown prompt: y", "data": {"name": "y"}}


@ON_BOTH
async def test_what_a_function_raises_is_an_internal_error_with_its_message(revision: str) -> None:
    server = Server("s")

    @server.prompt
    def broken() -> str:
        raise ValueError("the moon is full")

    @server.prompt
    def refuses() -> str:
        raise Refusal(-32000, "not for you")

    @server.prompt
    def number() -> Any:
        return 5

    @server.prompt
    def nothing() -> None:
        return None

    async with Pair(server, revision) as pair:
        error = await refused(pair, "broken")
        assert (error["code"], error["message"]) == (-32603, "broken: the moon is full")
        assert await refused(pair, "refuses") == {"code": -32000, "message": "not for you"}
        assert "it returned int" in (await refused(pair, "number"))["message"]
        assert "it returned NoneType" in (await refused(pair, "nothing"))["message"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SystemExit(2), "unruly: SystemExit: 2"),
        (KeyboardInterrupt(), "unruly: KeyboardInterrupt"),
        (asyncio.CancelledError(), "unruly was cancelled from within"),
        (KeyError("a"), "unruly: KeyError: 'a'"),
    ],
)
async def test_an_unruly_function_is_owed_an_answer_too(error: BaseException, told: str) -> None:
    server = Server("s")

    @server.prompt
    async def unruly() -> str:
        await asyncio.sleep(0)
        raise error

    @server.prompt
    def half() -> str:
        return "\ud800"

    async with Pair(server) as pair:
        found = await refused(pair, "unruly")
        assert (found["code"], found["message"]) == (-32603, told)
        assert "lone surrogate" in (await refused(pair, "half"))["message"]


async def test_a_prompt_that_is_called_off_ends() -> None:
    server = Server("s")
    inside, ended = asyncio.Event(), asyncio.Event()

    @server.prompt
    async def endless() -> str:
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with Pair(server) as pair:
        id_ = pair.send("prompts/get", {"name": "endless"})
        await asyncio.wait_for(inside.wait(), 10)
        pair.tell("notifications/cancelled", {"requestId": id_})
        await asyncio.wait_for(ended.wait(), 10)
        await pair.ask("prompts/list")
        assert all(frame.get("id") != id_ for frame in pair.frames)


# Context ---------------------------------------------------------------------------------------------


@ON_BOTH
async def test_a_prompt_may_ask_before_it_answers(revision: str) -> None:
    server = Server("s")
    effects: list[str] = []

    @server.prompt
    async def greet(ctx: Context, greeting: str = "Hello") -> str:
        await ctx.step("once", lambda: effects.append("done"))
        first = await ctx.elicit("Your name?", str)
        last = await ctx.elicit("And the other one?", str)
        return f"{greeting} {first.data} {last.data}"

    names = iter(["Ada", "Lovelace"])
    async with Asked(server, revision, lambda *_: accept(value=next(names))("", {})) as client:
        answer = await client.go("prompts/get", {"name": "greet", "arguments": {"greeting": "Hi"}})
        assert answer["result"]["messages"] == [says("Hi Ada Lovelace")]
    assert effects == ["done"]


@ON_BOTH
async def test_a_prompt_may_ask_in_the_raw_form(revision: str) -> None:
    server = Server("s")

    @server.prompt
    async def greet(ctx: Context) -> str | InputRequiredResult:
        answer = ctx.input_responses.get("name")
        if answer is None:
            schema = {"type": "object", "properties": {"value": {"type": "string"}}}
            question = ElicitRequest(params=ElicitFormParams(message="?", requested_schema=schema))
            return InputRequiredResult(input_requests={"name": question})
        return f"Hello {answer['content']['value']}"

    async with Asked(server, revision, accept(value="Ada")) as client:
        answer = await client.go("prompts/get", {"name": "greet"})
        assert answer["result"]["messages"] == [says("Hello Ada")]


@ON_BOTH
async def test_a_prompt_reads_resources_and_puts_them_into_messages(revision: str) -> None:
    server = Server("s")
    server.add_resource("test://x", "inside")

    @server.prompt
    async def review(ctx: Context, uri: str) -> list[Any]:
        return ["Look at this:", *await ctx.read_resource(uri)]

    async with Pair(server, revision) as pair:
        _, message = await get(pair, "review", uri="test://x")
        assert message["content"] == {
            "type": "resource",
            "resource": {"uri": "test://x", "mimeType": "text/plain", "text": "inside"},
        }
        error = await refused(pair, "review", uri="test://y")
        assert (error["code"], error["message"]) == (-32603, "review: Resource not found: test://y")


async def test_a_prompt_may_report_progress_and_has_dependencies() -> None:
    server = Server("s")

    def clerk() -> str:
        return "Ada"

    @server.prompt
    async def slow(ctx: Context, name: Annotated[str, Depends(clerk)]) -> str:
        await ctx.report_progress(1, 2)
        return f"{name} at {ctx.revision}"

    async with Pair(server) as pair:
        answer = await pair.ask("prompts/get", {"name": "slow"}, progressToken=0)
        assert answer["result"]["messages"] == [says("Ada at 2026-07-28")]
        assert pair.frames[0]["method"] == "notifications/progress"
        assert pair.frames[0]["params"]["progressToken"] == 0
        assert "arguments" not in (await pair.ask("prompts/list"))["result"]["prompts"][0]


# What cannot be --------------------------------------------------------------------------------------


def _keywords(**values: str) -> str:
    return "x"


def _star(*values: str) -> str:
    return "x"


@pytest.mark.parametrize(
    ("function", "options", "told"),
    [
        (lambda: "x", {}, "needs a name"),
        (lambda: "x", {"name": "taken"}, "already"),
        (_keywords, {}, "keywords"),
        (_star, {}, "takes \\*values"),
        ("not a function", {}, "made of a function"),
        (lambda a: a, {"name": "x", "complete": {"b": ["c"]}}, "no argument b"),
    ],
)
def test_what_cannot_be_is_told_when_it_is_added(function: Any, options: Any, told: str) -> None:
    server = Server("s")
    server.add_prompt(lambda: "x", name="taken")
    with pytest.raises(UsageError, match=told):
        server.add_prompt(function, **options)


def test_what_is_not_there_cannot_be_removed() -> None:
    with pytest.raises(UsageError, match="no prompt 'x' to remove"):
        Server("s").remove_prompt("x")
