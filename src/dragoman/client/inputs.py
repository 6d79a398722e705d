"""Answering what servers ask: a form, a page to open, a model's word, the roots.

The same answers serve both ways of asking, a request of the server's own and an `input_required`
result; this module does not know which of them it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from dragoman.client.options import ClientOptions, RootLike, SamplingHandler
from dragoman.errors import Refusal
from dragoman.jsonrpc.message import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Request,
    encode_error,
    encode_result,
)
from dragoman.model import (
    ClientCapabilities,
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    ElicitResult,
    EmptyResult,
    InputRequest,
    ListRootsResult,
    Params,
    Result,
    Root,
    TextContent,
)
from dragoman.model.tasks_extension import NAME
from dragoman.revisions import Revision
from dragoman.schema.shapes import is_object

log = logging.getLogger("dragoman.client")

ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"
ROOTS_CHANGED: Final = "notifications/roots/list_changed"
PING: Final = "ping"
REJECTED: Final = -1  # sampling: Error Handling

# Which server a handler is being asked for, under the name that the client has for it: a person has to be
# told who wants to know (elicitation: User Interaction Model).
asking: ContextVar[str] = ContextVar("asking", default="")

_read_elicit: Final = msgspec.json.Decoder(ElicitParams).decode
_read_sample: Final = msgspec.json.Decoder(CreateMessageParams).decode


class Inputs:
    """The caller's handlers, and what they let this client offer to servers."""

    def __init__(self, options: ClientOptions, server: str = "") -> None:
        self._options = options
        self._server = server

    def capabilities(self, revision: Revision) -> ClientCapabilities:
        """What servers may ask: only what there is a handler for, and only what the revision has."""
        options = self._options
        modes = {mode: dict[str, Any]() for mode in options.elicitation_modes}
        elicits = options.elicitation_handler is not None and ELICIT in revision.client_methods
        if not revision.elicitation_modes:
            # There were forms alone, and no word for them.
            elicits = elicits and "form" in modes
            modes = {}
        tools: dict[str, Any] = {"tools": {}} if options.sampling_tools else {}
        told: dict[str, Any] = {"listChanged": True} if ROOTS_CHANGED in revision.notifications else {}
        return ClientCapabilities(
            elicitation=modes if elicits else UNSET,
            sampling=UNSET if options.sampling_handler is None else tools,
            roots=UNSET if options.roots is None else told,
            extensions={NAME: {}} if options.tasks and not revision.handshake else UNSET,
        )

    def offers(self, mode: str) -> bool:
        """Whether there is a handler for elicitation in that mode: `form` or `url`."""
        return self._options.elicitation_handler is not None and mode in self._options.elicitation_modes

    async def respond(self, request: Request) -> bytes:
        """The encoded answer to a request of the server's own. Never raises but when it is cancelled."""
        try:
            return encode_result(request.id, await self._answer(request.method, _params(request)))
        except Refusal as exc:
            return encode_error(request.id, exc.code, exc.message)
        except Exception:
            log.exception("a handler failed for the server's %s", request.method)
            return encode_error(
                request.id, INTERNAL_ERROR, f"the client's handler for {request.method} failed"
            )

    async def fulfil(self, asked: Mapping[str, InputRequest]) -> dict[str, Any]:
        """The answers to the requests of an `input_required` result, under their keys; asked side by side.

        Raises:
            Refusal: one of them asks for what this client does not offer. Whatever ends one of them ends the
                others.
        """
        if len(asked) == 1:
            ((key, request),) = asked.items()
            return {key: await self._fulfilled(request)}
        loop = asyncio.get_running_loop()
        tasks = {key: loop.create_task(self._fulfilled(request)) for key, request in asked.items()}
        try:
            if tasks:
                await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks.values():
                if task.done():
                    task.result()
            return {key: task.result() for key, task in tasks.items()}
        finally:
            await _end(tasks.values())

    async def _fulfilled(self, request: InputRequest) -> Result:
        method: str = request.__struct_config__.tag  # type: ignore[assignment]  # each kind of request has its method as tag
        return await self._answer(method, request.params)

    async def _answer(self, method: str, params: Any) -> Result:
        options = self._options
        asking.set(self._server)
        if method == PING:
            return EmptyResult()
        if method == ELICIT and options.elicitation_handler is not None:
            return await self.elicit(params)
        if method == SAMPLE and options.sampling_handler is not None:
            return await self._sample(params, options.sampling_handler)
        if method == ROOTS and options.roots is not None:
            roots = options.roots() if callable(options.roots) else options.roots
            return ListRootsResult(
                roots=[_root(root) for root in (await roots if isawaitable(roots) else roots)]
            )
        raise Refusal(METHOD_NOT_FOUND, f"this client does not offer {method}")

    async def _sample(self, params: CreateMessageParams, handler: SamplingHandler) -> CreateMessageResult:
        if params.tools is not UNSET and not self._options.sampling_tools:
            raise Refusal(INVALID_PARAMS, "this client does not offer tools in sampling")
        answer = handler(params)
        return _sampled(await answer if isawaitable(answer) else answer)

    async def elicit(self, params: ElicitParams) -> ElicitResult:
        """What the handler answers to a form or a page.

        Raises:
            Refusal: its mode was not offered (elicitation: Error Handling).
        """
        mode = "url" if params.mode == "url" else "form"
        handler = self._options.elicitation_handler
        if handler is None or not self.offers(mode):
            raise Refusal(INVALID_PARAMS, f"this client does not offer elicitation in mode {mode!r}")
        asking.set(self._server)
        answer = handler(params)
        return _elicited(params, await answer if isawaitable(answer) else answer)


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel what still runs, and wait for it to be over."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, so that nobody reports it as lost


def _params(request: Request) -> Any:
    raw = request.params or b"{}"
    try:
        if request.method == ELICIT:
            return _read_elicit(raw)
        return _read_sample(raw) if request.method == SAMPLE else Params()
    except msgspec.ValidationError as exc:
        raise Refusal(INVALID_PARAMS, f"Invalid params: {exc}") from None


def _elicited(params: ElicitParams, answer: ElicitResult | Mapping[str, Any] | None) -> ElicitResult:
    if isinstance(answer, ElicitResult):
        return answer
    if answer is None:
        return ElicitResult(action="decline")
    if params.mode == "url":
        return ElicitResult(action="accept")  # the page has the answers (elicitation: URL Mode)
    # A form is shown filled in with its defaults; what the person did not touch is sent as it stood.
    return ElicitResult(action="accept", content={**_defaults(params), **answer})


def _sampled(answer: CreateMessageResult | str | None) -> CreateMessageResult:
    if answer is None:
        raise Refusal(REJECTED, "the sampling request was rejected")
    if isinstance(answer, str):
        text = TextContent(text=answer)
        return CreateMessageResult(role="assistant", content=text, model="unknown", stop_reason="endTurn")
    return answer


def _defaults(params: ElicitParams) -> dict[str, Any]:
    schema = {} if params.requested_schema is UNSET else params.requested_schema
    fields: Any = schema.get("properties")
    if not is_object(fields):
        return {}
    return {
        name: field["default"] for name, field in fields.items() if is_object(field) and "default" in field
    }


def _root(root: RootLike) -> Root:
    if isinstance(root, Root):
        return root
    if isinstance(root, Path):
        return Root(uri=root.absolute().as_uri(), name=root.name)
    return Root(uri=root if "://" in root else Path(root).absolute().as_uri())
