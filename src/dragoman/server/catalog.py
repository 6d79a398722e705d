"""What a server offers beside tools: prompts, resources and their templates, and suggestions for both.

It holds the registries together and answers by method. It refuses to know how a call came in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from itertools import chain
from typing import Any, TypeAlias

from msgspec import UNSET, Struct

from dragoman.errors import Refusal, ResourceNotFound, UsageError
from dragoman.model import (
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    Result,
    ServerCapabilities,
)
from dragoman.protocol.call import Call
from dragoman.protocol.uritemplate import encoded
from dragoman.server.completion import Completed, Completions, Suggest
from dragoman.server.function import Function
from dragoman.server.middleware import Handler
from dragoman.server.prompts import Prompt, PromptOptions
from dragoman.server.prompts import build as build_prompt
from dragoman.server.registry import Paging, Registry
from dragoman.server.resources import Hints, Reading, Resource, ResourceOptions, Static
from dragoman.server.resources import build as build_resource
from dragoman.server.subscriptions import Kind
from dragoman.server.templates import Matching, Template
from dragoman.server.templates import build as build_template

# What picks those that a principal sees; None where everybody sees all.
Seen: TypeAlias = Callable[[str | None], Callable[[Any], bool] | None]
InRounds: TypeAlias = Callable[[Call, Handler], Awaitable[Result]]


class _Fixed(Struct, frozen=True):
    """A resource without variables, as completion sees it."""

    name: str
    arguments: tuple[str, ...] = ()
    completers: dict[str, Suggest] = {}


class Catalog:
    """Everything but the tools. `changed` is called with the kind of list that did."""

    def __init__(self, paging: Paging, *, seen: Seen, changed: Callable[[Kind], None]) -> None:
        self._seen = seen
        self.prompts = Registry[Prompt](
            "prompt", member="prompts", result=ListPromptsResult, paging=paging.of("prompts/list")
        )
        self.resources = Registry[Resource](
            "resource", member="resources", result=ListResourcesResult, paging=paging.of("resources/list")
        )
        self.templates = Registry[Template](
            "resource template",
            member="resource_templates",
            result=ListResourceTemplatesResult,
            paging=paging.of("resources/templates/list"),
        )
        self.prompts.on_change = lambda: changed("prompts")
        self.resources.on_change = self.templates.on_change = lambda: changed("resources")
        self.reading = Reading(self.resources, Matching(self.templates), sees=self._sees)
        self.reading.hints = Hints(**paging.hints.get("resources/read", {}))
        self.completions = Completions(self._prompt, self._resource, everything=self._completed)

    def add_resource(self, uri: str, source: Function | Static, *, options: ResourceOptions) -> None:
        """Add a resource, or a template where the URI has variables. Raises UsageError."""
        if "{" not in uri:
            self.resources.add(build_resource(uri, source, options=options))
        elif callable(source):
            self.templates.add(build_template(uri, source, options=options))
        else:
            raise UsageError(f"{uri} is a template: it needs a function of its variables")

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template. Raises UsageError if there is none."""
        if "{" in uri:
            self.templates.remove(uri)
        else:
            self.resources.remove(encoded(uri))

    def add_prompt(self, function: Function, options: PromptOptions) -> None:
        """Add a prompt. Raises UsageError."""
        self.prompts.add(build_prompt(function, options))

    def declare(self, capabilities: ServerCapabilities, kinds: Collection[Kind]) -> None:
        """Add what these `kinds` of lists, and completion, come to among the capabilities."""
        if "prompts" in kinds:
            capabilities.prompts = {"listChanged": True}
        if "resources" in kinds:
            capabilities.resources = {"listChanged": True, "subscribe": True}
        if self.completions.offered:
            capabilities.completions = {}

    def routes(self, kind: Kind, in_rounds: InRounds) -> dict[str, Handler]:
        """What answers the methods of one kind. Until there is one of it, they do not exist."""
        completion: dict[str, Handler] = {"completion/complete": self.completions.complete}
        if kind == "prompts":
            return completion | {
                "prompts/list": self._lister(self.prompts),
                "prompts/get": self._getter(in_rounds),
            }
        if kind == "resources":
            return completion | {
                "resources/list": self._lister(self.resources),
                "resources/templates/list": self._lister(self.templates),
                "resources/read": self._reader(in_rounds),
                "resources/subscribe": self.reading.subscribe,
                "resources/unsubscribe": self.reading.unsubscribe,
            }
        return {}

    def _lister(self, registry: Registry[Any]) -> Handler:
        async def answer(call: Call) -> Result:
            cursor = call.params.cursor
            return registry.page(None if cursor is UNSET else cursor, self._seen(call.principal))

        return answer

    def _getter(self, in_rounds: InRounds) -> Handler:
        async def answer(call: Call) -> Result:
            name = call.params.name
            prompt = self._prompt(name, call.principal)
            if prompt is None:
                raise Refusal(-32602, f"Unknown prompt: {name}", {"name": name})
            return await in_rounds(call, prompt.get)

        return answer

    def _reader(self, in_rounds: InRounds) -> Handler:
        async def answer(call: Call) -> Result:
            return await in_rounds(call, self.reading.read)

        return answer

    def hidden(self, uri: str, principal: str | None) -> bool:
        """Whether what stands at `uri` is there for others, and not for this principal."""
        if self._seen(principal) is None:
            return False
        try:
            self.reading.find(uri, principal)
        except ResourceNotFound:
            return self.reading.exists(uri)
        return False

    def _sees(self, item: Any, principal: str | None) -> bool:
        seen = self._seen(principal)
        return seen is None or seen(item)

    def _prompt(self, name: str, principal: str | None) -> Prompt | None:
        prompt = self.prompts.get(name)
        return prompt if prompt is not None and self._sees(prompt, principal) else None

    def _resource(self, uri: str, principal: str | None) -> Completed | None:
        """A template by itself, or by a URI of its family (utilities/completion: Data Types)."""
        template = self.templates.get(uri)
        if template is not None:
            return template if self._sees(template, principal) else None
        try:
            found, _ = self.reading.find(uri, principal)
        except ResourceNotFound:
            return None
        return found if isinstance(found, Template) else _Fixed(uri)

    def _completed(self) -> Iterable[Completed]:
        return chain(self.prompts, self.templates)
