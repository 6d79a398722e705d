"""A client of ours on the server of the contract, and every frame that passed, held against the schema."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import msgspec

from dragoman import Client, RemoteError
from dragoman.client.result import ToolResult
from dragoman.model import CreateMessageResult, InputRequest, TextContent
from tests.extensions.wire import check
from tests.spec.oracle import REVISIONS, SpecViolation, validate_frame

STATELESS = REVISIONS[-1]
SESSIONS = REVISIONS[:-1]
SINCE_2025_03 = REVISIONS[1:]
SINCE_2025_06 = REVISIONS[2:]
SINCE_2025_11 = REVISIONS[3:]

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
PATIENCE = 20.0  # seconds for what has to come

# What belongs to an extension is held against the extension's own schema.
TASKS = {"tasks/get": "GetTaskResult", "tasks/update": "UpdateTaskResult", "tasks/cancel": "CancelTaskResult"}


class Room:
    """One client, what it is to answer, and what it was told.

    `elicit`, `sample` and `roots` are what the person, the model and the workspace say; a test
    replaces them. `asked` are the questions that came, `notices` the notifications, `logged` the
    log entries, each in the order in which they came.
    """

    def __init__(self, target: Any, revision: str, **options: Any) -> None:
        self.revision = revision
        self.client = Client(
            target,
            protocol=revision,
            tap=self._tap,
            notification_handler=self._noticed,
            connect_timeout=PATIENCE,
            **options,
        )
        self.reset()

    @classmethod
    def capable(cls, target: Any, revision: str, **options: Any) -> Room:
        """A room whose client answers whatever a server may ask."""
        room: Room
        options = {
            "elicitation_handler": lambda params: room.answer("elicitation/create", params),
            "elicitation_modes": ("form", "url"),
            "sampling_handler": lambda params: room.answer("sampling/createMessage", params),
            "roots": lambda: room.answer("roots/list", None),
            "log_handler": lambda entry: room.logged.append((entry.level, entry.data)),
        } | options
        room = cls(target, revision, **options)
        return room

    def reset(self) -> None:
        """As at the beginning, for the next test."""
        self.frames: list[tuple[Literal["in", "out"], dict[str, Any]]] = []
        self.notices: deque[tuple[str, Any]] = deque()
        self.logged: list[tuple[str, Any]] = []
        self.asked: list[tuple[str, Any]] = []
        self.elicit: Callable[[Any], Any] = lambda params: {"value": True}
        self.sample: Callable[[Any], Any] = lambda params: CreateMessageResult(
            role="assistant", content=TextContent(text="hi"), model="a-model", stop_reason="endTurn"
        )
        self.roots: Callable[[Any], Any] = lambda params: ["file:///srv/project"]
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.client.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    # What the client's handlers do -------------------------------------------------------------------

    def answer(self, method: str, params: Any) -> Any:
        self.asked.append((method, params))
        speak = {"elicitation/create": self.elicit, "sampling/createMessage": self.sample}
        return speak.get(method, self.roots)(params)

    def _noticed(self, method: str, params: Any) -> None:
        self.notices.append((method, params))
        self._news.set()

    def _tap(self, direction: Literal["in", "out"], frame: bytes) -> None:
        assert b"\n" not in frame
        self.frames.append((direction, json.loads(frame)))

    # What a test does --------------------------------------------------------------------------------

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        """The result of a tool that did not fail."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.text
        assert result.invalid == ()
        return result

    async def failed(self, name: str, /, **arguments: Any) -> str:
        """What a tool that failed says."""
        result = await self.client.call_tool(name, arguments)
        assert result.is_error, result
        return result.text

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of any request, with whatever it asks for in between answered."""
        result = await self.client.request(method, params)
        while result.get("resultType") == "input_required":
            asked = msgspec.convert(result.get("inputRequests", {}), dict[str, InputRequest])
            answers = msgspec.to_builtins(await self.client._inputs.fulfil(asked))
            again = {**params, "inputResponses": answers, "requestState": result["requestState"]}
            result = await self.client.request(method, again)
        return result

    async def refused(self, method: str, **params: Any) -> RemoteError:
        """The error that a request is answered with."""
        try:
            result = await self.client.request(method, params)
        except RemoteError as error:
            return error
        raise AssertionError(f"{method} was answered with {result}")

    async def pages(self, method: str, member: str) -> list[list[dict[str, Any]]]:
        """All pages of a list."""
        result = await self.client.request(method)
        pages = [result[member]]
        while "nextCursor" in result:
            result = await self.client.request(method, {"cursor": result["nextCursor"]})
            pages.append(result[member])
        return pages

    async def entries(self, method: str, member: str, name: str) -> dict[str, dict[str, Any]]:
        """The entries of a whole list, by their member `name`."""
        return {entry[name]: entry for page in await self.pages(method, member) for entry in page}

    async def heard(self, method: str) -> Any:
        """The params of the next notification of that method, once it is there; others are passed over."""
        async with asyncio.timeout(PATIENCE):
            while True:
                while self.notices:
                    said, params = self.notices.popleft()
                    if said == method:
                        return params
                self._news.clear()
                await self._news.wait()

    def sent(self, method: str) -> list[dict[str, Any]]:
        """The params of what went to the server with that method."""
        return [f.get("params", {}) for way, f in self.frames if way == "out" and f.get("method") == method]

    def received(self, method: str) -> list[dict[str, Any]]:
        """The params of what came from the server with that method."""
        return [f.get("params", {}) for way, f in self.frames if way == "in" and f.get("method") == method]

    def result_of(self, method: str) -> dict[str, Any]:
        """The last result of a request of that method, as it was on the wire."""
        ids = [f["id"] for way, f in self.frames if way == "out" and f.get("method") == method and "id" in f]
        (frame,) = [
            f for way, f in self.frames if way == "in" and f.get("id") == ids[-1] and "method" not in f
        ]
        return frame["result"]

    def check(self) -> None:
        """Every frame is exactly what the revision has, and every request was answered at most once."""
        asked: dict[str, dict[Any, str]] = {"in": {}, "out": {}}
        for way, frame in self.frames:
            if "method" in frame and "id" in frame:
                assert frame["id"] not in asked[way], f"an id used twice: {frame}"
                asked[way][frame["id"]] = frame["method"]
            method = None
            if "method" not in frame:
                other = "in" if way == "out" else "out"
                method = asked[other].get(frame["id"])
                assert method is not None, f"an answer to nothing, or a second one: {frame}"
                del asked[other][frame["id"]]
            self._check(way, frame, method)

    def _check(self, way: str, frame: dict[str, Any], method: str | None) -> None:
        result: Mapping[str, Any] = frame.get("result", {})
        if method in TASKS and result:
            check(TASKS[method], result)
        elif result.get("resultType") == "task":
            check("CreateTaskResult", result)
        elif frame.get("method") == "notifications/tasks":
            check("TaskStatusNotification", frame)
        elif not frame.get("method", "").startswith("tasks/"):
            direction: Any = "to_server" if way == "out" else "to_client"
            others = "method" in frame and frame["method"] == "no/such"
            try:
                validate_frame(self.revision, frame, method, direction, exact=True, others=others)
            except SpecViolation as exc:
                raise SpecViolation(f"{exc}\n{json.dumps(frame)[:2000]}") from None
