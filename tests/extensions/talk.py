"""A client that knows tasks, on a server in this process; whatever comes back is held against the schemas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from dragoman import Server
from tests.extensions.wire import KNOWS, OVER, check
from tests.server.pair import PATIENCE, Pair
from tests.spec.oracle import validate_frame

RESULTS = {
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
    "tasks/cancel": "CancelTaskResult",
}


class Talk(Pair):
    """As `Pair`; `knows` is what a request says of its client."""

    def __init__(self, server: Server, knows: dict[str, Any] = KNOWS) -> None:
        super().__init__(server)
        self._knows = knows

    def _take(self, frame: bytes) -> None:
        message = json.loads(frame)
        self.frames.append(message)
        self._arrived.set()
        try:
            self._check(message)
        except AssertionError as exc:
            self._fault = self._fault or exc

    def _check(self, message: dict[str, Any]) -> None:
        result, method = message.get("result", {}), self._methods.get(message.get("id"), "")
        if message.get("method") == "notifications/tasks":
            check("TaskStatusNotification", message)
        elif "taskIds" in message.get("params", {}).get("notifications", {}):
            check("TaskSubscriptionAcknowledgedNotifications", message["params"]["notifications"])
        elif result.get("resultType") == "task":
            check("CreateTaskResult", result)
        elif result and method in RESULTS:
            check(RESULTS[method], result)
        else:
            validate_frame(self.revision, message, self._methods, "to_client", exact=True, others=True)

    def send(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> int:
        return super().send(method, params, **{**self._knows, **meta})

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a request."""
        answer = await self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, **params: Any) -> dict[str, Any]:
        """The error of a request."""
        answer = await self.ask(method, params)
        assert "error" in answer, answer
        return answer["error"]

    async def begin(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool; the id of the task that the call becomes."""
        result = await self.result("tools/call", name=tool, arguments=arguments)
        assert result["resultType"] == "task", result
        return result["taskId"]

    async def look(self, task_id: str) -> dict[str, Any]:
        """The task now."""
        return await self.result("tasks/get", taskId=task_id)

    async def until(self, task_id: str, *wanted: str) -> dict[str, Any]:
        """The task, once it has one of these statuses; without any, once it is over."""
        return await self.when(task_id, lambda task: task["status"] in (wanted or OVER))

    async def when(self, task_id: str, ready: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The task, once it is so."""
        async with asyncio.timeout(PATIENCE):
            while not ready(task := await self.look(task_id)):  # noqa: ASYNC110  # a poll is what it is
                await asyncio.sleep(0.005)
        return task

    async def answer_task(self, task_id: str, **answers: Any) -> None:
        """Answer questions of a task: each answer is accepted as the content's `value`."""
        responses = {key: {"action": "accept", "content": {"value": value}} for key, value in answers.items()}
        await self.result("tasks/update", taskId=task_id, inputResponses=responses)


@asynccontextmanager
async def served(server: Server) -> AsyncIterator[Talk]:
    """A server in service, as a transport keeps it, and a client."""
    server.kernel.attach()
    try:
        async with Talk(server) as talk:
            yield talk
    finally:
        await server.kernel.detach()
