"""The values of `Mcp-Name` and `Mcp-Param-*` as HTTP headers carry them: plain, or Base64 between markers.

It knows the encoding alone (2026-07-28, Streamable HTTP, "Value Encoding"); which values go into
which header, and what they have to agree with, is not its business.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64
from typing import Final

PREFIX: Final = "=?base64?"
SUFFIX: Final = "?="
_BLANKS: Final = " \t"


def encode_value(value: str) -> str:
    """`value` as it stands where that is safe, else its UTF-8 bytes in Base64 between the markers.

    Raises:
        ValueError: `value` holds half a surrogate pair, which UTF-8 has no bytes for.
    """
    plain = value.isascii() and value.isprintable() and value == value.strip(" ")
    if plain and not (value.startswith(PREFIX) and value.endswith(SUFFIX)):
        return value
    return PREFIX + b2a_base64(value.encode(), newline=False).decode("ascii") + SUFFIX


def decode_value(value: str) -> str:
    """What a header value stands for; blanks around it do not count (RFC 9110, section 5.5).

    Raises:
        ValueError: between the markers is no Base64 with its padding, or no UTF-8; or, without
            markers, a character that is not visible ASCII, space or tab.
    """
    value = value.strip(_BLANKS)
    if len(value) >= len(PREFIX) + len(SUFFIX) and value.startswith(PREFIX) and value.endswith(SUFFIX):
        return _decode_base64(value[len(PREFIX) : -len(SUFFIX)])
    if value.isascii() and value.replace("\t", "").isprintable():
        return value
    raise ValueError("expected visible ASCII characters, spaces and tabs, or the Base64 form")


def _decode_base64(text: str) -> str:
    try:
        return a2b_base64(text.encode("ascii"), strict_mode=True).decode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            "expected Base64 between the markers, received characters that are not ASCII"
        ) from None
    except UnicodeDecodeError:
        raise ValueError("expected UTF-8 inside the Base64, received other bytes") from None
    except Error as exc:
        raise ValueError(f"expected Base64 between the markers ({exc})") from None
