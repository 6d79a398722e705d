"""The middleware that is shipped."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.metrics import Meter, MeterProvider
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    TracerProvider,
)

from dragoman import Context, Refusal, Server, ToolError, UsageError
from dragoman.model import CallToolResult, TextContent
from dragoman.server.layers import (
    Cache,
    Concurrency,
    JsonFormatter,
    Logs,
    RateLimit,
    ResponseLimit,
    Telemetry,
    Timed,
    Timeout,
    Timing,
)
from tests.server.pair import Pair, text
from tests.server.test_asking import Asked, accept

REVISIONS = ["2025-11-25", "2026-07-28"]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def serving(*layers: Any) -> Server:
    server = Server("s", middleware=layers)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def fails() -> str:
        raise ToolError("no such order")

    @server.tool
    async def refuses() -> str:
        raise Refusal(4003, "not yours")

    @server.resource("notes://today")
    async def today() -> str:
        return "n" * 4000

    return server


# Timing and logs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_call_is_timed_with_what_became_of_it(revision: str) -> None:
    told: list[Timed] = []
    clock = Clock()

    async def takes_time(call: Any, proceed: Any) -> Any:
        clock.now += 0.25
        return await proceed(call)

    async with Pair(serving(Timing(told.append, clock=clock), takes_time), revision) as pair:
        told.clear()
        pair.connection.link.principal = "ada"
        await pair.call("add", a=1, b=2)
        await pair.call("fails")
        await pair.ask("tools/call", {"name": "refuses"})
        await pair.ask("tools/list")
        told_of = [(timed.method, timed.subject, timed.outcome, timed.code) for timed in told]
        assert told_of == [
            ("tools/call", "add", "ok", None),
            ("tools/call", "fails", "tool_error", None),
            ("tools/call", "refuses", "refused", 4003),
            ("tools/list", None, "ok", None),
        ]
        assert {timed.seconds for timed in told} == {0.25}
        assert {(timed.principal, timed.revision) for timed in told} == {("ada", revision)}


async def test_a_cancelled_call_is_timed_too() -> None:
    told: list[Timed] = []
    server = Server("s", middleware=[Timing(told.append)])
    begun = asyncio.Event()

    @server.tool
    async def waits() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with Pair(server) as pair:
        id_ = pair.send("tools/call", {"name": "waits"})
        async with asyncio.timeout(20):
            await begun.wait()
        pair.tell("notifications/cancelled", {"requestId": id_})
        await pair.ask("tools/list")
    assert [timed.outcome for timed in told if timed.method == "tools/call"] == ["cancelled"]


async def test_what_fails_inside_is_a_failure_and_what_asks_is_told_apart() -> None:
    told: list[Timed] = []

    async def breaks(call: Any, proceed: Any) -> Any:
        if call.params.name == "add":
            raise RuntimeError("inside")
        return await proceed(call)

    server = Server("s", middleware=[Timing(told.append)], secret="a secret of at least sixteen bytes")
    server.add_tool(lambda: 1, name="add")
    server.middleware("tools/call")(breaks)

    @server.tool
    async def asks(ctx: Context) -> str:
        return (await ctx.elicit("Name?", str)).data

    async with Asked(server, "2026-07-28", accept(value="ada")) as pair:
        assert (await pair.ask("tools/call", {"name": "add"}))["error"]["code"] == -32603
        await pair.run("asks")
    assert [(t.outcome, t.error) for t in told] == [
        ("failed", "RuntimeError"),
        ("input_required", None),
        ("ok", None),
    ]


async def test_a_line_for_every_call_at_a_level_that_says_how_it_went(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="dragoman.calls")
    async with Pair(serving(Logs())) as pair:
        await pair.call("add", a=1, b=2)
        await pair.call("fails")
        await pair.ask("tools/call", {"name": "line\nbreak"})
    records = [record for record in caplog.records if record.name == "dragoman.calls"]
    assert [record.levelname for record in records] == ["INFO", "WARNING", "WARNING"]
    assert records[0].getMessage().startswith("tools/call add: ok, ")
    assert "line\\nbreak: refused -32602" in records[2].getMessage()
    assert records[0].mcp_outcome == "ok"
    assert records[0].mcp_subject == "add"


def record(message: str, *arguments: Any, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("app", logging.WARNING, __file__, 1, message, arguments, None)
    made.__dict__.update(extra)
    return made


def test_a_json_line_has_the_fields_of_the_record() -> None:
    line = JsonFormatter().format(record("read %s\nnext", "x", mcp_seconds=0.5, peer={"a": [1]}, path=object))
    assert "\n" not in line
    read = json.loads(line)
    assert (read["level"], read["logger"], read["message"]) == ("warning", "app", "read x\nnext")
    assert (read["mcp_seconds"], read["peer"], read["path"]) == (0.5, {"a": [1]}, "<class 'object'>")
    assert read["time"].endswith("+00:00")


def test_a_json_line_tells_of_exceptions_and_survives_what_json_cannot_say() -> None:
    made = record("broken", weird={1: {2: float("nan")}}, circular=[])
    made.circular.append(made.circular)
    try:
        raise ValueError("bad")
    except ValueError:
        made.exc_info = sys.exc_info()
    read = json.loads(JsonFormatter().format(made))
    assert read["exception"].endswith("ValueError: bad")
    assert "circular" in read


# Limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_calls_beyond_the_rate_are_told_when_to_come_again(revision: str) -> None:
    clock = Clock()
    async with Pair(serving(RateLimit(2, 1.0, clock=clock)), revision) as pair:
        for _ in range(2):
            assert text(await pair.call("add", a=1, b=2)) == "3"
        refused = await pair.call("add", a=1, b=2)
        assert refused["isError"] is True
        assert text(refused) == "Rate limit: too many calls; try again in 0.50 s"
        error = (await pair.ask("resources/read", {"uri": "notes://today"}))["error"]
        assert (error["code"], error["data"]) == (429, {"retryAfterMs": 500})
        assert "result" in await pair.ask("tools/list")  # a list is no work
        clock.now += 0.5
        assert text(await pair.call("add", a=1, b=2)) == "3"
        assert (await pair.call("add", a=1, b=2))["isError"] is True


@pytest.mark.parametrize(
    ("by", "allowed"),
    [
        (("principal",), [True, False, True, False]),
        (("tool",), [True, True, False, False]),
        (("principal", "tool"), [True, True, True, True]),
        ((), [True, False, False, False]),
        (lambda call: call.id, [True, True, True, True]),
    ],
)
async def test_who_is_counted_together(by: Any, allowed: list[bool]) -> None:
    layer = RateLimit(1, 60, by=by, clock=Clock())
    server = Server("s", middleware=[layer])
    for name in ("a", "b"):
        server.add_tool(lambda: 1, name=name)
    async with Pair(server) as pair:
        outcomes = []
        for principal in ("ada", "alan"):
            pair.connection.link.principal = principal
            outcomes += ["isError" not in await pair.call(name) for name in ("a", "b")]
    assert outcomes == allowed


async def test_a_burst_may_be_larger_than_the_rate() -> None:
    clock = Clock()
    async with Pair(serving(RateLimit(1, 60, burst=3, clock=clock))) as pair:
        outcomes = ["isError" in await pair.call("add", a=1, b=2) for _ in range(4)]
        assert outcomes == [False, False, False, True]
        clock.now += 3600  # never more than the burst
        outcomes = ["isError" in await pair.call("add", a=1, b=2) for _ in range(4)]
        assert outcomes == [False, False, False, True]


class Counted:
    """A tool that waits until it is let go, and counts how many are in it."""

    def __init__(self, *layers: Any) -> None:
        self.server = Server("s", middleware=layers)
        self.inside = self.most = 0
        self.go = asyncio.Event()
        self.server.add_tool(self.work, name="work")

    async def work(self) -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.go.wait()
        finally:
            self.inside -= 1
        return "done"


async def test_no_more_calls_at_once_than_the_limit_and_the_others_in_turn() -> None:
    counted = Counted(Concurrency(2))
    async with Pair(counted.server) as pair:
        asked = [pair.send("tools/call", {"name": "work"}) for _ in range(6)]
        await pair.ask("tools/list")
        assert counted.inside == 2
        counted.go.set()
        assert [text((await pair.answer(id_))["result"]) for id_ in asked] == ["done"] * 6
        assert counted.most == 2
        assert text(await pair.call("work")) == "done"


async def test_a_line_that_is_full_and_a_wait_that_is_over_are_told() -> None:
    counted = Counted(Concurrency(1, line=1, wait=0.05))
    async with Pair(counted.server) as pair:
        first, second, third = (pair.send("tools/call", {"name": "work"}) for _ in range(3))
        for id_ in (third, second):
            result = (await pair.answer(id_))["result"]
            assert (result["isError"], "busy" in text(result)) == (True, True)
        counted.go.set()
        assert text((await pair.answer(first))["result"]) == "done"
        assert text(await pair.call("work")) == "done"


async def test_who_is_cancelled_in_the_line_or_inside_leaves_the_place_to_others() -> None:
    layer = Concurrency(1)
    counted = Counted(layer)
    async with Pair(counted.server) as pair:
        first, second, third = (pair.send("tools/call", {"name": "work"}) for _ in range(3))
        await pair.ask("tools/list")
        pair.tell("notifications/cancelled", {"requestId": second})
        pair.tell("notifications/cancelled", {"requestId": first})
        counted.go.set()
        assert text((await pair.answer(third))["result"]) == "done"
        assert text(await pair.call("work")) == "done"
        assert counted.most == 1
        assert not layer._gates  # nothing is remembered of who is gone


@pytest.mark.parametrize("revision", REVISIONS)
async def test_time_limits_for_all_tools_and_for_single_ones(revision: str) -> None:
    server = Server("s", middleware=[Timeout(0.02, tools={"patient": None, "quick": 0.01})])

    async def slow() -> None:
        await asyncio.Event().wait()

    async def patient() -> str:
        await asyncio.sleep(0.05)
        return "done"

    async def own() -> str:
        raise TimeoutError("the database did not answer")

    for name, function in (("slow", slow), ("quick", slow), ("patient", patient), ("own", own)):
        server.add_tool(function, name=name)
    async with Pair(server, revision) as pair:
        assert text(await pair.call("slow")) == "slow did not finish within 0.02 s"
        assert text(await pair.call("quick")) == "quick did not finish within 0.01 s"
        assert text(await pair.call("patient")) == "done"
        assert text(await pair.call("own")) == "the database did not answer"


# Sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("character", ["x", "é", "\n", '"', "\x01", "😀"])
async def test_text_that_is_too_long_is_cut_at_a_character_and_says_so(revision: str, character: str) -> None:
    server = Server("s", middleware=[ResponseLimit(2048)])
    server.add_tool(lambda: TextContent(text=character * 5000), name="long")
    server.add_tool(lambda: TextContent(text=character * 100), name="short")
    async with Pair(server, revision) as pair:
        assert text(await pair.call("short")) == character * 100
        result = await pair.call("long")
        shown, _, note = text(result).rpartition("\n[cut here: ")
        assert set(shown) == {character}
        total = len(character.encode()) * 5000
        assert note == f"{len(shown.encode())} of {total} bytes are shown]"
        whole = CallToolResult(content=[TextContent(text=text(result))])
        assert 1500 < len(msgspec.json.encode(whole)) <= 2048


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_cannot_be_cut_is_not_sent(revision: str) -> None:
    server = serving(ResponseLimit(2048, tools={"generous": 100_000}))

    @server.tool
    def structured() -> list[int]:
        return list(range(2000))

    @server.tool
    def generous() -> list[int]:
        return list(range(2000))

    async with Pair(server, revision) as pair:
        result = await pair.call("structured")
        assert result["isError"] is True
        assert "at most 2048 are sent; ask for less" in text(result)
        assert "isError" not in await pair.call("generous")
        error = (await pair.ask("resources/read", {"uri": "notes://today"}))["error"]
        assert (error["code"], error["data"]["limit"]) == (413, 2048)
        assert "result" in await pair.ask("tools/list")


# Caching -----------------------------------------------------------------------------------------


def counting(layer: Any) -> tuple[Server, list[Any]]:
    server = Server("s", middleware=[layer], secret="a secret of at least sixteen bytes")
    ran: list[Any] = []

    @server.tool(annotations={"readOnlyHint": True})
    async def read(a: int = 0, b: int = 0) -> str:
        ran.append(("read", a, b))
        if a < 0:
            raise ToolError("below zero")
        return f"{len(ran)}"

    @server.tool(annotations={"idempotentHint": True})
    async def write(a: int) -> str:
        ran.append(("write", a))
        return "written"

    @server.tool(annotations={"readOnlyHint": True})
    async def asks(ctx: Context) -> str:
        ran.append("asks")
        return (await ctx.elicit("Name?", str)).data

    return server, ran


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_same_call_of_a_tool_that_only_reads_is_answered_from_memory(revision: str) -> None:
    clock = Clock()
    server, ran = counting(Cache(60, clock=clock))
    async with Pair(server, revision) as pair:
        pair.connection.link.principal = "ada"
        first = await pair.call("read", a=1, b=2)
        assert await pair.call("read", b=2, a=1) == first
        assert len(ran) == 1
        await pair.call("read", a=2, b=2)
        assert len(ran) == 2
        pair.connection.link.principal = "alan"
        await pair.call("read", a=1, b=2)
        assert len(ran) == 3
        clock.now += 61
        await pair.call("read", a=1, b=2)
        assert len(ran) == 4


async def test_writes_errors_and_answers_to_questions_are_not_kept() -> None:
    server, ran = counting(Cache(60))
    async with Asked(server, "2026-07-28", accept(value="ada")) as pair:
        for _ in range(2):
            await pair.call("write", a=1)
            await pair.call("read", a=-1)
            assert text(await pair.run("asks")) == "ada"
    assert ran.count(("write", 1)) == 2
    assert ran.count(("read", -1, 0)) == 2
    assert ran.count("asks") == 4
    ran.clear()
    async with Asked(server, "2025-11-25", accept(value="ada")) as pair:
        for _ in range(2):
            assert text(await pair.run("asks")) == "ada"
    assert ran.count("asks") == 2


async def test_named_tools_keys_of_ones_own_forgetting_and_a_bound() -> None:
    header = "one"
    layer = Cache(60, tools=["write"], key=lambda call: header, max_entries=2)
    server, ran = counting(layer)
    async with Pair(server) as pair:
        await pair.call("read")
        await pair.call("read")
        assert len(ran) == 2
        for _ in range(2):
            await pair.call("write", a=1)
        assert len(ran) == 3
        header = "two"
        await pair.call("write", a=1)
        assert len(ran) == 4
        layer.clear("write")
        await pair.call("write", a=1)
        assert len(ran) == 5
        for number in (2, 3, 4, 1):  # two are kept, so the first is gone
            await pair.call("write", a=number)
        assert len(ran) == 9


async def test_a_mounted_server_keeps_by_its_own_names_and_arguments() -> None:
    inner, ran = counting(Cache(60))
    outer = Server("outer")
    outer.mount(inner, prefix="in_")
    outer.transform("in_read", name="one", fixed={"a": 1}, keep=True)
    async with Pair(outer) as pair:
        await pair.call("one", b=5)
        await pair.call("in_read", a=2, b=5)
        await pair.call("in_read", a=1, b=5)
    assert ran == [("read", 1, 5), ("read", 2, 5)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: RateLimit(0),
        lambda: RateLimit(1, burst=0),
        lambda: RateLimit(1, by=["user"]),
        lambda: Concurrency(0),
        lambda: Timeout(0),
        lambda: Timeout(1, tools={"x": -1}),
        lambda: ResponseLimit(10),
        lambda: Cache(0),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        make()


# Telemetry ---------------------------------------------------------------------------------------

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Recorded(Span):
    """A span that keeps what it is told."""

    def __init__(self, name: str, context: SpanContext, **started: Any) -> None:
        self.name, self.context, self.started = name, context, started
        self.attributes: dict[str, Any] = dict(started["attributes"])
        self.status: tuple[Any, Any] | None = None
        self.ended = False

    def get_span_context(self) -> SpanContext:
        return self.context

    def set_attributes(self, attributes: Any) -> None:
        self.attributes.update(attributes)

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = (status, description)

    def end(self, end_time: int | None = None) -> None:
        self.ended = True

    def add_event(self, *_: Any, **__: Any) -> None: ...
    def update_name(self, name: str) -> None: ...
    def is_recording(self) -> bool:
        return True

    def record_exception(self, *_: Any, **__: Any) -> None: ...


class Recorder(TracerProvider, Tracer, MeterProvider, Meter):
    """Providers whose spans and measurements can be looked at."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []
        self.measured: list[tuple[float, dict[str, Any]]] = []
        self.instrument: dict[str, Any] = {}

    def get_tracer(self, *_: Any, **__: Any) -> Tracer:
        return self

    def get_meter(self, *_: Any, **__: Any) -> Any:
        return self

    def start_span(self, name: str, context: Any = None, **started: Any) -> Any:
        parent = trace.get_current_span(context).get_span_context()
        own = SpanContext(
            parent.trace_id or 1, len(self.spans) + 1, is_remote=False, trace_flags=TraceFlags(1)
        )
        self.spans.append(Recorded(name, own, parent=parent, **started))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("not used")

    def create_histogram(self, name: str, **instrument: Any) -> Any:
        self.instrument = {"name": name, **instrument}
        return self

    def record(self, seconds: float, attributes: dict[str, Any]) -> None:
        self.measured.append((seconds, attributes))

    create_counter = create_gauge = create_up_down_counter = None  # type: ignore[assignment]  # not asked for
    create_observable_counter = create_observable_gauge = create_observable_up_down_counter = None  # type: ignore[assignment]  # not asked for


