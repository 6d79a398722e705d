"""Types that msgspec does not read by itself: paths, addresses, and whatever pydantic reads.

pydantic is used when the program has imported it, and never imported from here. It refuses to know
what the values are for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, Final, get_args

import msgspec

from dragoman.errors import UsageError
from dragoman.schema.annotations import bare, plain_pattern
from dragoman.schema.shapes import class_of

_TEXTUAL: Final = {
    ("ipaddress", "IPv4Address"): "ipv4",
    ("ipaddress", "IPv6Address"): "ipv6",
    ("ipaddress", "IPv4Network"): None,
    ("ipaddress", "IPv6Network"): None,
    ("zoneinfo", "ZoneInfo"): None,
}
"""Classes that are read from and written as text, and their format; named so that nothing is imported."""


class Adapter(msgspec.Struct, frozen=True, eq=False):
    """pydantic's reader and writer of one annotation."""

    adapter: Any

    def decode(self, source: bytes | msgspec.Raw) -> Any:
        """The value of a JSON text, in strict mode. Raises `ValueError` (pydantic's)."""
        return self.adapter.validate_json(bytes(source), strict=True)

    def schema(self, mode: str) -> dict[str, Any]:
        """The schema, with its own `$defs`; `mode` is `input` or `output`."""
        schema: dict[str, Any] = self.adapter.json_schema(
            mode="validation" if mode == "input" else "serialization"
        )
        return schema

    def encode(self, value: Any) -> bytes:
        """`value` as JSON. Raises `ValueError` if it is not of the type and cannot be read as such."""
        try:
            text: bytes = self.adapter.dump_json(value, by_alias=True, warnings="error")
        except ValueError:
            value = self.adapter.validate_python(value)
            text = self.adapter.dump_json(value, by_alias=True, warnings="error")
        return text

    def plain(self, value: Any) -> Any:
        """`value` as JSON would say it, as Python builtins."""
        return self.adapter.dump_python(value, mode="json", by_alias=True)


def adapter_for(annotation: Any, name: str) -> Adapter | None:
    """A pydantic adapter if only pydantic can read the annotation, else None.

    Raises `UsageError`, naming the parameter `name`, if pydantic cannot read it either.
    """
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not needs_pydantic(annotation):
        return None
    try:
        return Adapter(pydantic.TypeAdapter(_without_names(annotation)))
    except pydantic.errors.PydanticUserError as error:
        if not needs_pydantic(annotation, beside_models=True):
            return None  # models among types that only msgspec reads: its hook reads the models
        raise UsageError(f"pydantic cannot read the annotation of {name}: {error}") from error


def _without_names(annotation: Any) -> Any:
    """The annotation with the constraints of its `Field`s only: names and defaults are the signature's."""
    metadata: list[Any] = []
    for item in getattr(annotation, "__metadata__", ()):
        if type(item).__name__ != "FieldInfo":
            metadata.append(item)
            continue
        metadata.extend(item.metadata)
        if item.discriminator is not None:
            metadata.append(type(item)(discriminator=item.discriminator))
    return Annotated[(annotation.__origin__, *metadata)] if metadata else bare(annotation)


def needs_pydantic(annotation: Any, *, beside_models: bool = False) -> bool:
    """Whether something in the annotation, models perhaps left aside, is known to pydantic alone."""
    if any(_is_pydantic_metadata(item) for item in getattr(annotation, "__metadata__", ())):
        return True
    if isinstance(annotation, type) and _has_core_schema(annotation):
        return not (beside_models and hasattr(annotation, "model_fields"))
    return any(
        needs_pydantic(item, beside_models=beside_models)
        for item in get_args(annotation)
        if not isinstance(item, (str, int, bytes))
    )


def _has_core_schema(item: Any) -> bool:
    return hasattr(item, "__pydantic_core_schema__") or hasattr(item, "__get_pydantic_core_schema__")


def _is_pydantic_metadata(item: Any) -> bool:
    """Whether this piece of `Annotated` does more than `msgspec.Meta` can say."""
    kind = class_of(item)
    if kind.__module__.partition(".")[0] not in ("pydantic", "pydantic_core", "annotated_types"):
        return _has_core_schema(item)
    if kind.__name__ == "FieldInfo":
        return item.discriminator is not None or any(_is_pydantic_metadata(part) for part in item.metadata)
    if kind.__name__ == "StringConstraints":
        return bool(item.strip_whitespace or item.to_upper or item.to_lower)
    if kind.__name__ == "Strict":
        return not item.strict
    if kind.__name__ == "_PydanticGeneralMetadata":
        return any(name != "pattern" or plain_pattern(value) is None for name, value in item.__dict__.items())
    return kind.__module__.partition(".")[0] != "annotated_types" or kind.__name__ in (
        "Predicate",
        "Timezone",
    )


def decode_hook(cls: type, value: Any) -> Any:
    """Msgspec's `dec_hook`. Raises `ValueError` for a bad value, `NotImplementedError` for a bad type."""
    if cls is object:
        return value
    if hasattr(cls, "__pydantic_core_schema__"):
        text = msgspec.json.encode(value)
        return sys.modules["pydantic"].TypeAdapter(cls).validate_json(text, strict=True)
    if is_textual(cls):
        if not isinstance(value, str):
            raise TypeError(f"Expected `str`, got `{_json_name(value)}`")
        return cls(value)
    raise NotImplementedError(f"nothing reads {cls!r}")


def encode_hook(value: Any) -> Any:
    """Msgspec's `enc_hook`. Raises `TypeError` for what has no form in JSON."""
    kind = class_of(value)
    if hasattr(kind, "__pydantic_core_schema__"):
        return value.model_dump(mode="json", by_alias=True)
    if is_textual(kind):
        return str(value)
    raise TypeError(f"a value of type {kind.__qualname__} has no form in JSON")


def schema_hook(mode: str) -> Callable[[Any], dict[str, Any]]:
    """What `Rendering` asks about a class that msgspec does not know."""

    def schema_of(cls: Any) -> dict[str, Any]:
        if cls is object:
            return {}
        if isinstance(cls, type) and is_textual(cls):
            form = "path" if is_path(cls) else _TEXTUAL[cls.__module__, cls.__name__]
            return {"type": "string", "format": form} if form else {"type": "string"}
        if isinstance(cls, type) and hasattr(cls, "__pydantic_core_schema__"):
            return Adapter(sys.modules["pydantic"].TypeAdapter(cls)).schema(mode)
        raise TypeError(f"nothing reads {getattr(cls, '__qualname__', cls)} from JSON")

    return schema_of


def is_textual(cls: type) -> bool:
    """Whether values of this class are strings in JSON."""
    return (cls.__module__, cls.__name__) in _TEXTUAL or is_path(cls)


def is_path(cls: Any) -> bool:
    """Whether this is a class of `pathlib`."""
    module = sys.modules.get("pathlib")
    return module is not None and isinstance(cls, type) and issubclass(cls, module.PurePath)


def _json_name(value: Any) -> str:
    kind = class_of(value)
    return str({dict: "object", list: "array", type(None): "null"}.get(kind, kind.__name__))
