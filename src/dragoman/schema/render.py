"""JSON Schema 2020-12 of Python types, drawn from what `msgspec` reads in them.

The decoder and the schema come from the same reading, so they agree. It refuses to know functions,
and types that need a library of their own come in through a hook.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, Literal, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect as mi

from dragoman.schema.docstring import clean
from dragoman.schema.shapes import class_of, is_array, is_object, is_sequence

Schema = dict[str, Any]
Mode = Literal["input", "output"]

DECIMAL: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""The strings that a `Decimal` is read from."""

_NAMED = (mi.StructType, mi.TypedDictType, mi.DataclassType, mi.NamedTupleType, mi.EnumType)
_JSON_TYPES: Final = {str: "string", int: "integer", bool: "boolean", float: "number", type(None): "null"}
_SIMPLE: Final[dict[type[mi.Type], Schema]] = {
    mi.AnyType: {},
    mi.RawType: {},
    mi.NoneType: {"type": "null"},
    mi.BoolType: {"type": "boolean"},
    mi.DateType: {"type": "string", "format": "date"},
    mi.TimeDeltaType: {"type": "string", "format": "duration"},
    mi.UUIDType: {"type": "string", "format": "uuid"},
    mi.DecimalType: {
        "anyOf": [{"type": "number"}, {"type": "string", "format": "decimal", "pattern": DECIMAL}],
    },
}


