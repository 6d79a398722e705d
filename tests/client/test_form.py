"""The form on a terminal: what a person reads and types, and what the server gets of it."""

from __future__ import annotations

import asyncio
import os
import pty
import threading
from typing import Any

import pytest
from msgspec import UNSET

from dragoman.client import Client
from dragoman.client.dialog import Dialog
from dragoman.client.terminal import TerminalForm, decline, terminal_form
from dragoman.model import ElicitParams, ElicitResult
from tests.client.scripted import Scripted, handshake, stateless, text

RED = {"const": "#f00", "title": "Red"}
AB = {"type": "string", "enum": ["a", "b"]}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 10},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
        "ready": {"type": "boolean", "description": "Are you?"},
        "size": {"type": "string", "enum": ["s", "m", "l"], "default": "m"},
        "colour": {
            "type": "string",
            "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}],
        },
        "extras": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "maxItems": 2},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["name", "ready"],
}


def form(properties: dict[str, Any], *required: str) -> ElicitParams:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ElicitParams(message="please", requested_schema=schema)


def talk(params: ElicitParams, *lines: str | None, server: str = "shop") -> tuple[ElicitResult | None, str]:
    dialog = Dialog(params, server)
    shown = ""
    for line in lines:
        assert dialog.result is None, shown
        shown += dialog.prompt
        dialog.answer(line)
    shown += dialog.prompt
    return dialog.result, shown


def test_a_form_is_asked_field_by_field_and_shown_once_more() -> None:
    params = ElicitParams(message="Who are you?", requested_schema=FORM)
    result, shown = talk(params, "Ada", "36", "y", "", "green", "1, c", "a@b.example", "y")
    assert result == ElicitResult(
        action="accept",
        content={
            "name": "Ada",
            "age": 36,
            "ready": True,
            "size": "m",
            "colour": "#0f0",
            "extras": ["a", "c"],
            "mail": "a@b.example",
        },
    )
    assert shown.startswith("shop asks: Who are you?\n")
    for part in (
        "Your name\n  text, 2 to 10 characters> ",
        "age\n  a whole number from 0 to 150, may be left empty [30]> ",
        "ready: Are you?\n  yes or no> ",
        "  1  s\n  2  m\n  3  l\n  one of these, by number or name, may be left empty [m]> ",
        "  1  Red\n  2  Green\n",
        "  colour: Green\n  extras: a, c\n",
        "  send this? [Y/n, < to change]> ",
    ):
        assert part in shown


@pytest.mark.parametrize(
    ("schema", "line", "complaint"),
    [
        ({"type": "string", "minLength": 2}, "a", "at least 2 characters, received 1"),
        ({"type": "string", "maxLength": 2}, "abc", "at most 2 characters, received 3"),
        ({"type": "string", "format": "email"}, "nobody", "an e-mail address"),
        ({"type": "string", "format": "uri"}, "nowhere", "a URI"),
        ({"type": "string", "format": "date"}, "2026-02-30", "a date"),
        ({"type": "string", "format": "date-time"}, "2026-07-28T09:30:00", "a time with its zone"),
        ({"type": "integer"}, "1.5", "a whole number, received '1.5'"),
        ({"type": "number"}, "many", "a number, received 'many'"),
        ({"type": "number"}, "NaN", "a number, received 'NaN'"),
        ({"type": "number", "minimum": 1}, "0", "a number from 1 up, received 0"),
        ({"type": "number", "maximum": 1}, "2", "a number up to 1, received 2"),
        ({"type": "boolean"}, "perhaps", "yes or no, received 'perhaps'"),
        (AB, "3", "a number from 1 to 2 or a name, received '3'"),
        (
            {"type": "array", "items": AB, "minItems": 2},
            "a",
            "received 1",
        ),
        (
            {"type": "array", "items": AB, "maxItems": 1},
            "a,b",
            "received 2",
        ),
    ],
)
def test_what_does_not_fit_is_asked_again(schema: dict[str, Any], line: str, complaint: str) -> None:
    result, shown = talk(form({"x": schema}, "x"), line)
    assert result is None
    assert f"expected {complaint}" in shown or complaint in shown


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        ({"type": "string", "format": "date"}, "2026-07-28", "2026-07-28"),
        ({"type": "string", "format": "date-time"}, "2026-07-28T09:30:00Z", "2026-07-28T09:30:00Z"),
        ({"type": "string", "format": "uri"}, "https://example.com/", "https://example.com/"),
        ({"type": "string"}, "\\<", "<"),
        ({"type": "string"}, "\\-", "-"),
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "number"}, "-0.5", -0.5),
        ({"type": "boolean"}, "NO", False),
        ({"type": "string", "enum": ["3", "1", "2"]}, "1", "1"),  # a value before a number
        ({"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"]}, "why", "y"),
        ({"type": "array", "items": {"anyOf": [{"const": "x", "title": "Ex"}]}}, "ex,1", ["x"]),
    ],
)
def test_what_fits_is_sent_as_the_schema_has_it(schema: dict[str, Any], line: str, value: Any) -> None:
    result, _ = talk(form({"x": schema}, "x"), line, "y")
    assert result is not None
    assert result.content == {"x": value}
    assert type(result.content["x"]) is type(value)


