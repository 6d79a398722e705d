"""From what the function of a resource returned to what `resources/read` answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from dragoman.errors import DragomanError, ResourceNotFound
from dragoman.model import BlobResourceContents, ResourceContents, TextResourceContents
from dragoman.schema.errors import OutputError
from dragoman.schema.output import encode_value
from dragoman.server.function import in_thread
from dragoman.server.media import Audio, File, Image
from dragoman.server.mime import BINARY, JSON, TEXT, is_text, of_name

_BYTES = (bytes, bytearray, memoryview)


async def contents_of(value: Any, uri: str, *, mime_type: str | None) -> list[ResourceContents]:
    """The contents that `value` stands for; `mime_type` is what the resource was declared as.

    Text and bytes are themselves, a `Path` is the file there, anything else is written as JSON. None
    says that nothing is there.

    Raises:
        ResourceNotFound: nothing is there, or no file.
        OutputError: it cannot be written as JSON.
        DragomanError: the file cannot be read.
    """
    if isinstance(value, ResourceContents):
        return [value]
    if isinstance(value, (list, tuple)) and value:
        several = cast("Sequence[Any]", value)
        if all(isinstance(item, ResourceContents) for item in several):
            return list(several)
    if isinstance(value, (Path, Image, Audio, File)):
        return [await in_thread(_loading(value, uri, mime_type=mime_type))]
    return [_plain(value, uri, mime_type=mime_type)]


def _plain(value: Any, uri: str, *, mime_type: str | None) -> ResourceContents:
    if value is None:
        raise ResourceNotFound
    if isinstance(value, str):
        return TextResourceContents(uri=uri, mime_type=mime_type or TEXT, text=sendable(value))
    if isinstance(value, _BYTES):
        return BlobResourceContents.of(uri, bytes(cast("bytes", value)), mime_type=mime_type or BINARY)
    return TextResourceContents(uri=uri, mime_type=mime_type or JSON, text=encode_value(value).decode())


def sendable(text: str) -> str:
    """The text itself. Raises OutputError for half a surrogate pair, which no message can carry."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            shown = ascii(text)[:80]
            raise OutputError(f"text with a lone surrogate is no Unicode text: {shown}") from None
    return text


def _loading(
    value: Path | Image | Audio | File, uri: str, *, mime_type: str | None
) -> Callable[[], ResourceContents]:
    def load() -> ResourceContents:
        try:
            if isinstance(value, Path):
                return _file(value.read_bytes(), uri, mime_type=mime_type or of_name(value.name))
            return BlobResourceContents.of(uri, value.read(), mime_type=mime_type or value.mime_type)
        except FileNotFoundError:
            raise ResourceNotFound from None
        except OSError as exc:
            # Where the file lies is nobody's business.
            raise DragomanError(f"cannot be read: {exc.strerror or type(exc).__name__}") from exc

    return load


def _file(data: bytes, uri: str, *, mime_type: str | None) -> ResourceContents:
    """A file as text if its type says so, or, without a type, if it can be read as text."""
    text = _text(data) if mime_type is None or is_text(mime_type) else None
    if text is None or (mime_type is None and "\0" in text):
        return BlobResourceContents.of(uri, data, mime_type=mime_type or BINARY)
    return TextResourceContents(uri=uri, mime_type=mime_type or TEXT, text=text)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
