"""Sealing: text that a peer keeps for us, and can neither read nor change nor use elsewhere.

A ring of secrets, of which the first seals and all open, so that secrets can be changed while
sealed text is out. What is sealed is bound to its use: it opens nowhere else. No clock: whoever
seals a lifetime puts it inside.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest, digest
from secrets import token_bytes
from typing import Any, Final

from dragoman.errors import DragomanError, UsageError

_ID: Final = 4  # bytes that tell which secret sealed
_NONCE: Final = 12
_TAG: Final = 16
MIN_SECRET: Final = 16  # bytes


class BrokenSeal(DragomanError):
    """Sealed text that was changed, was made for another use, or was sealed with an unknown secret."""


class Keys:
    """A key ring. `purpose` separates uses: what one seals, the other cannot open.

    `secrets` are at least 16 bytes each, the newest first. Every process that is to open what
    another sealed needs the same ones. AES-256-GCM, one key a purpose by HMAC-SHA256.

    Raises:
        UsageError: no secret, or one that is too short.
    """

    def __init__(self, *secrets: bytes | str) -> None:
        if not secrets:
            raise UsageError("a key ring needs at least one secret")
        self._secrets = [secret.encode() if isinstance(secret, str) else secret for secret in secrets]
        for secret in self._secrets:
            if len(secret) < MIN_SECRET:
                raise UsageError(f"a secret needs at least {MIN_SECRET} bytes, this one has {len(secret)}")
        self._rings: dict[str, list[tuple[bytes, bytes]]] = {}

    @staticmethod
    def random() -> Keys:
        """A ring that no other process has."""
        return Keys(token_bytes(32))

    def __repr__(self) -> str:
        return f"<Keys, {len(self._secrets)} secrets>"

    def _ring(self, purpose: str) -> list[tuple[bytes, bytes]]:
        ring = self._rings.get(purpose)
        if ring is None:
            keys = [digest(secret, b"dragoman/" + purpose.encode(), "sha256") for secret in self._secrets]
            ring = self._rings[purpose] = [(sha256(key).digest()[:_ID], key) for key in keys]
        return ring

    def seal(self, plain: bytes, *, purpose: str, bound: bytes = b"") -> bytes:
        """`plain`, encrypted and authenticated together with `bound`, which is needed again to open it."""
        id_, key = self._ring(purpose)[0]
        nonce = token_bytes(_NONCE)
        text: bytes = _cipher()(key).encrypt(nonce, plain, bound)
        return id_ + nonce + text

    def open(self, sealed: bytes, *, purpose: str, bound: bytes = b"") -> bytes:
        """What was sealed for this purpose and with this `bound`.

        Raises:
            BrokenSeal: it was not, or not with a secret of this ring, or was changed since.
        """
        if len(sealed) < _ID + _NONCE + _TAG:
            raise BrokenSeal("too short to be sealed text")
        id_, nonce, text = sealed[:_ID], sealed[_ID : _ID + _NONCE], sealed[_ID + _NONCE :]
        for known, key in self._ring(purpose):
            if known == id_:
                try:
                    plain: bytes = _cipher()(key).decrypt(nonce, text, bound)
                except Exception:  # noqa: BLE001  # the library's InvalidTag, without loading it to name it
                    break
                return plain
        raise BrokenSeal("changed, made for another use, or sealed with another secret")

    def seal_text(self, plain: bytes, *, purpose: str, bound: bytes = b"") -> str:
        """As `seal`, in characters that stand anywhere: letters, digits, `-` and `_`."""
        return urlsafe_b64encode(self.seal(plain, purpose=purpose, bound=bound)).rstrip(b"=").decode("ascii")

    def open_text(self, sealed: str, *, purpose: str, bound: bytes = b"") -> bytes:
        """As `open`, of what `seal_text` made. Raises BrokenSeal."""
        try:
            data = urlsafe_b64decode(sealed.encode("ascii") + b"=" * (-len(sealed) % 4))
        except ValueError:
            raise BrokenSeal("not sealed text") from None
        if urlsafe_b64encode(data).rstrip(b"=").decode("ascii") != sealed:
            raise BrokenSeal("not sealed text")  # one text has one form, so that it can be counted once
        return self.open(data, purpose=purpose, bound=bound)

    def sign(self, plain: bytes, *, purpose: str) -> bytes:
        """Eight bytes that only this ring can make for `plain`."""
        return digest(self._ring(purpose)[0][1], plain, "sha256")[:8]

    def signed(self, plain: bytes, signature: bytes, *, purpose: str) -> bool:
        """Whether a secret of this ring signed `plain`."""
        return any(
            compare_digest(digest(key, plain, "sha256")[:8], signature) for _, key in self._ring(purpose)
        )


def _cipher() -> Callable[[bytes], Any]:
    # An optional dependency, and 16 ms: loaded by the first that seals.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM
