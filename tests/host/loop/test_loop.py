"""The loop over a real host and a scripted model: order, calls side by side, budgets, stop and going on."""

from __future__ import annotations

import asyncio
import json

import pytest

from dragoman.errors import UsageError
from dragoman.host import Host, Limits, Prices, RunState, Says, ScriptedModel, Trace
from dragoman.host.loop.events import CallEnded, CallStarted, Ended, Message
from dragoman.host.loop.state import saver
from dragoman.host.models.base import TextDelta, ToolUse
from tests.host.loop.servers import ALLOWED, calls, name, shop

APPLE = (name("price"), {"item": "apple"})
PEAR = (name("price"), {"item": "pear"})
BUY = (name("buy"), {"item": "apple", "count": 2})


def told(result) -> list[tuple[str, bool]]:
    """What the model was told of its calls, in the order of the history."""
    blocks = [
        block
        for item in result.state.history
        if item["role"] == "user" and isinstance(item["content"], list)
        for block in item["content"]
    ]
    return [(text(block), bool(block.get("is_error", False))) for block in blocks]


def text(block) -> str:
    content = block["content"]
    return content if isinstance(content, str) else "".join(piece["text"] for piece in content)


# --- one run --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"model": None}, "model: expected a Model, or a text such as 'anthropic:NAME'; received NoneType"),
        ({"model": "claude-opus-4-5"}, r"received 'claude-opus-4-5'\n  try: anthropic:claude-opus-4-5"),
        ({"model": "gpt-5.4"}, r"try: openai:gpt-5.4"),
        (
            {"model": ScriptedModel(["a"]), "limit": 3},
            r"Host.run\(\) has no option 'limit': did you mean 'limits'",
        ),
    ],
)
def test_words_of_a_run_that_cannot_be(words, told):
    host = Host.from_files(user=False)
    with pytest.raises(UsageError, match=told):
        host.run("hi", **words)


async def test_a_model_without_calls_has_its_say(tmp_path):
    async with shop(tmp_path) as host:
        result = await host.run("hello", model=ScriptedModel(["Good day."]))
    assert (result.text, result.stop, result.why, result.done) == ("Good day.", "end", "", True)
    assert (result.rounds, result.outcomes, result.cost) == (1, (), None)
    assert [item["role"] for item in result.state.history] == ["user", "assistant"]


async def test_calls_are_answered_until_the_model_is_done(tmp_path):
    script = [Says("Let me see.", [APPLE]), Says("", [BUY]), "Bought."]
    async with shop(tmp_path) as host:
        result = await host.run("two apples, please", model=ScriptedModel(script))
    assert result.text == "Bought."
    assert calls(tmp_path) == ["price apple", "buy apple 2"]
    assert told(result) == [("3", False), ("bought 2 apple", False)]
    assert [outcome.by for outcome in result.outcomes] == ["server", "server"]


async def test_events_come_in_their_order_and_text_in_pieces(tmp_path):
    model = ScriptedModel([Says("One moment, I look it up for you.", [APPLE]), "3"])
    async with shop(tmp_path) as host:
        events = [event async for event in host.run("how much?", model=model)]
    kinds = [type(event).__name__ for event in events if not isinstance(event, TextDelta)]
    assert kinds == [
        *("Asking", "UseStarted", "Message", "CallStarted", "CallEnded"),
        *("Asking", "Message", "Ended"),
    ]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 2
    assert "".join(pieces) == "One moment, I look it up for you.3"
    first = next(event for event in events if isinstance(event, Message))
    assert first.uses == (ToolUse("call_1_1", *APPLE),)
    ended = next(event for event in events if isinstance(event, CallEnded))
    assert ended.outcome.result.text == "3"
    assert ended.seconds > 0
    assert isinstance(events[-1], Ended)


async def test_calls_of_one_message_run_side_by_side_and_are_answered_in_its_order(tmp_path):
    # Each ends only when the other one is there: one after the other would never end.
    meets = [(name("meet"), {"me": "a", "other": "b"}), (name("meet"), {"me": "b", "other": "a"})]
    async with shop(tmp_path) as host:
        result = await host.run("meet", model=ScriptedModel([Says("", [*meets, APPLE]), "done"]))
    assert told(result) == [("a met b", False), ("b met a", False), ("3", False)]
    answers = result.state.history[2]["content"]
    assert [block["tool_use_id"] for block in answers] == ["call_1_1", "call_1_2", "call_1_3"]
    assert len([item for item in result.state.history if item["role"] == "user"]) == 2


