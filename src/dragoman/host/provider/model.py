"""`Model`: a model by its name, the API it speaks and where it is served. Its key is in the environment.

Nothing is sent here; see `http` and `sdk`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Self

from dragoman.errors import UsageError
from dragoman.host.models import APIS
from dragoman.host.models.base import Api
from dragoman.host.provider.http import HttpSpeaker, Service
from dragoman.host.provider.sdk import SdkSpeaker
from dragoman.host.provider.talk import AnyModel, Prices, Speaker
from dragoman.transports.http_base import HttpOptions, parse_address
from dragoman.transports.http_head import check_headers

ANTHROPIC: Final = "anthropic-messages"
RESPONSES: Final = "openai-responses"
CHAT: Final = "openai-chat"
GEMINI: Final = "gemini"
PREFIXES: Final[Mapping[str, str]] = {
    "anthropic": ANTHROPIC,
    "openai": RESPONSES,
    "google": GEMINI,
    **{name: name for name in (ANTHROPIC, RESPONSES, CHAT, GEMINI)},
}
"""What may stand before the colon in a model's text, and the API that it means."""

_FAMILIES: Final = {"claude": "anthropic", "gpt": "openai", "gemini": "gemini"}
_FORMS: Final = "anthropic:NAME, openai:NAME, openai-chat:NAME or gemini:NAME, or any NAME with a URL"


@dataclass(frozen=True, kw_only=True, repr=False)
class Model:
    """A model that is reached over HTTP, or by a provider's own client.

    `api` is one of `APIS`. Without `url`, it is the provider's own server, and the key is in the variable
    that the provider's own programs look into. With `url`, the base URL of any server that speaks the API,
    no key is sent unless `key_env` names the variable that has it. The key goes over https alone, or to
    this machine.

    `limit` are tokens of one answer, `prices` what they cost. `timeout` are seconds without a word from
    the server, `retries` how often a request that met a passing fault is sent again. `stream` is false for
    servers that cannot. `headers` go with every request, `more` are members of its body, and both win.
    `client` is a client object of the provider's own package (`AsyncAnthropic`, `AsyncOpenAI`), which then
    does the sending with its own settings.

    Raises:
        UsageError: the API is not known here, or the URL or a header cannot be used.
    """

    api: str
    model: str
    url: str | None = None
    key_env: str | None = None
    limit: int | None = None
    prices: Prices | None = None
    timeout: float = 120.0
    retries: int = 4
    stream: bool = True
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    http: HttpOptions = field(default_factory=HttpOptions)
    client: Any = None

    def __post_init__(self) -> None:
        if self.api not in APIS:
            raise UsageError(f"api: expected one of {', '.join(APIS)}; received {self.api!r}")
        if not self.model:
            raise UsageError("model: expected a name; received an empty text")
        parse_address(self.base)
        check_headers(self.headers)

    def __repr__(self) -> str:
        return f"Model(api={self.api!r}, model={self.model!r}, url={parse_address(self.base).shown!r})"

    @classmethod
    def of(cls, text: str, *, url: str | None = None, key_env: str | None = None) -> Self:
        """A model by a text such as `anthropic:claude-opus-4-5`; with `url`, also by its bare name.

        Raises:
            UsageError: it does not say which API is meant.
        """
        prefix, colon, name = text.partition(":")
        if colon and prefix in PREFIXES:
            return cls(api=PREFIXES[prefix], model=name, url=url, key_env=key_env)
        if url is None:
            api = next((api for start, api in _FAMILIES.items() if text.startswith(start)), None)
            hint = None if api is None else f"{api}:{text}"
            raise UsageError(f"model: expected {_FORMS}; received {text!r}", hint=hint)
        return cls(api=CHAT, model=text, url=url, key_env=key_env)

    # What the loop asks for --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model

    @property
    def speaks(self) -> Api:
        """The API's conversions."""
        return APIS[self.api]

    @property
    def base(self) -> str:
        """The base URL."""
        return self.speaks.endpoint.url if self.url is None else self.url

    def open(self) -> AbstractAsyncContextManager[Speaker]:
        """Get ready to ask. Raises UsageError where the key is missing, or would go out in the clear."""
        if self.client is not None:
            return SdkSpeaker(self.client, self.speaks, model=self.model, more=self.more, stream=self.stream)
        service = Service(
            api=self.speaks,
            model=self.model,
            base=self.base,
            key=self._key(),
            headers=self.headers,
            more=self.more,
            stream=self.stream,
            timeout=self.timeout,
            retries=self.retries,
            http=self.http,
            key_env=self._key_env(),
        )
        return HttpSpeaker(service)

    def _key_env(self) -> str | None:
        if self.key_env is not None or self.url is not None:
            return self.key_env
        return self.speaks.endpoint.key_env

    def _key(self) -> str | None:
        name = self._key_env()
        if name is None:
            return None
        key = os.environ.get(name, "").strip()
        if not key:
            hint = f"set {name}, or name another variable that has the key"
            raise UsageError(f"{self.api}: the environment variable {name} has no key", hint=hint)
        if not key.isascii() or not key.isprintable():
            raise UsageError(
                f"{self.api}: what {name} holds is no key: it has characters that no header carries"
            )
        address = parse_address(self.base)
        if address.scheme != "https" and not address.loopback:
            raise UsageError(
                f"{self.api}: the key would go to {address.shown} in the clear", hint="an https URL"
            )
        return key


def model_of(model: str | AnyModel) -> AnyModel:
    """The model that is meant. Raises UsageError for a text or an object that is none."""
    if isinstance(model, str):
        return Model.of(model)
    if not hasattr(model, "speaks"):
        kind = type(model).__name__
        raise UsageError(f"model: expected a Model, or a text such as 'anthropic:NAME'; received {kind}")
    return model
