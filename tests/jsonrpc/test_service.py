"""The table of methods: how parameters reach a function, and what its outcome becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Raw

from dragoman.errors import RemoteError, UsageError
from dragoman.jsonrpc import Exchange, RpcError, Service


def ask(service: Service, method: str, params: Any = None) -> Any:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
    if params is not None:
        message["params"] = params
    answer = json.loads(service.dispatch(json.dumps(message).encode()))
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == 1
    return answer.get("error", answer.get("result"))


@dataclass
class Point:
    x: int
    y: int = 0


@pytest.fixture
def service() -> Service:
    service = Service()

    @service.method
    def plain(a: int, b: int = 10) -> list[int]:
        return [a, b]

    @service.method("typed")
    def types(
        when: date, how: Literal["up", "down"], where: Point, size: Annotated[int, Meta(ge=1)] = 1
    ) -> list[Any]:
        return [when, how, where, size]

    @service.method
    def variadic(first: int, *more: int, last: str = "-", **others: bool) -> list[Any]:
        return [first, more, last, others]

    @service.method
    def positional(a: int, /, b: int) -> list[int]:
        return [a, b]

    @service.method
    def named(*, a: int) -> int:
        return a

    @service.method
    def untyped(value):
        return value

    @service.method
    def raw(value: Raw) -> Raw:
        return value

    @service.method
    def nothing() -> None:
        return None

    return service


@pytest.mark.parametrize(
    ("method", "params", "result"),
    [
        ("plain", [1, 2], [1, 2]),
        ("plain", [1], [1, 10]),
        ("plain", {"b": 2, "a": 1}, [1, 2]),
        ("plain", {"a": 1}, [1, 10]),
        (
            "typed",
            ["2026-07-28", "up", {"x": 1, "y": 0}],
            ["2026-07-28", "up", {"x": 1, "y": 0}, 1],
        ),
        ("variadic", [1, 2, 3], [1, [2, 3], "-", {}]),
        ("variadic", {"first": 1, "last": "z", "x": True}, [1, [], "z", {"x": True}]),
        ("positional", [1, 2], [1, 2]),
        ("named", {"a": 1}, 1),
        ("untyped", [{"a": [1.5, None]}], {"a": [1.5, None]}),
        ("raw", [{"a": 1}], {"a": 1}),
        ("nothing", None, None),
        ("nothing", [], None),
        ("nothing", {}, None),
    ],
)
def test_parameters_are_bound(service: Service, method: str, params: Any, result: Any) -> None:
    assert ask(service, method, params) == result


@pytest.mark.parametrize(
    ("method", "params", "parameter", "expected", "received"),
    [
        ("plain", None, "a", "int", "nothing"),
        ("plain", [], "a", "int", "nothing"),
        ("plain", {"b": 1}, "a", "int", "nothing"),
        ("plain", ["1"], "a", "int", "str"),
        ("plain", [1.5], "a", "int", "float"),
        ("plain", [True], "a", "int", "bool"),
        ("plain", {"a": None}, "a", "int", "null"),
        ("plain", {"a": 1, "c": 2}, "c", "one of a, b", "2"),
        ("plain", [1, 2, 3], None, "at most 2 positional parameters", "3"),
        ("typed", ["tomorrow", "up", {"x": 1}], "when", "Invalid RFC3339 encoded date", '"tomorrow"'),
        ("typed", ["2026-07-28", "left", {"x": 1}], "how", "Invalid enum value 'left'", '"left"'),
        ("typed", ["2026-07-28", "up", {"x": "1"}], "where.x", "int", "str"),
        ("typed", ["2026-07-28", "up", {}], "where", "Object missing required field x", "an object"),
        ("typed", ["2026-07-28", "up", {"x": 1}, 0], "size", "int >= 1", "0"),
        ("variadic", [1, 2, "x"], "more[2]", "int", "str"),
        ("variadic", {"first": 1, "x": 5}, "x", "bool", "int"),
        ("positional", {"a": 1, "b": 2}, "a", "one of b", "1"),
        ("named", [1], None, "at most 0 positional parameters", "1"),
        ("nothing", {"a": 1}, "a", "no parameters", "1"),
    ],
)
def test_wrong_parameters_are_named(
    service: Service, method: str, params: Any, parameter: str | None, expected: str, received: str
) -> None:
    error = ask(service, method, params)
    assert error["code"] == -32602
    assert error["data"] == {"parameter": parameter, "expected": expected, "received": received}
    assert error["message"].startswith("Invalid params: ")
    assert error["message"].endswith(f"expected {expected}, received {received}")


@pytest.mark.parametrize("name", ["missing", "rpc.discover", "__init__", "dispatch", ""])
def test_an_unknown_method(service: Service, name: str) -> None:
    assert ask(service, name) == {"code": -32601, "message": "Method not found", "data": {"method": name}}


def test_errors_cross_the_wire_as_they_were_raised() -> None:
    service = Service()

    @service.method
    def refuse(data: Any = None) -> None:
        raise RpcError(-32001, "Not today") if data is None else RpcError(7, "No", data)

    assert ask(service, "refuse") == {"code": -32001, "message": "Not today"}
    assert ask(service, "refuse", [{"a": 1}]) == {"code": 7, "message": "No", "data": {"a": 1}}


def secret() -> None:
    raise ValueError("password=hunter2")


def remote() -> None:
    raise RemoteError(-32602, "the database said no")


def unencodable() -> Any:
    return {"f": secret}


def endless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("function", [secret, remote, unencodable, endless])
def test_other_errors_are_internal_and_tell_nothing(function: Callable[[], Any]) -> None:
    service = Service()
    service.method("f")(function)
    assert ask(service, "f") == {"code": -32603, "message": "Internal error"}


def test_notifications_are_answered_by_silence() -> None:
    service, seen = Service(), []
    service.method("note")(seen.append)
    service.method("secret")(secret)
    for method, params in (("note", "[1]"), ("secret", "[]"), ("unknown", "[]"), ("note", "[]")):
        frame = f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}'
        assert service.dispatch(frame.encode()) == b""
    assert seen == [1]


def test_an_exchange_is_found_by_type_wherever_it_stands() -> None:
    service = Service()

    @service.method
    def who(a: int, me: Exchange, *, b: int = 0) -> list[Any]:
        return [a, b, me.id, me.method, me.notify("progress", {})]

    # Over a transport that carries answers only, a notification goes nowhere and says so.
    assert ask(service, "who", [1]) == [1, 0, 1, "who", False]
    assert ask(service, "who", {"a": 1, "b": 2}) == [1, 2, 1, "who", False]
    assert ask(service, "who", {"a": 1, "me": 2})["data"]["expected"] == "one of a, b"


def test_asking_a_caller_that_cannot_be_asked() -> None:
    service = Service()
    seen: list[str] = []

    @service.method
    def curious(exchange: Exchange) -> None:
        try:
            exchange.request("name")
        except UsageError as error:
            seen.append(str(error))

    assert ask(service, "curious") is None
    assert seen == ["the caller cannot be asked for 'name': this transport carries answers only"]


def test_what_cannot_be_registered() -> None:
    service = Service()
    service.method("taken")(secret)
    with pytest.raises(UsageError, match="method 'taken': there is one of that name already"):
        service.method("taken")(secret)
    with pytest.raises(UsageError, match=r"method 'rpc\.x': names that begin with `rpc\.` are reserved"):
        service.method("rpc.x")(secret)

    async def waits() -> None:
        """Nothing."""

    with pytest.raises(UsageError, match="runs on the loop, not in a thread"):
        service.method("waits", thread=True)(waits)

    def strange(a: list[int] | set[int]) -> None:
        """Takes one of two types that are the same in JSON."""

    with pytest.raises(UsageError, match="method 'strange': parameter 'a'"):
        service.method(strange)

    def unresolved(a: Missing) -> None:  # noqa: F821 - the point of the test
        """Names a type that does not exist."""

    with pytest.raises(UsageError, match="method 'unresolved': its signature cannot be read"):
        service.method(unresolved)
    assert service.methods == ("taken",)


def test_an_async_method_needs_a_driver() -> None:
    service = Service()

    @service.method
    async def waits() -> None:
        """Nothing."""

    with pytest.raises(UsageError, match="method 'waits' is asynchronous: serve it with a driver"):
        ask(service, "waits")


def test_a_decorated_function_stays_what_it_was() -> None:
    service = Service()

    @service.method
    def double(a: int) -> int:
        return 2 * a

    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def add(self, by: int = 1) -> int:
            self.count += by
            return self.count

        def __call__(self, by: int) -> int:
            return self.add(by)

    counter = Counter()
    service.method("add")(counter.add)
    service.method("call")(counter)
    assert double(2) == 4
    assert [ask(service, "add"), ask(service, "add", [5]), ask(service, "call", [1])] == [1, 6, 7]
