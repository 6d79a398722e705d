"""Values as they stand in a file: sealed, where the store has keys, and bound to their place."""

from __future__ import annotations

import msgspec

from dragoman.protocol.sealing import BrokenSeal, Keys

from .base import StoreError

PURPOSE = "store"


class Seals:
    """Seals and opens for one file. Without keys both give back what they got."""

    def __init__(self, keys: Keys | None, path: str) -> None:
        self._keys = keys
        self._path = path

    def __bool__(self) -> bool:
        return self._keys is not None

    def seal(self, value: bytes, *place: str | int) -> bytes:
        """`value` as it is written; `place` says where, beginning with the table."""
        if self._keys is None:
            return value
        return self._keys.seal(value, purpose=PURPOSE, bound=msgspec.json.encode(place))

    def open(self, value: bytes, *place: str | int) -> bytes:
        """`value` as it was before. Raises StoreError if it was changed, moved, or sealed with other keys."""
        if self._keys is None:
            return value
        try:
            return self._keys.open(value, purpose=PURPOSE, bound=msgspec.json.encode(place))
        except BrokenSeal:
            # Only the table is named: keys and topics may be what gives access to something.
            raise StoreError(
                f"{self._path}: a value of the table {place[0]!r} does not open: it was changed in the file, "
                "or sealed with a secret that the key ring does not have",
                hint="give the former secrets as well: Keys(new, former)",
            ) from None
