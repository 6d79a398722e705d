"""Asking the client in the middle of a call, on every revision.

Where the revision asks inline, a question is a request to the client. Elsewhere the call ends with
`input_required`, and the retry enters the handler anew with the answers in its journal. A handler
sees no difference: it awaits an answer and goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from inspect import isawaitable
from os import urandom
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypedDict, TypeVar, Unpack, cast, overload

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal, ToolError
from dragoman.model import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    CreateMessageParams,
    CreateMessageRequest,
    CreateMessageResult,
    ElicitFormParams,
    ElicitRequest,
    ElicitResult,
    ElicitURLParams,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    ModelPreferences,
    Root,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
)
from dragoman.protocol.call import Call, Keeper
from dragoman.protocol.record import Record

if TYPE_CHECKING:
    from dragoman.schema.forms import Form

T = TypeVar("T")
Asked = Coroutine[Any, Any, T]

TRIES: Final = 4  # times a wrong answer is asked for again inline


class Suspend(BaseException):  # not an error, and not for `except Exception` to catch
    """Unwinds a handler whose question has no answer yet."""

    def __init__(self, requests: dict[str, InputRequest]) -> None:
        super().__init__()
        self.requests = requests

    def result(self) -> InputRequiredResult:
        """What the call answers instead of a result."""
        return InputRequiredResult(input_requests=cast("dict[str, Any]", self.requests))


class Elicited(msgspec.Struct, Generic[T], frozen=True):
    """What a person did with a question; `data` is their answer, None unless they accepted.

    True in a condition if they accepted.
    """

    action: Literal["accept", "decline", "cancel"]
    data: T | None = None

    def __bool__(self) -> bool:
        return self.action == "accept"


class SampleOptions(TypedDict, total=False):
    """What `ctx.sample` passes on to the client's model, as in client/sampling."""

    system_prompt: str
    max_tokens: int
    temperature: float
    stop_sequences: Sequence[str]
    model_preferences: ModelPreferences
    tools: Sequence[Tool]
    tool_choice: ToolChoice
    metadata: Mapping[str, Any]
    key: str


class Asks:
    """The part of `Context` that asks. `key` names a question for good; without one they are numbered."""

    __slots__ = ("_asked", "_call")

    _call: Call
    _asked: int

    def _key(self, key: str | None) -> str:
        if key is not None:
            return key
        self._asked += 1
        return f"q{self._asked}"

    @overload
    async def elicit(
        self, message: str, form: Mapping[str, Any], *, key: str | None = None
    ) -> Elicited[dict[str, Any]]: ...

    @overload
    async def elicit(
        self, message: str, form: type[T] | Form[T], *, key: str | None = None
    ) -> Elicited[T]: ...

    async def elicit(
        self, message: str, form: type[Any] | Form[Any] | Mapping[str, Any], *, key: str | None = None
    ) -> Elicited[Any]:
        """Ask the person at the client to fill in a form.

        `form` is a class with simple fields, one simple type, a `Form`, or a schema. An answer that
        does not fit is asked for again.

        Raises:
            UsageError: the form is of a kind that there is not.
            Refusal: -32021, the client cannot be asked this.
            ToolError: the same on a revision that has no such error.
        """
        from dragoman.schema.forms import Form

        wanted: Form[Any] = form if isinstance(form, Form) else Form(form)
        params = ElicitFormParams(message=message, requested_schema=wanted.schema)
        request = ElicitRequest(params=params)
        name = self._key(key)
        for _ in range(TRIES):
            result = await self._answer(name, request, kind=ElicitResult)
            if result is not None:
                if result.action != "accept":
                    return Elicited(result.action)
                content = {} if result.content is UNSET else result.content
                if not wanted.faults(content):
                    return Elicited("accept", wanted.read(content))
            self._again(name)
        raise ToolError(f"no usable answer to {message!r} after {TRIES} questions")

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Elicited[None]:
        """Ask the person to open a page, for what this client must not see (client/elicitation: URL mode).

        Raises as `elicit`.
        """
        params = ElicitURLParams(message=message, url=url)
        name = self._key(key)
        if self._call.revision.elicitation_ids:
            params.elicitation_id = urandom(8).hex()
        for _ in range(TRIES):
            result = await self._answer(name, ElicitRequest(params=params), kind=ElicitResult)
            if result is not None:
                return Elicited(result.action)
            self._again(name)
        raise ToolError(f"no usable answer to {message!r} after {TRIES} questions")

    async def sample(
        self, messages: str | Sequence[str | SamplingMessage], **options: Unpack[SampleOptions]
    ) -> CreateMessageResult:
        """Ask the client's model. `max_tokens` is 1024 unless given.

        Raises as `elicit`.
        """
        listed = [messages] if isinstance(messages, str) else list(messages)
        said = [
            SamplingMessage(role="user", content=TextContent(text=m)) if isinstance(m, str) else m
            for m in listed
        ]
        key = options.pop("key", None)
        given: dict[str, Any] = {"max_tokens": 1024, **options}
        request = CreateMessageRequest(params=CreateMessageParams(messages=said, **given))
        return await self._required(self._key(key), request, kind=CreateMessageResult)

    async def list_roots(self, *, key: str | None = None) -> list[Root]:
        """The client's roots. Raises as `elicit`."""
        result = await self._required(self._key(key), ListRootsRequest(), kind=ListRootsResult)
        return result.roots

    async def _required(self, key: str, request: InputRequest, *, kind: type[T]) -> T:
        for _ in range(TRIES):
            result = await self._answer(key, request, kind=kind)
            if result is not None:
                return result
            self._again(key)
        raise ToolError(f"no usable answer to {request_method(request)}")

    async def _answer(self, key: str, request: InputRequest, *, kind: type[T]) -> T | None:
        """The client's answer; None for one of the wrong shape."""
        call = self._call
        request = posed(call, request)
        if call.revision.asks_inline and call.journal is None:
            record(call)  # whoever looks at the call afterwards sees that an answer is in it
            raw = await call.channel.ask(request_method(request), request_params(request))
            plain = msgspec.json.decode(raw)
        else:
            answers = record(call).answers
            if key not in answers:
                raise Suspend({key: request})
            plain = answers[key]
        try:
            return msgspec.convert(plain, kind)
        except (msgspec.ValidationError, ValueError):
            return None

    def _again(self, key: str) -> None:
        record(self._call).answers.pop(key, None)

    async def gather(self, *questions: Asked[Any]) -> tuple[Any, ...]:
        """Ask several questions at once: `a, b = await ctx.gather(ctx.elicit(...), ctx.sample(...))`."""
        if self._call.revision.asks_inline and self._call.journal is None:
            return tuple(await asyncio.gather(*questions))
        results: list[Any] = []
        missing: dict[str, InputRequest] = {}
        try:
            for question in questions:
                try:
                    results.append(await question)
                except Suspend as suspend:
                    missing.update(suspend.requests)
        finally:
            for question in questions:
                question.close()  # where one of them cannot be asked, those behind it never begin
        if missing:
            raise Suspend(missing)
        return tuple(results)

    async def step(
        self, key: str, function: Callable[..., Awaitable[T] | T], *arguments: Any, again: bool = False
    ) -> T:
        """Do something once, however often this call is entered again, and have its value.

        `function(*arguments)` may be async; its value has to be writable as JSON, and comes back as
        JSON's own types. Anything with an effect that stands before a question belongs into a step.

        In a task it holds across the end of a process as well. A step that was cut off in its middle
        may have had its effect: it raises ToolError, and is run only if `again` says that it may be.
        """
        steps = record(self._call).steps
        if key not in steps:
            keeper = self._call.keeper
            if keeper is None:
                steps[key] = await _value(function, arguments)
            else:
                steps[key] = await _kept(keeper, key, work=_value(function, arguments), again=again)
        return cast("T", steps[key])


