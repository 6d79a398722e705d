"""Models through a client object of a provider's own package: it sends, with its own key and settings.

The packages are not imported: what is used of a client is one method, and one of what that gives.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Mapping
from inspect import isawaitable
from types import TracebackType
from typing import Any, Final, Self

from dragoman.errors import UsageError
from dragoman.host.models.base import Api, Failed, TextDelta
from dragoman.host.provider.fault import Cover, ModelError, broken_off
from dragoman.host.provider.talk import Heard, ModelRequest

# Where the method is, for each API.
_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic-messages": ("messages", "create"),
    "openai-responses": ("responses", "create"),
    "openai-chat": ("chat", "completions", "create"),
}


class SdkSpeaker:
    """A `talk.Speaker` over `AsyncAnthropic` or `AsyncOpenAI`, or what looks like them.

    Raises:
        UsageError: the object has no such method, or there is none for the API.
    """

    def __init__(
        self, client: Any, api: Api, *, model: str, more: Mapping[str, Any], stream: bool = True
    ) -> None:
        path = _METHODS.get(api.name)
        if path is None:
            raise UsageError(
                f"client: {api.name} is spoken without one; expected one of {', '.join(_METHODS)}"
            )
        method = client
        for name in path:
            method = getattr(method, name, None)
        if not callable(method):
            kind = type(client).__name__
            raise UsageError(f"client: expected an object with {'.'.join(path)}; received {kind}")
        key = getattr(client, "api_key", None)
        self._cover = Cover([key] if isinstance(key, str) else [])
        self._server = type(client).__name__
        self._create: Callable[..., Any] = method
        self._api = api
        self._model = model
        self._more = more
        self._stream = stream

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The client is its owner's, who closes it."""

    async def answer(self, request: ModelRequest, hear: Callable[[Heard], None]) -> Mapping[str, Any]:
        """See `talk.Speaker.answer`.

        Raises:
            ModelError: the client raised, or the API said error.
        """
        body = self._api.request(
            model=self._model,
            history=request.history,
            tools=request.tools,
            system=request.system,
            limit=request.limit,
            stream=self._stream,
        )
        try:
            made = self._create(**body, extra_body=dict(self._more) or None)
            if not isawaitable(made):
                raise UsageError(f"client: expected an asynchronous one; received {self._server}")
            answer = await made
            if self._stream:
                return await self._read(answer, hear)
        except (UsageError, ModelError):
            raise
        except Exception as exc:  # noqa: BLE001 - the client's own errors are classes of its package
            raise self._raised(exc) from None
        message = _plain(answer)
        text = self._api.text(message)
        if text:
            hear(TextDelta(text))
        return message

    async def _read(self, stream: AsyncIterable[Any], hear: Callable[[Heard], None]) -> Mapping[str, Any]:
        reader = self._api.reader()
        async for event in stream:
            for delta in reader.feed(_plain(event)):
                if isinstance(delta, Failed):
                    raise broken_off(delta, server=self._server, cover=self._cover)
                hear(delta)
        if not reader.done:
            raise ModelError("the stream ended before the answer did", server=self._server)
        return reader.message()

    def _raised(self, exc: Exception) -> ModelError:
        error = ModelError(f"{type(exc).__name__}: {self._cover(str(exc))}", server=self._server)
        status = getattr(exc, "status_code", None)
        error.status = status if isinstance(status, int) else None
        return error


def _plain(value: Any) -> dict[str, Any]:
    """An object of a provider's package as it stood on the wire."""
    plain: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return plain