class Rendering:
    """Schemas of several types that share their definitions.

    `mode` matters where reading is more generous than writing: a `datetime` is asked for with an
    offset (RFC 3339) and accepted without, so only a result that may lack it says less. `hook`
    gives the schema of a type that msgspec does not know and raises `TypeError` if it cannot.

    Raises `TypeError` for a type that msgspec refuses.
    """

    def __init__(self, types: Iterable[Any], *, mode: Mode = "input", hook: Callable[[Any], Schema]) -> None:
        types = tuple(types)
        self._mode = mode
        self._hook = hook
        self._orders = dict(_literals(types))
        self._infos = mi.multi_type_info(types)
        named: dict[Any, mi.Type] = {}
        for info in self._infos:
            _collect(info, named)
        for cls, info in named.items():
            self._orders.update(_literals(_literal_fields(cls, info)))
        self._names = _unique_names(named)
        self.definitions: Schema = dict.fromkeys(self._names.values())
        self.schemas = [self.render(info) for info in self._infos]
        for cls, info in named.items():
            self.definitions[self._names[cls]] = self._define(info)

    def adopt(self, schema: Schema) -> Schema:
        """A schema made elsewhere; its `$defs` join the definitions, renamed where a name is taken."""
        schema = dict(schema)
        theirs: Schema = schema.pop("$defs", {})
        renamed: dict[str, str] = {}
        for name, definition in theirs.items():
            if name in self.definitions and self.definitions[name] != definition:
                renamed[f"#/$defs/{name}"] = f"#/$defs/{_free(name, self.definitions)}"
        for name, definition in theirs.items():
            reference = renamed.get(f"#/$defs/{name}", f"#/$defs/{name}")
            self.definitions[reference.removeprefix("#/$defs/")] = _pointed(definition, renamed)
        return cast("Schema", _pointed(schema, renamed))

    def render(self, info: mi.Type) -> Schema:
        """The schema of one type; what `Meta(extra_json_schema=)` says wins over what is derived."""
        said: Schema = {}
        while isinstance(info, mi.Metadata):
            more = cast("Schema | None", info.extra_json_schema)  # pyright: ignore[reportUnknownMemberType]  # a bare dict
            said = {**(more or {}), **said}
            info = info.type
        return {**self._plain(info), **said}

    def _plain(self, info: mi.Type) -> Schema:
        if isinstance(info, _NAMED):
            return {"$ref": f"#/$defs/{self._names[info.cls]}"}
        simple = _SIMPLE.get(type(info))
        if simple is not None:
            return dict(simple)
        return _RENDERERS[type(info)](self, info) if type(info) in _RENDERERS else self._custom(info)

    def _custom(self, info: mi.Type) -> Schema:
        return self.adopt(self._hook(getattr(info, "cls", info)))

    def render_number(self, info: Any) -> Schema:
        schema: Schema = {"type": "integer" if isinstance(info, mi.IntType) else "number"}
        names = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
        limits = (info.ge, info.gt, info.le, info.lt, info.multiple_of)
        return _with(schema, zip(names, limits, strict=True))

    def render_string(self, info: Any) -> Schema:
        names = ("minLength", "maxLength", "pattern")
        return _with(
            {"type": "string"}, zip(names, (info.min_length, info.max_length, info.pattern), strict=True)
        )

    def render_bytes(self, info: Any) -> Schema:
        lengths = (info.min_length, info.max_length)
        encoded = (None if length is None else 4 * ((length + 2) // 3) for length in lengths)
        schema: Schema = {"type": "string", "contentEncoding": "base64"}
        return _with(schema, zip(("minLength", "maxLength"), encoded, strict=True))

    def render_datetime(self, info: Any) -> Schema:
        zoned = info.tz is True or (info.tz is None and self._mode == "input")
        return {"type": "string", "format": "date-time"} if zoned else {"type": "string"}

    def render_time(self, info: Any) -> Schema:
        return {"type": "string", "format": "time"} if info.tz is True else {"type": "string"}

    def render_array(self, info: Any) -> Schema:
        schema: Schema = {"type": "array"}
        if not isinstance(info.item_type, mi.AnyType):
            schema["items"] = self.render(info.item_type)
        if isinstance(info, (mi.SetType, mi.FrozenSetType)):
            schema["uniqueItems"] = True
        return _with(schema, (("minItems", info.min_length), ("maxItems", info.max_length)))

    def render_tuple(self, info: Any) -> Schema:
        return _positions([self.render(item) for item in info.item_types], len(info.item_types))

    def render_dict(self, info: Any) -> Schema:
        schema: Schema = {"type": "object"}
        if isinstance(_bare(info.key_type), (mi.StrType, mi.LiteralType, mi.EnumType)):
            names = self.render(info.key_type)
            names.pop("type", None)
            if names:
                schema["propertyNames"] = names
        if not isinstance(info.value_type, mi.AnyType):
            schema["additionalProperties"] = self.render(info.value_type)
        return _with(schema, (("minProperties", info.min_length), ("maxProperties", info.max_length)))

    def render_union(self, info: Any) -> Schema:
        members = sorted(info.types, key=lambda member: isinstance(_bare(member), mi.NoneType))
        return {"anyOf": [self.render(member) for member in members]}

    def render_literal(self, info: Any) -> Schema:
        values: tuple[Any, ...] = info.values
        return _enumeration(self._orders.get(_key(values), values))

    def _define(self, info: Any) -> Schema:
        schema: Schema = {"title": _class_name(info.cls)}
        doc = _doc(info.cls)
        if doc:
            schema["description"] = doc
        if isinstance(info, mi.EnumType):
            members = {id(member): member.value for member in info.cls.__members__.values()}
            return {**schema, **_enumeration(members.values())}
        fields = [(field, self._field(field)) for field in _fields(info)]
        if isinstance(info, mi.NamedTupleType) or getattr(info, "array_like", False):
            return {**schema, **_record(info, fields)}
        properties: Schema = {}
        required_names: list[str] = []
        if getattr(info, "tag_field", None) is not None:
            properties[info.tag_field] = {"const": info.tag}
            required_names.append(info.tag_field)
        properties.update((field.encode_name, part) for field, part in fields)
        required_names.extend(field.encode_name for field, _ in fields if field.required)
        schema.update(type="object", properties=properties)
        if required_names:
            schema["required"] = required_names
        if getattr(info, "forbid_unknown_fields", False):
            schema["additionalProperties"] = False
        return schema

    def _field(self, field: mi.Field) -> Schema:
        schema = self.render(field.type)
        if field.default is not msgspec.NODEFAULT:
            return with_default(schema, field.default)
        if field.default_factory in (list, dict, set):
            return with_default(schema, field.default_factory())
        return schema


_RENDERERS: Final[dict[type[mi.Type], Callable[[Rendering, Any], Schema]]] = {
    mi.IntType: Rendering.render_number,
    mi.FloatType: Rendering.render_number,
    mi.StrType: Rendering.render_string,
    mi.BytesType: Rendering.render_bytes,
    mi.ByteArrayType: Rendering.render_bytes,
    mi.MemoryViewType: Rendering.render_bytes,
    mi.DateTimeType: Rendering.render_datetime,
    mi.TimeType: Rendering.render_time,
    mi.ListType: Rendering.render_array,
    mi.SetType: Rendering.render_array,
    mi.FrozenSetType: Rendering.render_array,
    mi.VarTupleType: Rendering.render_array,
    mi.TupleType: Rendering.render_tuple,
    mi.DictType: Rendering.render_dict,
    mi.UnionType: Rendering.render_union,
    mi.LiteralType: Rendering.render_literal,
}


def with_default(schema: Schema, default: Any, *, encode: Callable[[Any], Any] | None = None) -> Schema:
    """`schema` with `default`, if that is something JSON can say."""
    try:
        value = msgspec.to_builtins(default, str_keys=True, enc_hook=encode)
        text = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return schema
    return schema if _has_odd_float(value) else {**schema, "default": msgspec.json.decode(text)}


def object_root(schema: Schema, definitions: Schema) -> Schema | None:
    """`schema` with its definitions as one document whose root says `"type": "object"`.

    None if the schema is not that of an object. A root that is a reference is replaced by what it
    refers to; the definition stays if something else refers to it.
    """
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix("#/$defs/")
        target: Schema = definitions[name]
        rest = {key: value for key, value in definitions.items() if key != name}
        if any(found == reference for found in _references([target, *rest.values()])):
            rest = definitions
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        definitions = rest
    if schema.get("type") != "object":
        return None
    return {**schema, "$defs": definitions} if definitions else schema


def _references(schema: Any) -> Iterator[Any]:
    if is_object(schema):
        if "$ref" in schema:
            yield schema["$ref"]
        for value in schema.values():
            yield from _references(value)
    elif is_array(schema):
        for value in schema:
            yield from _references(value)


def _has_odd_float(value: Any) -> bool:
    if isinstance(value, float):
        return value - value != 0.0  # NaN and the infinities
    if is_object(value):
        return any(_has_odd_float(item) for item in value.values())
    return is_sequence(value) and any(map(_has_odd_float, value))


def _with(schema: Schema, pairs: Iterable[tuple[str, Any]]) -> Schema:
    schema.update((name, value) for name, value in pairs if value is not None)
    return schema


def _positions(parts: list[Schema], required: int) -> Schema:
    schema: Schema = {"type": "array", "minItems": required, "maxItems": len(parts)}
    if parts:
        schema["prefixItems"] = parts
        schema["items"] = False
    return schema


def _record(info: Any, fields: list[tuple[mi.Field, Schema]]) -> Schema:
    """A named tuple, or a struct that is written as an array."""
    parts = [part for _, part in fields]
    required = sum(1 for field, _ in fields if field.required)
    if getattr(info, "tag_field", None) is not None:
        parts.insert(0, {"const": info.tag})
        required += 1
    schema = _positions(parts, required)
    if isinstance(info, mi.StructType) and not info.forbid_unknown_fields:
        schema.pop("maxItems")
        schema.pop("items", None)
    return schema


def _fields(info: Any) -> Iterable[mi.Field]:
    fields: tuple[mi.Field, ...] = info.fields
    if not isinstance(info, mi.TypedDictType):
        return fields
    written = list(getattr(info.cls, "__origin__", info.cls).__annotations__)  # msgspec sorts them by name
    return sorted(fields, key=lambda field: written.index(field.name) if field.name in written else -1)


def _enumeration(values: Iterable[Any]) -> Schema:
    values = list(values)
    kinds = {_JSON_TYPES.get(class_of(value)) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, "enum": values} if kind else {"enum": values}


def _bare(info: mi.Type) -> mi.Type:
    while isinstance(info, mi.Metadata):
        info = info.type
    return info


def _literals(types: Iterable[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The values of each `Literal` in the order in which they were written; msgspec sorts them."""
    for annotation in types:
        if get_origin(annotation) is Literal:
            values = get_args(annotation)
            yield _key(values), values
        elif is_array(annotation):
            yield from _literals(annotation)
        else:
            yield from _literals(get_args(annotation))


def _literal_fields(cls: Any, info: mi.Type) -> Iterator[Any]:
    """The annotations of a class that has `Literal` fields; those of no other are evaluated."""
    if any(_has_literal(field.type) for field in getattr(info, "fields", ())):
        with suppress(NameError, TypeError):  # a local name: msgspec's order will do
            yield from get_type_hints(get_origin(cls) or cls, include_extras=True).values()


def _has_literal(info: Any) -> bool:
    if isinstance(info, mi.LiteralType):
        return True
    inner = (getattr(info, name, None) for name in ("type", "item_type", "value_type"))
    return any(_has_literal(part) for part in (*inner, *getattr(info, "types", ())) if part)


def _key(values: Iterable[Any]) -> frozenset[tuple[type, Any]]:
    return frozenset((class_of(value), value) for value in values)


def _collect(info: Any, named: dict[Any, mi.Type]) -> None:
    """Every type that gets a definition of its own, in the order of reading."""
    if isinstance(info, _NAMED):
        if info.cls in named:
            return
        named[info.cls] = info
    for field in getattr(info, "fields", ()):
        _collect(field.type, named)
    for name in ("type", "item_type", "key_type", "value_type"):
        inner = getattr(info, name, None)
        if isinstance(inner, mi.Type):
            _collect(inner, named)
    for name in ("types", "item_types"):
        for inner in getattr(info, name, ()):
            _collect(inner, named)


def _class_name(cls: Any) -> str:
    if hasattr(cls, "__origin__"):
        arguments = ", ".join(
            item.__name__ if isinstance(item, type) else repr(item) for item in cls.__args__
        )
        return f"{cls.__origin__.__name__}[{arguments}]"
    return str(cls.__name__)


def _unique_names(named: Iterable[Any]) -> dict[Any, str]:
    names: dict[Any, str] = {}
    for cls in named:
        short = re.sub(r"[^a-zA-Z0-9.\-_]+", "_", _class_name(cls)).strip("_")
        names[cls] = _free(short, names.values())
    return names


def _free(name: str, taken: Collection[str]) -> str:
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _pointed(schema: Any, renamed: dict[str, str]) -> Any:
    if not renamed:
        return schema
    if is_array(schema):
        return [_pointed(item, renamed) for item in schema]
    if is_object(schema):
        return {
            key: renamed.get(value, value)
            if key == "$ref" and isinstance(value, str)
            else _pointed(value, renamed)
            for key, value in schema.items()
        }
    return schema


def _doc(named: Any) -> str:
    """What the class says of itself: not what it inherits, nor what a decorator made up."""
    cls: Any = getattr(named, "__origin__", named)
    doc: Any = cls.__dict__.get("__doc__")
    if not isinstance(doc, str) or doc.startswith(f"{cls.__name__}(") or doc == "An enumeration.":
        return ""
    return "\n".join(clean(doc))