def test_an_optional_field_may_stay_empty_and_a_default_may_be_taken_away() -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "string", "default": "d"}}
    assert talk(form(properties), "", "", "")[0] == ElicitResult(action="accept", content={"b": "d"})
    assert talk(form(properties), "-", "-", "")[0] == ElicitResult(action="accept", content={})


def test_a_required_field_may_not() -> None:
    result, shown = talk(form({"a": {"type": "string"}}, "a"), "", "-")
    assert result is None
    assert shown.count("this one is needed: text") == 2


def test_back_shows_what_was_typed_and_lets_it_stand() -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    result, shown = talk(form(properties), "<", "one", "<", "", "two", "<", "three", "")
    assert result == ElicitResult(action="accept", content={"a": "one", "b": "three"})
    assert "this is the first one" in shown
    assert "[one]> " in shown
    assert "[two]> " in shown


@pytest.mark.parametrize("lines", [["!"], ["x", "n"], ["x", "!"], ["?", "!"]])
def test_declining(lines: list[str]) -> None:
    assert talk(form({"a": {"type": "string"}}), *lines)[0] == ElicitResult(action="decline")


@pytest.mark.parametrize("lines", [[None], ["x", None]])
def test_the_end_of_input_cancels(lines: list[str | None]) -> None:
    assert talk(form({"a": {"type": "string"}}), *lines)[0] == ElicitResult(action="cancel")


def test_a_form_without_fields_asks_for_consent() -> None:
    result, shown = talk(form({}), "maybe", "yes")
    assert result == ElicitResult(action="accept", content={})
    assert "expected yes or no" in shown


def test_a_page_is_shown_in_full_and_not_opened() -> None:
    params = ElicitParams(mode="url", message="log in", url="https://id.example/in?x=1", elicitation_id="e")
    result, shown = talk(params, "y")
    assert result == ElicitResult(action="accept")
    assert result.content is UNSET
    assert "https://id.example/in?x=1" in shown
    assert talk(params, "n")[0] == ElicitResult(action="decline")


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "array"}, 7, {}])
def test_a_field_of_no_known_shape_cancels_the_form_and_is_named(schema: Any) -> None:
    result, shown = talk(form({"odd": schema}))
    assert result == ElicitResult(action="cancel")
    assert "'odd'" in shown


def test_a_servers_words_do_not_steer_the_terminal() -> None:
    params = form({"a": {"type": "string", "title": "\x1b[2Jx", "description": "\u202ereversed"}})
    _, shown = talk(params, server="\x1b]0;me\x07")
    assert "\x1b" not in shown
    assert "\u202e" not in shown


# On a terminal