async def test_what_is_refused_or_fails_is_told_and_the_model_goes_on(tmp_path):
    uses = [
        (name("price"), {"item": 5}),
        (name("nothing"), {}),
        (name("broken"), {}),
        BUY,
        APPLE,
    ]
    permissions = {**ALLOWED, "deny": [name("buy")]}
    async with shop(tmp_path, permissions) as host:
        result = await host.run("all of it", model=ScriptedModel([Says("", uses), "oh"]))
    assert [is_error for _, is_error in told(result)] == [True, True, True, True, False]
    texts = [text for text, _ in told(result)]
    assert "item: expected a string" in texts[0]
    assert texts[1].startswith("Unknown tool 'mcp__shop__nothing'")
    assert "the till is closed" in texts[2]
    assert texts[3].startswith("Not permitted")
    assert calls(tmp_path) == ["price apple"]
    assert result.done


async def test_a_person_is_asked_with_the_arguments(tmp_path):
    asked = []

    def ask(question):
        asked.append((question.name.tool, dict(question.arguments)))
        return question.arguments["count"] < 5

    model = ScriptedModel([Says("", [BUY]), Says("", [(name("buy"), {"item": "pear", "count": 9})]), "ok"])
    async with shop(tmp_path, {"ask": [name("buy")]}, ask=ask) as host:
        result = await host.run("buy", model=model)
    assert asked == [("buy", {"item": "apple", "count": 2}), ("buy", {"item": "pear", "count": 9})]
    assert calls(tmp_path) == ["buy apple 2"]
    assert [is_error for _, is_error in told(result)] == [False, True]


async def test_every_call_is_in_the_trace(tmp_path):
    lines = []
    model = ScriptedModel([Says("", [APPLE, PEAR]), "done"])
    async with shop(tmp_path, trace=Trace(lambda line: lines.append(json.loads(line)))) as host:
        await host.run("prices", model=model)
    by_call = {}
    for line in lines:
        if "call" in line:
            by_call.setdefault(line["call"], []).append(line["kind"])
    assert list(by_call.values()) == [["tool_use", "tools/call", "result"]] * 2
    turns = [line for line in lines if line["kind"] == "turn"]
    assert [(turn["model"], turn["stop"], turn["calls"]) for turn in turns] == [
        ("scripted", "tools", 2),
        ("scripted", "end", 0),
    ]
    assert {line["turn"] for line in lines if line["kind"] == "tool_use"} == {turns[0]["turn"]}


async def test_a_model_that_is_a_function_sees_what_came_of_its_calls(tmp_path):
    def model(view):
        if not view.results:
            return Says(f"turn {view.turn} for {view.prompt!r}", [APPLE, (name("broken"), {})])
        price, failed = view.results
        return f"{price.text} {price.is_error} {failed.is_error} {name('buy') in view.tools}"

    async with shop(tmp_path) as host:
        result = await host.run("go", model=ScriptedModel(model))
    assert result.text == "3 False True True"


@pytest.mark.parametrize(
    ("options", "system"),
    [
        ({}, "Be brief.\n\nThe server 'shop' says of its tools:\nAsk for the price first."),
        ({"instructions": False}, "Be brief."),
    ],
)
async def test_what_servers_say_of_themselves_goes_with_the_instructions(tmp_path, options, system):
    model = Listening(["ok"])
    async with shop(tmp_path) as host:
        result = await host.run("go", model=model, system="Be brief.", **options)
    assert model.systems == [system]
    assert result.state.system == "Be brief."  # what servers say is asked anew when the run goes on


class Listening(ScriptedModel):
    """Keeps the instructions that it was given."""

    def __init__(self, script):
        super().__init__(script)
        self.systems = []

    async def answer(self, request, hear):
        self.systems.append(request.system)
        return await super().answer(request, hear)


# --- budgets --------------------------------------------------------------------------------------------


