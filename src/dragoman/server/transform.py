"""A tool in another shape: other names and texts, fixed and renamed arguments, nothing else changed.

Schema and call are changed by the same record, so that they agree. It refuses to know what the tool
does and where it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict, cast

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import UsageError
from dragoman.model import Icon, Result, ToolAnnotations
from dragoman.model import Tool as Entry
from dragoman.protocol.call import Call
from dragoman.schema.errors import ArgumentError, Fault
from dragoman.schema.explain import explain
from dragoman.schema.parameters import header_parameters
from dragoman.schema.validate import Validator
from dragoman.schema.wording import unknown_field
from dragoman.server.tool import Tool, tool_hints

# Members of an input schema that say nothing of single arguments, or say it in a place that is rewritten.
_PLAIN: Final = frozenset(
    "$schema $id $defs $comment title description type properties required additionalProperties".split()
)


class Transformation(TypedDict, total=False):
    """What `server.transform(...)` changes; everything else stays.

    `name`, `title`, `description`, `icons`, `annotations`, `meta`: in place of the tool's own.
    `tags`: in place of its tags. `fixed`: values for arguments that callers then neither see nor
    give. `renamed`: arguments by their old names, with the new ones. `described`: arguments by
    their old names, with other descriptions. `hidden`: True takes the tool out of lists and calls.
    `keep`: True leaves the tool as it is, and adds the new shape beside it, under another name.
    """

    name: str
    title: str
    description: str
    icons: Iterable[Icon]
    annotations: ToolAnnotations | Mapping[str, Any]
    meta: Mapping[str, Any]
    tags: Iterable[str]
    fixed: Mapping[str, Any]
    renamed: Mapping[str, str]
    described: Mapping[str, str]
    hidden: bool
    keep: bool


_read_object: Final = msgspec.json.Decoder(dict[str, Raw]).decode


@dataclass(frozen=True, slots=True)
class Rewrite:
    """From the arguments that callers give to those that the tool takes."""

    name: str
    schema: dict[str, Any]
    fixed: dict[str, Raw]
    renamed: dict[str, str]  # new -> old
    gone: frozenset[str]  # names that the tool takes, and callers must not give

    def arguments(self, source: bytes | Raw) -> Raw:
        """The tool's arguments.

        Raises:
            ArgumentError: they are no object, or name an argument that is fixed or was renamed.
        """
        try:
            given = _read_object(source)
        except msgspec.DecodeError as exc:
            raise ArgumentError(self.faults(source, ()), self.name) from exc
        hidden = self.gone & given.keys()
        if hidden:
            unknown = tuple(
                unknown_field([], name, received=msgspec.json.decode(given[name])) for name in sorted(hidden)
            )
            raise ArgumentError(self.faults(source, unknown), self.name)
        written = {self.renamed.get(name, name): value for name, value in given.items()}
        return Raw(msgspec.json.encode(written | self.fixed))

    def faults(self, source: bytes | Raw, otherwise: tuple[Fault, ...]) -> tuple[Fault, ...]:
        """What is wrong with `source`, in the words that callers know."""
        try:
            value = msgspec.json.decode(source)
        except msgspec.DecodeError as exc:
            return (Fault(field="", expected="valid JSON in UTF-8", received=str(exc)),)
        found = explain(self.schema, value)
        return found or tuple(map(self._outward, otherwise))

    def _outward(self, fault: Fault) -> Fault:
        """A fault with the argument's new name."""
        for new, old in self.renamed.items():
            if fault.field == old or fault.field.startswith((f"{old}.", f"{old}[")):
                return msgspec.structs.replace(fault, field=new + fault.field[len(old) :])
        return fault


class Transformed(Tool, kw_only=True, eq=False):
    """A tool in another shape."""

    origin: Tool
    rewrite: Rewrite

    async def run(self, call: Call) -> Result:
        """What the tool answers to the arguments as it takes them."""
        outside = call.params
        source = b"{}" if outside.arguments is UNSET else outside.arguments
        try:
            arguments = self.rewrite.arguments(source)
            self._try(arguments, source)
        except ArgumentError as exc:
            return self.refused(exc)
        call.params = msgspec.structs.replace(outside, name=self.origin.name, arguments=arguments)
        try:
            return await self.origin.run(call)
        finally:
            call.params = outside

    def _try(self, arguments: Raw, source: bytes | Raw) -> None:
        """Have the tool itself read them: what it refuses is told in the callers' words."""
        try:
            self.origin.decode(arguments)
        except ArgumentError as exc:
            raise ArgumentError(self.rewrite.faults(source, exc.faults), self.rewrite.name) from None

    def open_to(self, principal: str | None) -> bool:
        """As the tool itself."""
        return self.origin.open_to(principal)


