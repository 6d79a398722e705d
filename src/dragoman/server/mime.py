"""MIME types by the ends of file names, and which of them are text.

A table of its own: the one of the standard library differs from machine to machine.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = "text/plain"
JSON: Final = "application/json"
BINARY: Final = "application/octet-stream"

TYPES: Final = {
    "aac": "audio/aac",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "c": "text/x-c",
    "css": "text/css",
    "csv": "text/csv",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "flac": "audio/flac",
    "gif": "image/gif",
    "gz": "application/gzip",
    "htm": "text/html",
    "html": "text/html",
    "ico": "image/vnd.microsoft.icon",
    "ics": "text/calendar",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": JSON,
    "jsonl": "application/jsonl",
    "log": TEXT,
    "m4a": "audio/mp4",
    "markdown": "text/markdown",
    "md": "text/markdown",
    "mjs": "text/javascript",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ndjson": "application/x-ndjson",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "py": "text/x-python",
    "rs": "text/x-rust",
    "rst": "text/x-rst",
    "sh": "application/x-sh",
    "sql": "application/sql",
    "svg": "image/svg+xml",
    "tar": "application/x-tar",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "toml": "application/toml",
    "ts": "text/x-typescript",
    "tsv": "text/tab-separated-values",
    "txt": TEXT,
    "wasm": "application/wasm",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
}

_TEXTUAL: Final = frozenset(
    """
    application/ecmascript application/graphql application/javascript application/json application/jsonl
    application/sql application/toml application/x-ndjson application/x-sh application/x-yaml
    application/xml application/yaml
    """.split()
)


def of_name(name: str) -> str | None:
    """The type that the name of a file says, None if it says none."""
    return TYPES.get(name.rpartition(".")[2].lower()) if "." in name else None


def is_text(mime_type: str) -> bool:
    """Whether contents of this type are text."""
    kind = mime_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind.endswith(("+json", "+xml", "+yaml")) or kind in _TEXTUAL