async def test_a_run_ends_at_its_limit_of_rounds_with_the_calls_not_made(tmp_path):
    forever = ScriptedModel(lambda view: Says("again", [BUY]))
    async with shop(tmp_path) as host:
        result = await host.run("go", model=forever, limits=Limits(rounds=3))
    assert (result.stop, result.rounds, result.done) == ("rounds", 3, False)
    assert "3 requests" in result.why
    # The third message's call could not be told of any more: it was not made.
    assert calls(tmp_path) == ["buy apple 2"] * 2
    assert [call.state for call in result.state.calls] == ["waiting"]


async def test_a_run_ends_at_its_limit_of_tokens(tmp_path):
    forever = ScriptedModel(lambda view: Says("x" * 400, [APPLE]))
    async with shop(tmp_path) as host:
        result = await host.run("go", model=forever, limits=Limits(tokens=500))
    assert result.stop == "tokens"
    assert result.usage.input + result.usage.output >= 500
    assert result.rounds < 10


async def test_a_run_ends_at_its_limit_of_money(tmp_path):
    forever = ScriptedModel(lambda view: Says("x" * 400, [APPLE]), prices=Prices(input=0, output=1000))
    async with shop(tmp_path) as host:
        result = await host.run("go", model=forever, limits=Limits(cost=0.2))
    assert result.stop == "cost"
    # 1000 for a million tokens: 0.001 each.
    assert result.cost == pytest.approx(result.usage.output / 1000)
    assert result.cost >= 0.2
    assert result.state.cost == pytest.approx(result.cost)


def test_cached_tokens_have_a_price_of_their_own():
    from dragoman.host.models.base import Usage

    usage = Usage(input=1_000_000, output=100_000, cached=400_000)
    assert Prices(input=3, output=15, cached=0.3).cost(usage) == pytest.approx(0.6 * 3 + 0.4 * 0.3 + 1.5)
    assert Prices(input=3, output=15).cost(usage) == pytest.approx(3 + 1.5)


@pytest.mark.parametrize("limits", [{"rounds": 0}, {"tokens": -1}, {"cost": 0}])
def test_a_limit_is_above_zero(limits):
    with pytest.raises(UsageError, match=f"{next(iter(limits))}: expected a limit above 0"):
        Limits(**limits)


async def test_a_limit_of_money_needs_prices(tmp_path):
    async with shop(tmp_path) as host:
        with pytest.raises(UsageError, match="needs the model's prices"):
            host.run("go", model=ScriptedModel([]), limits=Limits(cost=1))


# --- stopping and going on ------------------------------------------------------------------------------


async def until(events, kind):
    async for event in events:
        if isinstance(event, kind):
            return event
    raise AssertionError(kind)


async def called(folder, what) -> None:
    """Wait until the server has been asked for it."""
    while what not in calls(folder):  # noqa: ASYNC110 - another process writes the file
        await asyncio.sleep(0.01)


async def test_stop_ends_a_call_that_hangs_and_says_so(tmp_path):
    async with shop(tmp_path) as host:
        run = host.run("go", model=ScriptedModel([Says("", [APPLE, (name("hang"), {})]), "done"]))
        events = aiter(run)
        await until(events, CallEnded)
        await called(tmp_path, "hang")
        run.stop()
        result = (await until(events, Ended)).result
    assert (result.stop, result.why) == ("stopped", "it was stopped")
    assert [call.state for call in result.state.calls] == ["answered", "sent"]


async def test_a_run_that_goes_on_repeats_no_call_that_had_its_result(tmp_path):
    uses = [BUY, (name("hang"), {}), (name("hang_reading"), {})]
    async with shop(tmp_path) as host:
        run = host.run("go", model=ScriptedModel([Says("", uses), "done"]))
        events = aiter(run)
        await until(events, CallEnded)
        await called(tmp_path, "hang")
        await called(tmp_path, "hang_reading")
        run.stop()
        await until(events, Ended)
    state = RunState.read(run.state.dump())  # as from a file, in another process
    assert {call.name: call.state for call in state.calls} == {
        name("buy"): "answered",
        name("hang"): "sent",
        name("hang_reading"): "sent",
    }
    (tmp_path / "calls.log").unlink()
    async with shop(tmp_path) as host:
        run = host.run(model=ScriptedModel([Says("", uses), "done"]), state=state)
        events = aiter(run)
        await until(events, CallStarted)
        await called(tmp_path, "hang_reading")  # it says that it only reads: it may be asked once more
        run.stop()
        await until(events, Ended)
    # What was bought is not bought again, and what may have had an effect neither.
    assert calls(tmp_path) == ["hang_reading"]


