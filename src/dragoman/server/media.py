"""Pictures, sounds and files as tools return them: bytes or a path in, a content block out."""

from __future__ import annotations

import os
from base64 import b64encode
from os import PathLike

from dragoman.errors import UsageError
from dragoman.model import Annotations, AudioContent, BlobResourceContents, EmbeddedResource, ImageContent
from dragoman.server.mime import BINARY, TYPES


class _Media:
    """Bytes, or the path of a file that holds them, and their MIME type.

    `format` is a file extension such as `"png"`, or a MIME type; from a path it is read off the name.
    """

    default = BINARY

    def __init__(
        self,
        data: bytes | None = None,
        *,
        path: str | PathLike[str] | None = None,
        format: str | None = None,  # noqa: A002  # the argument's name in the field's other libraries
        annotations: Annotations | None = None,
    ) -> None:
        if (data is None) == (path is None):
            raise UsageError(f"{type(self).__name__}() takes either data or path")
        given: object = data
        if isinstance(given, str | PathLike):
            raise UsageError(
                f"{type(self).__name__}(): data: expected bytes, received {type(given).__name__}",
                hint=f"{type(self).__name__}(path=...) for a file",
            )
        self._data = data
        # Not by pathlib: loading it would be a tenth of loading a server.
        self._path = None if path is None else os.fspath(path)
        if format is None and self._path is not None:
            format = os.path.splitext(self._path)[1][1:].lower()  # noqa: A001, PTH122  # as above
        self.mime_type = format if format and "/" in format else TYPES.get(format or "", self.default)
        self.annotations = annotations

    def read(self) -> bytes:
        """The bytes; a path is read when the result is sent, not before."""
        if self._data is not None:
            return self._data
        assert self._path is not None
        with open(self._path, "rb") as file:  # noqa: PTH123  # pathlib is not loaded here
            return file.read()

    def encoded(self) -> str:
        """The bytes in Base64."""
        return b64encode(self.read()).decode("ascii")


class Image(_Media):
    """A picture that a tool returns."""

    default = "image/png"

    def content(self) -> ImageContent:
        """As an `image` block."""
        block = ImageContent(data=self.encoded(), mime_type=self.mime_type)
        if self.annotations is not None:
            block.annotations = self.annotations
        return block


class Audio(_Media):
    """A sound that a tool returns."""

    default = "audio/wav"

    def content(self) -> AudioContent:
        """As an `audio` block."""
        block = AudioContent(data=self.encoded(), mime_type=self.mime_type)
        if self.annotations is not None:
            block.annotations = self.annotations
        return block


class File(_Media):
    """Any other file that a tool returns, embedded as a resource."""

    def content(self) -> EmbeddedResource:
        """As a `resource` block with a `blob`."""
        name = os.path.basename(self._path) if self._path is not None else "data"  # noqa: PTH119  # as above
        blob = BlobResourceContents(uri=f"file:///{name}", blob=self.encoded(), mime_type=self.mime_type)
        block = EmbeddedResource(resource=blob)
        if self.annotations is not None:
            block.annotations = self.annotations
        return block
