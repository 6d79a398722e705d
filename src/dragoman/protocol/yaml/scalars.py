"""What the scalars of YAML mean, as far as all readers of YAML agree about it.

YAML 1.1 and 1.2 give different values to `yes`, `017` or `2026-07-28`; such a text is refused unless it
stands in quotes. It knows no lines and no structure.
"""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~"), None),
}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]+")
_SAFE: Final = 2**53 - 1  # whole numbers beyond it are not the same in every reader of JSON
# What is a number, a truth value or a time to some readers and a string, or another number, to others.
_UNCLEAR: Final = re.compile(
    r"""
      (?i:yes|no|on|off) | = | <<
    | [-+]?0(?:b[01_]+|o[0-7_]+|x[0-9a-fA-F_]+)
    | [-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?  # 017, 1_000, 1e3, .5
    | [-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?                    # 10:30
    | [-+]?\.(?i:inf|nan)
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ ]+).*)?
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_MEANT: Final = dict(zip('0abtnvfre "/\\N_LP', '\0\a\b\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029', strict=True))


def plain(text: str) -> str | int | float | bool | None:
    """The value of a text without quotes.

    Raises:
        ValueError: not all readers give it the same; the message says so.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > 17 or abs(int(text)) > _SAFE:
            raise ValueError(f"{text[:40]} is too large a number for every reader: put it in quotes")
        return int(text)
    if _DECIMAL.fullmatch(text) and len(text) <= 40:
        return float(text)
    if _UNCLEAR.fullmatch(text):
        raise ValueError(f"{text[:40]} is not the same to all readers of YAML: put it in quotes")
    return text


def escaped(text: str) -> str:
    """What a text in double quotes says.

    Raises:
        ValueError: an escape that is none.
    """
    said = _ESCAPE.sub(_meaning, text) if "\\" in text else text
    if not said.isascii() and any("\ud800" <= char <= "\udfff" for char in said):
        raise ValueError("half of a surrogate pair is no character: write it as \\U and eight digits")
    return said


def _meaning(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        number = int(code[1:], 16)
        if number > 0x10FFFF:
            raise ValueError(f"\\{code} is no character")
        return chr(number)
    if code not in _MEANT:
        raise ValueError(f"\\{code} is no escape of YAML: a backslash in double quotes is written twice")
    return _MEANT[code]


def folded(parts: list[str]) -> str:
    """The lines of a text that goes over several, as one: a break is a blank, an empty line a break."""
    said, breaks = parts[0], 0
    for part in parts[1:-1]:
        if part:
            said += ("\n" * breaks or " ") + part
            breaks = 0
        else:
            breaks += 1
    return said + ("\n" * breaks or " ") + parts[-1] if len(parts) > 1 else said


def folded_block(lines: list[str]) -> str:
    """The lines of a block after `>`, as one: those that are indented further keep their breaks."""
    said = ""
    breaks, before = 0, None
    for line in lines:
        if not line:
            breaks += 1
            continue
        deep = line[0] == " "
        if before is None:
            said += "\n" * breaks
        elif deep or before:
            said += "\n" * (breaks + 1)
        else:
            said += "\n" * breaks or " "
        said += line
        breaks, before = 0, deep
    return said