def traced(**options: Any) -> tuple[Server, Recorder]:
    recorder = Recorder()
    layer = Telemetry(tracer_provider=recorder, meter_provider=recorder, **options)
    server = serving(layer)

    @server.prompt
    def greet() -> str:
        return "hello"

    @server.tool
    def within() -> str:
        return format(trace.get_current_span().get_span_context().span_id, "x")

    return server, recorder


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_span_for_every_call_by_the_conventions(revision: str) -> None:
    server, recorder = traced()
    async with Pair(server, revision) as pair:
        recorder.spans.clear()
        recorder.measured.clear()
        await pair.call("add", a=1, b=2)
        await pair.ask("prompts/get", {"name": "greet"})
        await pair.ask("resources/read", {"uri": "notes://today"})
        await pair.ask("tools/list")
    names = [span.name for span in recorder.spans]
    assert names == ["tools/call add", "prompts/get greet", "resources/read", "tools/list"]
    assert all(span.ended and span.status is None for span in recorder.spans)
    assert {span.started["kind"] for span in recorder.spans} == {SpanKind.SERVER}
    call = recorder.spans[0].attributes
    assert call.pop("jsonrpc.request.id")
    assert call == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "gen_ai.tool.name": "add",
        "gen_ai.operation.name": "execute_tool",
        "network.transport": "pipe",
    }
    assert recorder.spans[2].attributes["mcp.resource.uri"] == "notes://today"
    assert recorder.instrument["name"] == "mcp.server.operation.duration"
    assert recorder.instrument["unit"] == "s"
    assert recorder.measured[0][0] > 0
    assert recorder.measured[0][1] == call
    assert "mcp.resource.uri" not in recorder.measured[2][1]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_errors_of_both_kinds(revision: str) -> None:
    server, recorder = traced()
    async with Pair(server, revision) as pair:
        recorder.spans.clear()
        recorder.measured.clear()
        await pair.call("fails")
        await pair.ask("tools/call", {"name": "refuses"})
        await pair.ask("tools/call", {"name": "made_up"})
    tool, refused, unknown = recorder.spans
    error = trace.StatusCode.ERROR
    assert (tool.attributes["error.type"], tool.status) == ("tool_error", (error, None))
    assert (refused.attributes["error.type"], refused.status) == ("4003", (error, "not yours"))
    assert refused.attributes["rpc.response.status_code"] == "4003"
    assert recorder.measured[1][1]["error.type"] == "4003"
    # What a client makes up is no name of a span, and no label of a metric.
    assert unknown.name == "tools/call"
    assert unknown.attributes["gen_ai.tool.name"] == "made_up"
    assert "gen_ai.tool.name" not in recorder.measured[2][1]