def transformed(origin: Tool, options: Transformation) -> Tool:
    """`origin` in the shape that `options` say.

    Raises:
        UsageError: there is no such argument, a value does not fit, or two would have one name.
    """
    name = options.get("name", origin.name)
    if not name:
        raise UsageError(f"transform {origin.name}: a tool needs a name")
    rewrite = _rewrite(origin, name, options=options)

    def decode(source: bytes | Raw) -> dict[str, Any]:
        arguments = rewrite.arguments(source)
        try:
            return origin.decode(arguments)
        except ArgumentError as exc:
            raise ArgumentError(rewrite.faults(source, exc.faults), name) from None

    parts: dict[str, Any] = {name: getattr(origin, name) for name in Tool.__struct_fields__}
    changes: dict[str, Any] = {
        "entry": _entry(origin.entry, name, schema=rewrite.schema, options=options),
        "decode": decode,
        "headers": header_parameters(rewrite.schema),
        "tags": frozenset(options["tags"]) if "tags" in options else origin.tags,
    }
    return Transformed(**(parts | changes), origin=origin, rewrite=rewrite)


def _entry(entry: Entry, name: str, *, schema: dict[str, Any], options: Transformation) -> Entry:
    changes: dict[str, Any] = {
        key: cast("Any", options)[key] for key in ("title", "description") if key in options
    }
    if "icons" in options:
        changes["icons"] = list(options["icons"])
    if "meta" in options:
        changes["meta"] = dict(options["meta"])
    if "annotations" in options:
        changes["annotations"] = tool_hints(options["annotations"])
    return msgspec.structs.replace(entry, name=name, input_schema=schema, **changes)


def _rewrite(origin: Tool, name: str, *, options: Transformation) -> Rewrite:
    schema = origin.entry.input_schema
    fixed = dict(options.get("fixed", {}))
    renamed = dict(options.get("renamed", {}))
    described = dict(options.get("described", {}))
    _check_names(origin, fixed=fixed, renamed=renamed, described=described)
    for argument, value in fixed.items():
        _check_value(origin, argument, value=value)
    new = {old: new for old, new in renamed.items() if new != old}
    return Rewrite(
        name=name,
        schema=_schema(schema, fixed=frozenset(fixed), renamed=new, described=described),
        fixed={argument: Raw(msgspec.json.encode(value)) for argument, value in fixed.items()},
        renamed={outside: inside for inside, outside in new.items()},
        gone=(frozenset(fixed) | frozenset(new)) - frozenset(new.values()),
    )


def _check_names(
    origin: Tool, *, fixed: dict[str, Any], renamed: dict[str, str], described: dict[str, str]
) -> None:
    schema = origin.entry.input_schema
    known: dict[str, Any] = schema.get("properties", {})
    for argument in (*fixed, *renamed, *described):
        if argument not in known:
            has = ", ".join(known) or "none"
            raise UsageError(f"transform {origin.name}: there is no argument {argument!r} (there is: {has})")
    both = fixed.keys() & (renamed.keys() | described.keys())
    if both:
        raise UsageError(f"transform {origin.name}: {', '.join(sorted(both))} is fixed, so nobody sees it")
    seen: set[str] = set()
    for argument in known:
        shown = renamed.get(argument, argument)
        if argument not in fixed and shown in seen:
            raise UsageError(f"transform {origin.name}: two arguments would be named {shown!r}")
        if argument not in fixed:
            seen.add(shown)
    other = schema.keys() - _PLAIN
    if other and (fixed or renamed):
        raise UsageError(
            f"transform {origin.name}: its schema has {', '.join(sorted(other))}, which may name arguments",
            hint="write a tool of your own that calls it",
        )


def _check_value(origin: Tool, argument: str, *, value: Any) -> None:
    schema = origin.entry.input_schema
    alone = {**schema["properties"][argument]}
    if "$defs" in schema:
        alone["$defs"] = schema["$defs"]
    faults = Validator(alone).errors(msgspec.json.decode(msgspec.json.encode(value)))
    if faults:
        fault = faults[0]
        raise UsageError(
            f"transform {origin.name}: fixed[{argument!r}]: expected {fault.expected}, "
            f"received {fault.received}"
        )


def _schema(
    schema: dict[str, Any], *, fixed: frozenset[str], renamed: dict[str, str], described: dict[str, str]
) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for argument, part in schema.get("properties", {}).items():
        if argument not in fixed:
            text = described.get(argument)
            shown = renamed.get(argument) or argument
            properties[shown] = part if text is None else {**part, "description": text}
    changed = {**schema, "properties": properties}
    required = [renamed.get(name, name) for name in schema.get("required", ()) if name not in fixed]
    changed.pop("required", None)
    return {**changed, "required": required} if required else changed
