"""From what a tool's function returned to what `tools/call` answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from dragoman.model import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
)
from dragoman.schema.errors import OutputError
from dragoman.schema.output import Output, encode_value
from dragoman.schema.signature import Signature
from dragoman.schema.validate import Validator
from dragoman.server.media import Audio, File, Image

_BLOCKS = frozenset({TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource})
MEDIA = (Image, Audio, File)
_encode = msgspec.json.Encoder().encode


class Results(msgspec.Struct, frozen=True, eq=False):
    """How one tool's values become results.

    `schema` is what the list publishes; `check` holds a result against a schema that the author
    wrote by hand, since such a schema says nothing about the function's types. `exact` is the type
    whose values are wrapped as they are: a number, a text or a truth value as declared.
    """

    output: Output | None
    schema: dict[str, Any] | None
    check: Validator | None = None
    exact: type[Any] | None = None

    @staticmethod
    def of_signature(signature: Signature, written: Mapping[str, Any] | Literal[False] | None) -> Results:
        """By the signature's return annotation, or by the schema the author wrote; False for none."""
        if written is None:
            output = signature.output
            exact = output.exact if output is not None and output.wraps else None
            return Results(output, signature.output_schema, exact=exact)
        if written is False:
            return Results(None, None)
        schema = dict(written)
        return Results(None, schema, Validator(schema))

    def of(self, value: Any) -> CallToolResult | InputRequiredResult:
        """The result for `value`.

        Raises:
            OutputError: it cannot be written as JSON, or is not what the tool's schema promises.
        """
        exact = self.exact
        if type(value) is exact and (exact is not str or value.isascii() or _unicode(value)):
            # Nothing is to be found out about it.
            text = value if exact is str else _encode(value).decode()
            return CallToolResult(content=[TextContent(text=text)], structured_content={"result": value})
        output = self.output
        if isinstance(value, CallToolResult):
            return self._whole(value)
        if isinstance(value, InputRequiredResult):
            return value
        content = _content(value)
        if content is not None:
            return CallToolResult(content=_checked(content))
        if output is not None:
            structured = output.structured(value)
            plain = structured["result"] if output.wraps else structured
            return CallToolResult(content=[TextContent(text=_text(plain))], structured_content=structured)
        if value is None:
            return CallToolResult(content=[])
        plain = _builtins(value)
        result = CallToolResult(content=[TextContent(text=_text(plain))])
        if self.check is not None:
            result.structured_content = plain
            self._conform(plain)
        return result

    def _whole(self, result: CallToolResult) -> CallToolResult:
        if result.structured_content is not UNSET and not result.is_error:
            result.structured_content = _builtins(result.structured_content)
            self._conform(result.structured_content)
            if self.output is not None:
                self.output.check(result.structured_content)
        _checked(result.content)
        return result

    def _conform(self, structured: Any) -> None:
        faults = () if self.check is None else self.check.errors(structured)
        if faults:
            raise OutputError(
                f"expected {faults[0].expected}, returned {faults[0].received}", faults[0].field
            )


def _unicode(text: str) -> bool:
    """Whether it can be sent: half a surrogate pair, as in the names of some files, is no Unicode text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checked(content: list[ContentBlock]) -> list[ContentBlock]:
    """The blocks as they are. Raises OutputError for text that cannot be sent."""
    for index, block in enumerate(content):
        if isinstance(block, TextContent) and not block.text.isascii() and not _unicode(block.text):
            shown = ascii(block.text)[:80]
            raise OutputError(
                f"text with a lone surrogate is no Unicode text: {shown}", f"content[{index}].text"
            )
    return content


def _builtins(value: Any) -> Any:
    """What JSON says of `value`; raises OutputError for what it cannot say."""
    return msgspec.json.decode(encode_value(value))


def _text(plain: Any) -> str:
    return plain if type(plain) is str else _encode(plain).decode()


def _content(value: Any) -> list[ContentBlock] | None:
    """The content blocks that `value` is or holds; None for a value that is data."""
    block = _block(value)
    if block is not None:
        return [block]
    if type(value) not in {list, tuple} or not value:
        return None
    blocks = [TextContent(text=item) if type(item) is str else _block(item) for item in value]
    if all(type(item) is str for item in value) or any(item is None for item in blocks):
        return None
    return [item for item in blocks if item is not None]


def _block(value: Any) -> ContentBlock | None:
    if type(value) in _BLOCKS:
        return value  # type: ignore[no-any-return]  # one of the five, as was just looked up
    return value.content() if isinstance(value, MEDIA) else None