async def test_a_call_of_unknown_end_is_told_as_such(tmp_path):
    script = [Says("", [BUY, (name("hang"), {})]), "done"]
    async with shop(tmp_path) as host:
        run = host.run("go", model=ScriptedModel(script))
        events = aiter(run)
        await until(events, CallEnded)
        await called(tmp_path, "hang")
        run.stop()
        await until(events, Ended)
        result = await host.run(model=ScriptedModel(script), state=run.state)
    assert result.text == "done"
    assert sorted(calls(tmp_path)) == ["buy apple 2", "hang"]
    (bought, _), (unknown, is_error) = told(result)
    assert bought == "bought 2 apple"
    assert is_error
    assert "whether it took effect is not known" in unknown


async def test_calls_left_by_a_budget_are_made_when_the_run_goes_on(tmp_path):
    script = [Says("", [BUY]), "done"]
    async with shop(tmp_path) as host:
        first = await host.run("go", model=ScriptedModel(script), limits=Limits(rounds=1))
        assert calls(tmp_path) == []
        second = await host.run(model=ScriptedModel(script), state=first.state)
    assert calls(tmp_path) == ["buy apple 2"]
    assert (second.text, second.rounds, second.state.rounds) == ("done", 1, 2)
    assert first.state.calls  # the state that was handed in is as it was


async def test_a_question_that_was_not_answered_is_asked_again(tmp_path):
    script = [Says("", [BUY]), "done"]
    asking = asyncio.Event()

    async def never(question):
        asking.set()
        await asyncio.Event().wait()

    async with shop(tmp_path, {"ask": [name("buy")]}, ask=never) as host:
        run = host.run("go", model=ScriptedModel(script))
        events = aiter(run)
        await until(events, CallStarted)
        await asking.wait()
        run.stop()
        await until(events, Ended)
    assert [call.state for call in run.state.calls] == ["started"]
    async with shop(tmp_path, {"ask": [name("buy")]}, ask=lambda question: True) as host:
        await host.run(model=ScriptedModel(script), state=run.state)
    assert calls(tmp_path) == ["buy apple 2"]


async def test_what_the_person_says_next_comes_before_calls_that_wait(tmp_path):
    script = [Says("", [BUY]), "as you wish"]
    async with shop(tmp_path) as host:
        first = await host.run("buy", model=ScriptedModel(script), limits=Limits(rounds=1))
        second = await host.run("no, do not", model=ScriptedModel(script), state=first.state)
    assert second.text == "as you wish"
    assert calls(tmp_path) == []
    assert told(second) == [("Not called: the person said something else first.", True)]


async def test_a_conversation_goes_on_with_another_prompt(tmp_path):
    model = ScriptedModel(["one", "two"])
    async with shop(tmp_path) as host:
        first = await host.run("1", model=model)
        second = await host.run("2", model=model, state=first.state)
        assert [item["content"] for item in second.state.history if item["role"] == "user"] == ["1", "2"]
        assert (second.text, second.rounds, second.state.rounds) == ("two", 1, 2)
        with pytest.raises(UsageError, match="nothing to go on with"):
            host.run(model=model, state=second.state)


async def test_leaving_the_events_ends_what_is_under_way(tmp_path):
    async with shop(tmp_path) as host:
        run = host.run("go", model=ScriptedModel([Says("", [(name("hang"), {})]), "done"]))
        events = aiter(run)
        await until(events, CallStarted)
        await called(tmp_path, "hang")
        await events.aclose()
        assert [call.state for call in run.state.calls] == ["sent"]
        with pytest.raises(UsageError, match="left before its end"):
            await run


async def test_cancelling_whoever_waits_ends_the_run(tmp_path):
    async with shop(tmp_path) as host:
        run = host.run("go", model=ScriptedModel([Says("", [(name("hang"), {})]), "done"]))
        task = asyncio.create_task(run.result())
        await called(tmp_path, "hang")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [call.state for call in run.state.calls] == ["sent"]


async def test_stop_before_the_beginning(tmp_path):
    async with shop(tmp_path) as host:
        run = host.run("go", model=ScriptedModel(["never said"]))
        run.stop()
        result = await run
    assert (result.stop, result.rounds) == ("stopped", 0)
    assert [item["content"] for item in result.state.history] == ["go"]


