"""Suggestions for the arguments of prompts and of resource templates (server/utilities/completion)."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeGuard, cast

from dragoman.errors import Refusal, UsageError
from dragoman.model import CompleteParams, CompleteResult, Completion, PromptReference
from dragoman.protocol.call import Call
from dragoman.schema.references import resolve
from dragoman.schema.shapes import is_array, is_object
from dragoman.schema.signature import Signature
from dragoman.server.context import Context
from dragoman.server.function import Function
from dragoman.server.textual import PASSED, TextFunction, failure

MAX_VALUES: Final = 100  # in one answer (utilities/completion: Completion Results)

# Values to choose from, or a function of what was typed so far, of the arguments that are settled, of
# both, and of a `Context`, that returns the values which suit, the best first.
Source: TypeAlias = Sequence[str] | type[enum.Enum] | Callable[..., Any]
_Found: TypeAlias = Completion | Sequence[str]
Suggest: TypeAlias = Callable[[Call], Awaitable[_Found]]


class Completed(Protocol):
    """A prompt or a template: the names of its arguments, and where suggestions for them come from."""

    @property
    def name(self) -> str:
        """What it is called by."""
        ...

    @property
    def arguments(self) -> Sequence[str]:
        """All of them."""
        ...

    @property
    def completers(self) -> Mapping[str, Suggest]:
        """By name, for those that have any."""
        ...


Find: TypeAlias = Callable[[str, str | None], Completed | None]


class Completions:
    """All suggestions of one server.

    `prompt` and `resource` find what a reference names, for a principal: a prompt by its name, a
    template by itself or by a URI that fits.
    """

    def __init__(
        self, prompt: Find, resource: Find, *, everything: Callable[[], Iterable[Completed]]
    ) -> None:
        self._prompt = prompt
        self._resource = resource
        self._everything = everything
        self._sources: dict[tuple[str, str], Suggest] = {}

    def add(self, name: str, argument: str, *, source: Source) -> None:
        """Suggest for `argument` of the prompt or the URI template `name`, in place of what it has.

        Raises:
            UsageError: there are suggestions for it already, or the source is none.
        """
        if (name, argument) in self._sources:
            raise UsageError(f"there are suggestions for {argument} of {name!r} already")
        self._sources[name, argument] = _completer(source)

    @property
    def offered(self) -> bool:
        """Whether anything is ever suggested."""
        return bool(self._sources) or any(item.completers for item in self._everything())

    def source(self, item: Completed, argument: str) -> Suggest | None:
        """What suggests for one argument; None where nothing does."""
        return self._sources.get((item.name, argument)) or item.completers.get(argument)

    async def complete(self, call: Call) -> CompleteResult:
        """Answer `completion/complete`.

        Raises:
            Refusal: -32601 where nothing is ever suggested, -32602 for a prompt, template or argument
                that there is not, -32603 when the function failed.
        """
        if not self.offered:
            raise Refusal(-32601, "Method not found: completion/complete", {"method": call.method.name})
        params: CompleteParams = call.params
        item, name = self._referred(params, call.principal)
        argument = params.argument.name
        if argument not in item.arguments:
            known = ", ".join(item.arguments) or "none"
            raise Refusal(
                -32602, f"Unknown argument: {name} has no {argument} (it has {known})", {"argument": argument}
            )
        completer = self.source(item, argument)
        if completer is None:
            return CompleteResult(completion=Completion(values=[], total=0, has_more=False))
        try:
            found = await completer(call)
        except PASSED:
            raise
        except BaseException as exc:  # noqa: BLE001  # whatever the author's function raises
            raise failure(exc, f"{name}, {argument}") from None
        return CompleteResult(completion=_limited(found))

    def _referred(self, params: CompleteParams, principal: str | None) -> tuple[Completed, str]:
        reference = params.ref
        if isinstance(reference, PromptReference):
            item, name, noun = self._prompt(reference.name, principal), reference.name, "prompt"
        else:
            item, name, noun = self._resource(reference.uri, principal), reference.uri, "resource template"
        if item is None:
            raise Refusal(-32602, f"Unknown {noun}: {name}", {"ref": name})
        return item, item.name


def completers(
    signature: Signature, given: Mapping[str, Source], *, names: Iterable[str]
) -> dict[str, Suggest]:
    """What suggests for the arguments `names`: what was `given`, or else the values their types have.

    Raises:
        UsageError: something was given for an argument that there is not.
    """
    names = list(names)
    for name in given:
        if name not in names:
            raise UsageError(f"complete: {signature.name} has no argument {name} (it has {', '.join(names)})")
    properties = signature.input_schema["properties"]
    found: dict[str, Suggest] = {}
    for name in names:
        values = _values(properties.get(name), signature.input_schema)
        if name in given:
            found[name] = _completer(given[name])
        elif values:
            found[name] = _chosen(values)
    return found


def _values(schema: Any, root: dict[str, Any]) -> list[str]:
    """All values that a schema leaves to choose from, as texts; empty where there are too many."""
    for _ in range(8):
        if not is_object(schema) or "$ref" not in schema:
            break
        schema = resolve(root, schema["$ref"])
    if not is_object(schema):
        return []
    if schema.get("type") == "boolean":
        return ["true", "false"]
    members = schema.get("anyOf")
    if is_array(members):
        rest = [member for member in members if member != {"type": "null"}]
        return _values(rest[0], root) if len(rest) == 1 else []
    chosen = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return [item if isinstance(item, str) else str(item) for item in chosen if item is not None]


def _completer(source: Source) -> Suggest:
    if isinstance(source, enum.EnumType):
        return _chosen([str(member.value) for member in cast("type[enum.Enum]", source)])
    if callable(source):
        return _asked(source)
    if isinstance(source, str) or not _are_texts(source):
        raise UsageError("suggestions are a sequence of strings, an enum, or a function of what was typed")
    return _chosen(list(source))


def _are_texts(source: Any) -> TypeGuard[Sequence[str]]:
    try:
        return all(isinstance(value, str) for value in source)
    except TypeError:  # nothing to go through
        return False


def _chosen(values: Sequence[str]) -> Suggest:
    folded = [(value.casefold(), value) for value in values]

    async def complete(call: Call) -> _Found:
        typed = call.params.argument.value.casefold()
        first = [value for text, value in folded if text.startswith(typed)]
        return first + [value for text, value in folded if typed in text and not text.startswith(typed)]

    return complete


def _asked(function: Function) -> Suggest:
    made = TextFunction.of(function, "completion")
    takes = [argument.name for argument in made.signature.arguments]
    if not 1 <= len(takes) <= 2:
        raise UsageError(
            f"{made.signature.name}() has to take what was typed, and may take the settled arguments "
            f"beside it; it takes {', '.join(takes) or 'nothing'}"
        )

    async def complete(call: Call) -> _Found:
        context = call.params.context
        settled = {} if not context or not context.arguments else dict(context.arguments)
        given = dict(zip(takes, (call.params.argument.value, settled), strict=False))
        return _found(await made.call(call, Context(call), arguments=given))

    return complete


def _found(value: Any) -> _Found:
    if value is None:
        return []
    if isinstance(value, CompleteResult):
        return value.completion
    if isinstance(value, Completion):
        return value
    values = [value] if isinstance(value, str) else list(cast("Iterable[Any]", value))
    return [str(item.value if isinstance(item, enum.Enum) else item) for item in values]


def _limited(found: _Found) -> Completion:
    if isinstance(found, Completion):
        if len(found.values) <= MAX_VALUES:
            return found
        return Completion(values=found.values[:MAX_VALUES], total=found.total, has_more=True)
    return Completion(values=list(found[:MAX_VALUES]), total=len(found), has_more=len(found) > MAX_VALUES)
