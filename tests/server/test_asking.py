"""Asking the client in the middle of a call: one handler, on revisions that ask inline and on the others."""

from __future__ import annotations

import asyncio
import enum
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from dragoman import Context, InputRequiredResult, Server, UsageError
from dragoman.model import ElicitFormParams, ElicitRequest
from dragoman.protocol.sealing import BrokenSeal, Keys
from dragoman.schema.forms import Form
from tests.drivers.stdio import META, NS
from tests.server.pair import Pair, text

SECRET = "a secret of at least sixteen bytes"
EVERYTHING = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}

Answer = Callable[[str, dict[str, Any]], Any]


class Asked(Pair):
    """A client that answers questions, in whichever way its revision has them put."""

    def __init__(self, server: Server, revision: str, answer: Answer, capabilities: Any = None) -> None:
        super().__init__(server, revision)
        self._answer = answer
        self.capabilities = EVERYTHING if capabilities is None else capabilities
        self.rounds = 0
        self.states: list[str] = []
        self.questions: list[tuple[str, dict[str, Any]]] = []

    async def __aenter__(self) -> Asked:
        if self.revision != "2026-07-28":
            params = {
                "protocolVersion": self.revision,
                "capabilities": self.capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            }
            await self.ask("initialize", params)
        return self

    def _take(self, frame: bytes) -> None:
        super()._take(frame)
        message = self.frames[-1]
        if "method" in message and "id" in message:
            self.questions.append((message["method"], message.get("params", {})))
            reply = self._answer(message["method"], message.get("params", {}))
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": reply}
            asyncio.get_running_loop().call_soon(self.connection.receive, json.dumps(answer).encode())

    async def go(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The final answer, after as many rounds as it takes."""
        meta = {NS + "clientCapabilities": self.capabilities} if self.revision == "2026-07-28" else {}
        sent = dict(params)
        while True:
            answer = await self.ask(method, sent, **meta)
            self.rounds += 1
            result = answer.get("result", {})
            if result.get("resultType") != "input_required":
                return answer
            responses = {}
            for key, request in result["inputRequests"].items():
                self.questions.append((request["method"], request.get("params", {})))
                responses[key] = self._answer(request["method"], request.get("params", {}))
            sent = {**params, "inputResponses": responses}
            if "requestState" in result:
                sent["requestState"] = result["requestState"]
                self.states.append(result["requestState"])

    async def run(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The final result of a tool."""
        answer = await self.go("tools/call", {"name": name, "arguments": arguments})
        assert "result" in answer, answer
        return answer["result"]


def accept(**content: Any) -> Answer:
    def answer(method: str, params: dict[str, Any]) -> Any:
        if method == "roots/list":
            return {"roots": [{"uri": "file:///work"}]}
        if method == "sampling/createMessage":
            return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
        return {"action": "accept", "content": content}

    return answer


INLINE_AND_NOT = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Person:
    name: str
    age: int = 30
    colour: Colour = Colour.RED
    level: Literal["low", "high"] = "low"


@INLINE_AND_NOT
async def test_a_form_is_asked_for_and_comes_back_as_its_class(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def greet(ctx: Context) -> str:
        person = await ctx.elicit("Who are you?", Person)
        assert person
        return repr(person.data)

    async with Asked(server, revision, accept(name="Ada", colour="blue")) as client:
        assert text(await client.run("greet")) == repr(Person("Ada", 30, Colour.BLUE, "low"))
        ((method, params),) = client.questions
        assert method == "elicitation/create"
        assert params["requestedSchema"] == {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer", "default": 30},
                "colour": {"title": "Colour", "type": "string", "enum": ["red", "blue"], "default": "red"},
                "level": {"type": "string", "enum": ["low", "high"], "default": "low"},
            },
            "required": ["name"],
        }


@INLINE_AND_NOT
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_say_no(revision: str, action: str) -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Sure?", bool)
        return f"{answer.action} {answer.data} {bool(answer)}"

    async with Asked(server, revision, lambda *_: {"action": action}) as client:
        assert text(await client.run("ask")) == f"{action} None False"


@INLINE_AND_NOT
async def test_a_model_and_roots_are_asked_too(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        model = await ctx.sample("The capital of France?", max_tokens=10)
        roots = await ctx.list_roots()
        return f"{model.content.text} {roots[0].uri}"

    async with Asked(server, revision, accept()) as client:
        assert text(await client.run("ask")) == "Paris file:///work"
        assert client.rounds == (1 if revision == "2025-11-25" else 3)


@INLINE_AND_NOT
async def test_several_questions_at_once(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        name, model, roots = await ctx.gather(
            ctx.elicit("Name?", str, key="name"), ctx.sample("Capital?"), ctx.list_roots()
        )
        return f"{name.data} {model.content.text} {roots[0].uri}"

    async with Asked(server, revision, accept(value="Ada")) as client:
        assert text(await client.run("ask")) == "Ada Paris file:///work"
        assert client.rounds == (1 if revision == "2025-11-25" else 2)
        assert len(client.questions) == 3


@INLINE_AND_NOT
async def test_a_step_is_done_once_over_five_rounds(revision: str) -> None:
    server = Server("s")
    effects: list[str] = []

    @server.tool
    async def work(ctx: Context) -> str:
        for number in range(5):
            await ctx.step(f"charge-{number}", effects.append, f"charge {number}")
            answer = await ctx.elicit(f"Question {number}?", str)
            await ctx.step(f"note-{number}", effects.append, f"note {number} {answer.data}")
        return str(await ctx.step("total", lambda: len(effects)))

    async with Asked(server, revision, accept(value="x")) as client:
        assert (await client.run("work"))["content"][0]["text"] == "10"
        assert client.rounds == (1 if revision == "2025-11-25" else 6)
        assert len(set(client.states)) == len(client.states)
    expected = [entry for n in range(5) for entry in (f"charge {n}", f"note {n} x")]
    assert effects == expected


@INLINE_AND_NOT
async def test_a_wrong_answer_is_asked_for_again(revision: str) -> None:
    server = Server("s")
    answers = iter([{"value": 12345}, {"value": "Ada"}])

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Name?", str)).data or ""

    async with Asked(server, revision, lambda *_: {"action": "accept", "content": next(answers)}) as client:
        assert text(await client.run("ask")) == "Ada"
        assert len(client.questions) == 2


@INLINE_AND_NOT
async def test_a_page_to_open(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def login(ctx: Context) -> str:
        return (await ctx.elicit_url("Log in", "https://example.com/login")).action

    async with Asked(server, revision, lambda *_: {"action": "accept"}) as client:
        assert text(await client.run("login")) == "accept"
        ((_, params),) = client.questions
        assert (params["mode"], params["url"]) == ("url", "https://example.com/login")
        assert ("elicitationId" in params) == (revision == "2025-11-25")


@INLINE_AND_NOT
async def test_the_raw_form_works_on_every_revision(revision: str) -> None:
    server = Server("s")

    @server.tool
    def ask(ctx: Context) -> str | InputRequiredResult:
        if "name" not in ctx.input_responses:
            form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            request = ElicitRequest(params=ElicitFormParams(message="Name?", requested_schema=form))
            return InputRequiredResult(input_requests={"name": request}, request_state="mine")
        return f"{ctx.input_responses['name']['content']['name']} {ctx.request_state}"

    async with Asked(server, revision, accept(name="Ada")) as client:
        assert text(await client.run("ask")) == "Ada mine"


# Capabilities ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "missing"),
    [
        ({}, {"elicitation": {"form": {}}}),
        ({"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ],
)
async def test_a_client_that_cannot_be_asked_is_told_what_it_lacks(capabilities: Any, missing: Any) -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("?", str))

    async with Asked(server, "2026-07-28", accept(), capabilities) as client:
        error = (await client.go("tools/call", {"name": "ask"}))["error"]
        assert error["code"] == -32021
        assert error["data"] == {"requiredCapabilities": missing}
    async with Asked(server, "2025-11-25", accept(), capabilities) as client:
        result = await client.run("ask")
        assert result["isError"] is True
        assert "elicitation" in text(result)
        assert client.questions == []


async def test_a_revision_without_forms_says_so() -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("?", str))

    async with Asked(server, "2025-03-26", accept()) as client:
        result = await client.run("ask")
        assert result["isError"] is True
        assert "2025-03-26" in text(result)


# State -------------------------------------------------------------------------------------------


def asking_server(secret: str | None = SECRET, **options: Any) -> Server:
    server = Server("s", **({} if secret is None else {"secret": secret}), **options)

    async def ask(ctx: Context, order: str = "A") -> str:
        return f"{order} {(await ctx.elicit('Name?', str, key='name')).data}"

    server.add_tool(ask)
    server.add_tool(ask, name="other")
    return server


async def first_round(pair: Pair, **arguments: Any) -> str:
    meta = {NS + "clientCapabilities": EVERYTHING}
    answer = await pair.ask("tools/call", {"name": "ask", "arguments": arguments}, **meta)
    assert answer["result"]["resultType"] == "input_required"
    return answer["result"]["requestState"]


async def second_round(
    pair: Pair, state: Any, name: str = "ask", responses: Any = None, **arguments: Any
) -> Any:
    given = {"name": {"action": "accept", "content": {"value": "Ada"}}} if responses is None else responses
    params = {"name": name, "arguments": arguments, "inputResponses": given}
    if state is not None:
        params["requestState"] = state
    return await pair.ask("tools/call", params, **{NS + "clientCapabilities": EVERYTHING})


async def test_a_state_is_good_in_every_process_that_has_the_secret() -> None:
    async with (
        Pair(asking_server()) as one,
        Pair(asking_server()) as two,
        Pair(asking_server(None)) as foreign,
    ):
        state = await first_round(one)
        assert text((await second_round(two, state))["result"]) == "A Ada"
        assert (await second_round(foreign, state))["error"]["code"] == -32602


async def test_a_state_is_good_for_its_own_call_only() -> None:
    async with Pair(asking_server()) as pair:
        state = await first_round(pair, order="B")
        for bad in (
            await second_round(pair, state + "-TAMPERED", order="B"),
            await second_round(pair, "x" + state[1:], order="B"),
            await second_round(pair, state[:-4], order="B"),
            await second_round(pair, "", order="B"),
            await second_round(pair, state, name="other", order="B"),
            await second_round(pair, state, order="C"),
            await second_round(pair, state),
        ):
            assert bad["error"]["code"] == -32602
        assert text((await second_round(pair, state, order="B"))["result"]) == "B Ada"


async def test_a_state_has_an_end() -> None:
    async with Pair(asking_server(state_lifetime=-1.0)) as pair:
        state = await first_round(pair)
        error = (await second_round(pair, state))["error"]
        assert error["code"] == -32602
        assert "past its time" in error["message"]


async def test_answers_count_without_a_state_and_unknown_ones_are_passed_over() -> None:
    good = {"name": {"action": "accept", "content": {"value": "Ada"}}, "more": 1}
    async with Pair(asking_server()) as pair:
        assert text((await second_round(pair, None, responses=good))["result"]) == "A Ada"
        again = await second_round(pair, None, responses={"wrong": {"action": "accept"}})
        assert again["result"]["resultType"] == "input_required"
        again = await second_round(pair, None, responses={"name": 12345})
        assert again["result"]["resultType"] == "input_required"
        assert (await pair.ask("tools/call", {"name": "ask", "inputResponses": None}))["error"][
            "code"
        ] == -32602


async def test_an_earlier_answer_cannot_be_changed_later() -> None:
    server = Server("s")

    @server.tool
    async def two(ctx: Context) -> str:
        first = await ctx.elicit("1?", str, key="first")
        second = await ctx.elicit("2?", str, key="second")
        return f"{first.data} {second.data}"

    def said(value: str) -> Any:
        return {"action": "accept", "content": {"value": value}}

    meta = {NS + "clientCapabilities": EVERYTHING}
    async with Pair(server) as pair:
        state = (await pair.ask("tools/call", {"name": "two"}, **meta))["result"]["requestState"]
        params = {"name": "two", "inputResponses": {"first": said("a")}, "requestState": state}
        state = (await pair.ask("tools/call", params, **meta))["result"]["requestState"]
        late = {"first": said("CHANGED"), "second": said("b")}
        params = {"name": "two", "inputResponses": late, "requestState": state}
        assert text((await pair.ask("tools/call", params, **meta))["result"]) == "a b"


def test_secrets_and_seals() -> None:
    with pytest.raises(UsageError):
        Keys()
    with pytest.raises(UsageError):
        Keys("short")
    old, new = Keys(SECRET), Keys("another secret, also long enough", SECRET)
    sealed = old.seal(b"x", purpose="p", bound=b"b")
    assert new.open(sealed, purpose="p", bound=b"b") == b"x"
    for keys, purpose, bound in ((new, "q", b"b"), (new, "p", b"c"), (Keys.random(), "p", b"b")):
        with pytest.raises(BrokenSeal):
            keys.open(sealed, purpose=purpose, bound=bound)
    with pytest.raises(BrokenSeal):
        old.open(new.seal(b"x", purpose="p"), purpose="p")
    assert SECRET not in repr(old)
    assert new.signed(b"m", old.sign(b"m", purpose="c"), purpose="c")
    assert not new.signed(b"n", old.sign(b"m", purpose="c"), purpose="c")


@pytest.mark.parametrize(
    "form", [dict[str, int], list[Person], {"type": "string"}, {"type": "object"}, complex]
)
def test_a_form_is_flat(form: Any) -> None:
    with pytest.raises(UsageError):
        Form(form)


def test_the_questions_are_2026_07_28_s_by_default() -> None:
    assert META[NS + "protocolVersion"] == "2026-07-28"