async def test_an_error_leaves_a_state_that_goes_on(tmp_path):
    async with shop(tmp_path) as host:
        run = host.run("go", model=ScriptedModel([Says("", [BUY])]))
        with pytest.raises(UsageError, match="the script has 1 messages"):
            await run
        result = await host.run(model=ScriptedModel([Says("", [BUY]), "done"]), state=run.state)
    assert result.text == "done"
    assert calls(tmp_path) == ["buy apple 2"]


async def test_a_run_is_gone_through_once(tmp_path):
    async with shop(tmp_path) as host:
        run = host.run("go", model=ScriptedModel(["a"]))
        await run
        with pytest.raises(UsageError, match="once"):
            async for _ in run:
                pass


async def test_the_state_is_saved_at_every_step(tmp_path):
    file = tmp_path / "state.json"
    seen = []
    keep = saver(file)

    def save(state):
        keep(state)
        loaded = RunState.load(file)
        seen.append((loaded.rounds, [call.state for call in loaded.calls], loaded.ended))

    async with shop(tmp_path) as host:
        await host.run("go", model=ScriptedModel([Says("", [BUY]), "done"]), save=save)
    assert seen == [
        (0, [], False),
        (1, ["waiting"], False),
        (1, ["sent"], False),
        (1, ["answered"], False),
        (1, [], False),
        (2, [], False),
        (2, [], True),
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if "state" in path.name] == ["state.json"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{}", "missing required field `api`"),
        (b"[1]", "Expected `object`"),
        (b"{", "truncated"),
        (b'{"api": "scripted", "model": "m", "version": 9}', "expected a state of version 1; received 9"),
    ],
)
def test_what_is_no_state_is_named(data, why):
    with pytest.raises(UsageError, match=why):
        RunState.read(data)


async def test_a_state_of_another_api_is_refused(tmp_path):
    async with shop(tmp_path) as host:
        with pytest.raises(UsageError, match="of the API gemini; the model speaks scripted"):
            host.run("x", model=ScriptedModel([]), state=RunState(api="gemini", model="m"))


# --- deferred tools -------------------------------------------------------------------------------------


async def test_deferred_tools_are_searched_for_and_then_called(tmp_path):
    seen = []

    def model(view):
        seen.append(view.tools)
        if view.turn == 0:
            return Says("", [("tool_search", {"query": "what does an item cost"})])
        if view.turn == 1:
            return Says("", [APPLE])
        return view.results[0].text

    async with shop(tmp_path) as host:
        result = await host.run("price of an apple?", model=ScriptedModel(model), defer=True)
    assert seen[0] == ("tool_search",)
    assert name("price") in seen[1]
    assert seen[1][0] == "tool_search"
    assert result.text == "3"
    assert result.outcomes[0].by == "host"
    assert name("price") in result.state.found


async def test_a_search_with_bad_arguments_is_told(tmp_path):
    script = [Says("", [("tool_search", {"limit": 3}), ("tool_search", {"query": "zzzzqqq"})]), "ok"]
    async with shop(tmp_path) as host:
        result = await host.run("x", model=ScriptedModel(script), defer=True)
    (bad, is_error), (none, fine) = told(result)
    assert is_error
    assert "query" in bad
    assert (none, fine) == ("No tool fits 'zzzzqqq'. Try other words.", False)


async def test_without_deferral_nothing_is_searched(tmp_path):
    def model(view):
        return "yes" if "tool_search" in view.tools else "no"

    async with shop(tmp_path) as host:
        assert (await host.run("x", model=ScriptedModel(model))).text == "no"


# --- the script -----------------------------------------------------------------------------------------


def test_a_script_from_a_file(tmp_path):
    file = tmp_path / "script.json"
    file.write_text('[{"text": "a", "calls": [{"name": "t", "arguments": {"x": 1}}]}, "b"]')
    assert ScriptedModel.from_file(file).name == "scripted"
    file.write_text('[{"txt": "a"}]')
    with pytest.raises(UsageError, match=r"script\.json: no script: .*txt"):
        ScriptedModel.from_file(file)
    with pytest.raises(UsageError, match="No such file"):
        ScriptedModel.from_file(tmp_path / "none.json")
