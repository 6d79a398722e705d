"""What a person's yes is for: this call as it was shown, of this tool, of this server, under these rules."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import LocalError
from dragoman.host import Supervisor, Trace
from tests.host.places import Place, use

WORDS = """
import sys
from pathlib import Path
from dragoman import Server

server = Server("service", version="1")

@server.tool(description=Path(sys.argv[1]).read_text())
def change(amount: int = 0) -> str:
    return f"changed by {amount}"

server.run()
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    own(place)
    return place


def own(place: Place, **more: Any) -> None:
    place.write("home/.claude.json", {"mcpServers": {"service": {**place.entry, **more}}})


class Person:
    """Says what they are told to, after what happens meanwhile."""

    def __init__(self, said: Any = True) -> None:
        self.said = said
        self.asked = []
        self.meanwhile = None

    async def __call__(self, question):
        self.asked.append(question)
        if self.meanwhile is not None:
            await self.meanwhile(question)
        return self.said


async def test_what_was_shown_is_what_is_sent_whoever_changes_it_meanwhile(place):
    person, lines = Person(), []
    block = use("look", what="shown")

    async def change(question):
        assert question.arguments == {"what": "shown"}
        question.arguments["what"] = "slipped in by the question"
        block["input"]["what"] = "slipped in by the caller"

    person.meanwhile = change
    trace = Trace(lambda line: lines.append(json.loads(line)))
    async with place.host("claude-code", ask=person, trace=trace) as found:
        outcome = await found.answer(block)
    assert outcome.result.text == "shown"
    assert lines[0]["block"]["input"] == lines[1]["request"]["params"]["arguments"] == {"what": "shown"}


@pytest.mark.parametrize("what", [{1: 2}, [{None: 1}]])
async def test_a_name_that_is_no_text_is_refused_as_wrong_arguments_are(place, what):
    async with place.host("claude-code", ask=Person(), trace=Trace(lambda line: None)) as found:
        outcome = await found.answer(use("look", what=what))
    assert (outcome.by, outcome.is_error) == ("schema", True)
    assert "a name that is no text" in outcome.text


async def test_arguments_without_an_end_are_refused_as_wrong_arguments_are(place):
    around: dict[str, Any] = {}
    around["around"] = around
    async with place.host("claude-code", ask=Person(), trace=Trace(lambda line: None)) as found:
        outcome = await found.answer(use("look", what=around))
        assert (outcome.by, outcome.is_error) == ("schema", True)
        assert "nested too deeply" in outcome.text
        unknown = await found.answer(use("x" * 100_000))
        assert len(unknown.text) < 2000


async def test_a_question_that_fails_is_no_yes(place, caplog):
    caplog.set_level(logging.CRITICAL, "dragoman")

    def ask(question):
        raise RuntimeError("no terminal")

    async with place.host("claude-code", ask=ask) as found:
        block = await found.call(use("look"))
        assert block["is_error"]
        assert "the question failed" in block["content"]
        assert "no terminal" not in block["content"]


async def test_a_call_that_is_given_up_at_the_question_is_on_record(place):
    lines, waits = [], asyncio.Event()

    async def ask(question):
        waits.set()
        await asyncio.Event().wait()

    trace = Trace(lambda line: lines.append(json.loads(line)))
    async with place.host("claude-code", ask=ask, trace=trace) as found:
        task = asyncio.create_task(found.answer(use("look")))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (line,) = lines
    assert (line["kind"], line["decision"]["effect"]) == ("tool_use", "deny")
    assert "given up before there was an answer" in line["decision"]["why"]


async def test_a_call_that_is_given_up_at_the_question_ends_though_it_cannot_be_written_down(place):
    waits = asyncio.Event()

    async def ask(question):
        waits.set()
        await asyncio.Event().wait()

    def full(line):
        raise LocalError("no space", stage="trace")

    async with place.host("claude-code", ask=ask, trace=Trace(full)) as found:
        task = asyncio.create_task(found.answer(use("look")))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_rule_that_comes_while_a_person_thinks_holds(place):
    person = Person()
    async with place.host("claude-code", ask=person) as found:

        async def forbid(question):
            place.write("home/.claude/settings.json", {"permissions": {"deny": ["mcp__service__change"]}})
            await found.reload()

        person.meanwhile = forbid
        outcome = await found.answer(use("change"))
    assert (outcome.by, outcome.decision.effect) == ("permission", "deny")
    assert "mcp__service__change in permissions.deny" in outcome.text


@pytest.mark.parametrize("said", [True, "session"])
async def test_a_yes_is_to_the_server_that_was_there_and_not_to_the_next_one_of_its_name(place, said):
    person = Person(said)
    async with place.host("claude-code", ask=person) as found:

        async def swap(question):
            person.meanwhile = None
            own(place, env={"OF": "another"})
            await found.reload()

        person.meanwhile = swap
        outcome = await found.answer(use("environment"))
        assert (outcome.by, outcome.is_error) == ("host", True)
        assert "has changed while the call waited" in outcome.text
        assert found.grants == ()


async def test_a_yes_for_the_session_ends_with_the_entry_that_it_was_said_of(place):
    person = Person("session")
    async with place.host("claude-code", ask=person) as found:
        for _ in range(2):
            assert not (await found.answer(use("change"))).is_error
        assert len(person.asked) == 1
        # Elsewhere in the file, and yet the same server.
        place.write("home/.claude.json", {"x": 1, "mcpServers": {"service": place.entry}})
        await found.reload()
        assert not (await found.answer(use("change"))).is_error
        assert len(person.asked) == 1
        own(place, env={"OF": "another"})
        await found.reload()
        person.said = False
        assert (await found.answer(use("change"))).is_error
        assert [question.config.env for question in person.asked] == [{}, {"OF": "another"}]


async def test_a_yes_for_the_session_ends_with_the_tool_that_it_was_said_of(place):
    words = place.write("words", "Changes a little.")
    place.write("server.py", WORDS)
    own(place, args=[str(place.server), str(words)])
    person = Person("session")
    async with Supervisor(idle_stop=0.05) as supervisor:
        async with place.host("claude-code", ask=person, supervisor=supervisor) as found:
            assert not (await found.answer(use("change"))).is_error
            running = found.sessions["service"].running
            words.write_text("Changes everything.")
            async with asyncio.timeout(20):
                while running.state != "idle":  # noqa: ASYNC110  # there is no event of a server at rest
                    await asyncio.sleep(0.01)
            # It is started again by the call, which was looked at by what it listed before.
            first = await found.answer(use("change"))
            assert (first.by, first.is_error) == ("host", True)
            assert "not the tool that it was" in first.text
            person.said = False
            second = await found.answer(use("change"))
            assert second.by == "permission"
            assert [question.tool.description for question in person.asked] == [
                "Changes a little.",
                "Changes everything.",
            ]
