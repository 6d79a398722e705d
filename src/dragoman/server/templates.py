"""Resource templates: one function for a family of URIs, its arguments read out of the URI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET, Struct

from dragoman.errors import ResourceNotFound, UsageError
from dragoman.model import ResourceTemplate as Entry
from dragoman.protocol.call import Call
from dragoman.protocol.uritemplate import UriTemplate
from dragoman.schema.errors import ArgumentError
from dragoman.schema.options import check_options
from dragoman.server.completion import Suggest, completers
from dragoman.server.context import Context
from dragoman.server.function import Function
from dragoman.server.registry import Registry
from dragoman.server.resources import Hints, Readable, ResourceOptions, described
from dragoman.server.textual import TextFunction


class Template(Struct, eq=False):
    """A resource template of a server."""

    entry: Entry
    uris: UriTemplate
    function: TextFunction
    hints: Hints
    tags: frozenset[str]
    completers: Mapping[str, Suggest]

    @property
    def name(self) -> str:
        """The template itself: what it is known by."""
        return self.entry.uri_template

    @property
    def mime_type(self) -> str | None:
        """Of its contents, if that was said."""
        return None if self.entry.mime_type is UNSET else self.entry.mime_type

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its variables."""
        return self.uris.variables

    async def produce(self, call: Call, context: Context, *, arguments: Mapping[str, Any]) -> Any:
        """The value that its contents are made of."""
        return await self.function.call(call, context, arguments=arguments)


class Matching:
    """Which template a URI belongs to."""

    def __init__(self, templates: Registry[Template]) -> None:
        self._templates = templates

    def find(self, uri: str, sees: Callable[[Any], bool]) -> tuple[Readable, dict[str, Any]]:
        """The first template of those it `sees` that `uri` fits, values included, and its arguments.

        Raises:
            ResourceNotFound: there is none; the text tells of values that did not fit.
        """
        fault: ArgumentError | None = None
        for template in self._templates:
            texts = template.uris.match(uri)
            if texts is None or not sees(template):
                continue
            try:
                return template, template.function.texts.read(texts)
            except ArgumentError as exc:
                # `orders://{number}` may stand beside `orders://{name}`: the next one may take it.
                fault = fault or exc
        said = f"Resource not found: {uri}"
        if fault is not None:
            said += "".join(f"\n- {each}" for each in fault.faults)
        raise ResourceNotFound(said)


def build(uri_template: str, function: Function, *, options: ResourceOptions) -> Template:
    """A template made of a function, whose parameters have the names of the variables.

    Raises:
        UsageError: no URI template, a variable without its parameter, a required parameter without
            its variable, or a bad option.
    """
    uris = UriTemplate(uri_template)
    check_options(options, ResourceOptions.__optional_keys__, of="a resource")
    if "size" in options:
        raise UsageError("size: a template has none, only a resource has")
    made = TextFunction.of(function, "resource", inline=options.get("inline", False))
    signature = made.signature
    known = {argument.wire: argument for argument in signature.arguments}
    open_ = signature.input_schema["additionalProperties"] is not False
    for name in uris.variables:
        if name not in known and not open_:
            raise UsageError(f"{uri_template} has {{{name}}}, which {signature.name}() has no parameter for")
    for name, argument in known.items():
        if argument.required and name not in uris.variables:
            raise UsageError(f"{signature.name}() asks for {name}, which {uri_template} has no variable for")
    shown = described(options)
    shown["name"] = made.named("resource", options.get("name"))
    if signature.description:
        shown.setdefault("description", signature.description)
    return Template(
        entry=Entry(uri_template=uri_template, **shown),
        uris=uris,
        function=made,
        hints=Hints.of(options),
        tags=frozenset(options.get("tags", ())),
        completers=completers(signature, options.get("complete", {}), names=uris.variables),
    )