async def test_the_parent_is_what_meta_names_and_handlers_run_inside_the_span() -> None:
    server, recorder = traced()
    async with Pair(server) as pair:
        params = {"name": "within", "arguments": {}}
        result = (await pair.ask("tools/call", params, traceparent=PARENT))["result"]
    (span,) = recorder.spans
    assert format(span.started["parent"].trace_id, "x") == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert format(span.started["parent"].span_id, "016x") == "00f067aa0ba902b7"
    assert span.started["links"] == []
    assert text(result) == format(span.context.span_id, "x")


async def test_a_span_that_is_current_where_the_call_comes_in_is_linked() -> None:
    server, recorder = traced()
    ambient = SpanContext(77, 88, is_remote=False, trace_flags=TraceFlags(1))
    token = otel_context.attach(trace.set_span_in_context(NonRecordingSpan(ambient)))
    try:
        async with Pair(server) as pair:
            await pair.ask("tools/call", {"name": "within"}, traceparent=PARENT)
            await pair.ask("tools/call", {"name": "within"}, traceparent="nonsense")
    finally:
        otel_context.detach(token)
    first, second = recorder.spans
    assert [link.context for link in first.started["links"]] == [ambient]
    assert (second.started["parent"], second.started["links"]) == (ambient, [])


async def test_arguments_and_results_only_when_asked_for() -> None:
    server, recorder = traced(payloads=True)
    async with Pair(server) as pair:
        await pair.call("add", a=1, b=2)
    attributes = recorder.spans[0].attributes
    assert json.loads(attributes["gen_ai.tool.call.arguments"]) == {"a": 1, "b": 2}
    assert json.loads(attributes["gen_ai.tool.call.result"])["structuredContent"] == {"result": 3}


def test_without_the_package_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(UsageError, match="needs opentelemetry-api"):
        Telemetry()