async def _value(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    value = function(*arguments)
    if isawaitable(value):
        value = await value
    return msgspec.json.decode(msgspec.json.encode(value))


async def _kept(keeper: Keeper, key: str, *, work: Coroutine[Any, Any, Any], again: bool) -> Any:
    """The value of `work`, kept safe before anybody sees it."""
    try:
        await keeper.begin(key, again=again)
    except BaseException:
        work.close()  # it never ran
        raise
    try:
        value = await work
    except (Exception, Suspend):
        await keeper.failed(key)
        raise
    except BaseException:
        keeper.cut(key)
        raise
    await keeper.done(key, value)
    return value


def record(call: Call) -> Record:
    """The journal's record of this call; a fresh one where there is none."""
    if call.journal is not None:
        return call.journal.record
    if call.scratch is None:
        call.scratch = Record(expires=0.0)
    return call.scratch


def request_method(request: InputRequest) -> str:
    """The method of a request to the client."""
    return cast("str", type(request).__struct_config__.tag)


def request_params(request: InputRequest) -> Any:
    """The params of a request to the client; UNSET where it has none."""
    return getattr(request, "params", UNSET)


def posed(call: Call, request: InputRequest) -> InputRequest:
    """The request as the call's revision writes it, if the client declared what it needs.

    Raises:
        Refusal: -32021 with `data.requiredCapabilities` (2026-07-28, basic: `_meta`).
        ToolError: on a revision that has no such error, or no such request.
    """
    method = request_method(request)
    if method not in call.revision.client_methods:
        raise ToolError(f"revision {call.revision.version} has no {method}: the client cannot be asked")
    request = call.revision.ask(request)
    missing = _missing(call.caller.capabilities, request)
    if missing is None:
        return request
    if call.revision.asks_inline:
        raise ToolError(
            f"the client cannot be asked: it did not declare {msgspec.json.encode(missing).decode()}"
        )
    raise Refusal(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"This needs a client that can answer {method}, which it did not declare",
        {"requiredCapabilities": missing},
    )


def _missing(has: ClientCapabilities, request: InputRequest) -> dict[str, Any] | None:
    if isinstance(request, ListRootsRequest):
        return {"roots": {}} if has.roots is UNSET else None
    if isinstance(request, CreateMessageRequest):
        wants_tools = request.params.tools is not UNSET
        if has.sampling is UNSET or (wants_tools and "tools" not in has.sampling):
            return {"sampling": {"tools": {}} if wants_tools else {}}
        return None
    mode = "url" if request.params.mode == "url" else "form"
    # An empty `elicitation` means forms, as before there were modes (client/elicitation: Capabilities).
    if has.elicitation is UNSET or (
        mode not in has.elicitation and (mode == "url" or "url" in has.elicitation)
    ):
        return {"elicitation": {mode: {}}}
    return None