async def asked(handler: Any, *forms: dict[str, Any]) -> list[Any]:
    transport = Scripted(handshake())
    async with Client(transport, name="shop", elicitation_handler=handler) as client:
        assert client.connected
        answers = [transport.ask("elicitation/create", each, number) for number, each in enumerate(forms)]
        return [answer["result"] for answer in await asyncio.gather(*answers)]


class Terminal:
    """A pseudo-terminal: what the handler shows is read, and lines are typed when it waits for one."""

    def __init__(self, *lines: str) -> None:
        self.master, self.slave = pty.openpty()
        self.shown = ""
        self.asked = asyncio.Event()
        self._lines = list(lines)
        self.handler = TerminalForm(self.slave, self._write)

    def _write(self, said: str) -> None:
        self.shown += said
        self.asked.set()
        if said.endswith("> ") and self._lines:
            os.write(self.master, self._lines.pop(0).encode())

    def close(self) -> None:
        os.close(self.master)
        os.close(self.slave)


ONE = {"message": "one?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
TWO = {"message": "two?", "requestedSchema": {"type": "object", "properties": {"b": {"type": "string"}}}}


async def test_on_a_terminal_lines_are_read_and_questions_wait_for_each_other() -> None:
    terminal = Terminal("first\n", "y\n", "zweites ü\n", "y\n")
    try:
        first, second = await asyncio.wait_for(asked(terminal.handler, ONE, TWO), 10)
    finally:
        terminal.close()
    assert first == {"action": "accept", "content": {"a": "first"}}
    assert second == {"action": "accept", "content": {"b": "zweites ü"}}
    assert terminal.shown.index("send this?") < terminal.shown.index("shop asks: two?")


async def test_on_a_terminal_ctrl_d_cancels() -> None:
    terminal = Terminal("\x04")
    try:
        assert await asyncio.wait_for(asked(terminal.handler, ONE), 10) == [{"action": "cancel"}]
    finally:
        terminal.close()


async def test_a_form_that_is_given_up_leaves_the_next_line_to_the_next() -> None:
    terminal = Terminal()
    params = ElicitParams(message="one?", requested_schema=ONE["requestedSchema"])
    try:
        first = asyncio.create_task(terminal.handler(params))
        await asyncio.wait_for(terminal.asked.wait(), 10)
        first.cancel()
        await asyncio.wait({first})
        os.write(terminal.master, b"typed\n")
        terminal._lines = ["\n"]  # the second question; the line above answers the first
        second = asyncio.create_task(terminal.handler(params))
        os.write(terminal.master, b"y\n")
        result = await asyncio.wait_for(second, 10)
    finally:
        terminal.close()
    assert result.content == {"a": "typed"}


async def test_in_a_pipe_it_declines() -> None:
    read, write = os.pipe()
    shown: list[str] = []
    try:
        assert await asked(TerminalForm(read, shown.append), ONE) == [{"action": "decline"}]
    finally:
        os.close(read)
        os.close(write)
    assert shown == []
    assert await asked(terminal_form, ONE) == [{"action": "decline"}]  # as stdin of a test is none either


async def test_the_one_that_declines() -> None:
    assert await asked(decline, ONE) == [{"action": "decline"}]
    heard: list[Any] = []

    async def calls(transport: Any, call: Any) -> Any:
        if "inputResponses" in call.params:
            heard.append(call.params["inputResponses"])
            return text()
        return {
            "resultType": "input_required",
            "inputRequests": {"q": {"method": "elicitation/create", "params": ONE}},
        }

    async with Client(Scripted(stateless(calls)), elicitation_handler=decline) as client:
        await client.call_tool("t")
    assert heard == [{"q": {"action": "decline"}}]


def test_it_works_in_several_loops_at_the_same_time() -> None:
    results: list[ElicitResult] = []

    def run() -> None:
        results.append(asyncio.run(terminal_form(ElicitParams(message="?", requested_schema={}))))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert results == [ElicitResult(action="decline")] * 4
