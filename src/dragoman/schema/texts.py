"""Arguments that arrive as text, as those of prompts and URI templates do, read as their types.

`"5"` is an integer where one is asked for, and text where text is. It refuses to know where the
text came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from dragoman.errors import UsageError
from dragoman.schema.annotations import anchored
from dragoman.schema.errors import ArgumentError, Fault, SchemaError
from dragoman.schema.foreign import decode_hook
from dragoman.schema.signature import Argument, Signature
from dragoman.schema.wording import describe, snippet, unknown_field

_REFUSALS: Final = (ValueError, RecursionError)  # msgspec's and pydantic's are both a ValueError


class Texts:
    """The reader of a function's arguments out of texts by name."""

    def __init__(self, signature: Signature) -> None:
        self._name = signature.name
        self._arguments = {argument.wire: argument for argument in signature.arguments}
        self._kinds = {wire: anchored(argument.type) for wire, argument in self._arguments.items()}
        self._schema = signature.input_schema
        self._validator = signature.validator
        self._open = signature.input_schema["additionalProperties"] is not False
        self._taken = frozenset(argument.name for argument in signature.arguments)

    def read(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Keyword arguments for the function.

        A text is read as the parameter's type: a number, a truth value, an enum's value, a date; as
        JSON where the type is an object or an array. An empty text that the type cannot hold stands
        for nothing, since forms send one for each field that was left alone.

        Raises:
            ArgumentError: with every fault.
        """
        keywords: dict[str, Any] = {}
        faults = list(self._unknown(texts))
        for wire, argument in self._arguments.items():
            text = texts.get(wire)
            try:
                if text is not None:
                    keywords[argument.name] = _read(argument, text, kind=self._kinds[wire])
                    continue
            except _REFUSALS:
                if text:
                    faults.extend(self._unfit(wire, text))
                    continue
            if argument.required:
                received = "nothing" if text is None else snippet(text)
                faults.append(Fault(field=wire, expected=self.expected(wire), received=received))
            else:
                keywords[argument.name] = argument.default if argument.factory is None else argument.factory()
        if faults:
            raise ArgumentError(tuple(faults), self._name)
        return keywords | {name: texts[name] for name in texts.keys() - self._arguments.keys()}

    def _unknown(self, texts: Mapping[str, str]) -> Iterator[Fault]:
        for name in texts.keys() - self._arguments.keys():
            if not self._open or name in self._taken:
                yield unknown_field([], name, received=texts[name], known=self._arguments)

    def _unfit(self, wire: str, text: str) -> tuple[Fault, ...]:
        """What the schema says against a text, read as the JSON that it may be where text is not wanted."""
        expected = self.expected(wire)
        value: Any = text
        if expected != "a string":
            with suppress(ValueError, RecursionError):
                value = msgspec.json.decode(text)
        try:
            found = self._validator.errors({wire: value}, formats=True)
        except (SchemaError, UsageError):  # a hand-made part of the schema that is none, or no engine
            found = ()
        inside = (f"{wire}[", f"{wire}.")
        mine = tuple(fault for fault in found if fault.field == wire or fault.field.startswith(inside))
        return mine or (Fault(field=wire, expected=expected, received=snippet(text)),)

    def expected(self, wire: str) -> str:
        """What the argument has to be, in a few words."""
        return describe(self._schema["properties"][wire], self._schema)


def _read(argument: Argument, text: str, *, kind: Any) -> Any:
    adapter = argument.adapter
    try:
        if adapter is not None:
            return adapter.adapter.validate_strings(text)
        return msgspec.convert(text, kind, strict=False, dec_hook=decode_hook)
    except _REFUSALS:
        # The text of an object or an array. Anything else has been read as well as it can be.
        if text.lstrip()[:1] not in ("{", "["):
            raise
    return (
        msgspec.json.decode(text, type=kind, dec_hook=decode_hook)
        if adapter is None
        else adapter.decode(text.encode())
    )
