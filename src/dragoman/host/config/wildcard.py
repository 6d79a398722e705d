"""Patterns with `*`: whether a text as a whole fits one, in time that no pattern can blow up."""

from __future__ import annotations


def fits(pattern: str, text: str, *, many: str = "*") -> bool:
    """Whether `text` as a whole fits `pattern`, in which `*` stands for any characters.

    Takes time in proportion to the product of both lengths, whatever the pattern.
    """
    first, *middle = pattern.split(many)
    if not middle:
        return pattern == text
    *middle, last = middle
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def shell(pattern: str, text: str) -> bool:
    """As `fits`, with `?` for any one character as well."""
    at = start = 0
    star = mark = -1
    while at < len(text):
        sign = pattern[start] if start < len(pattern) else ""
        if sign == "*":
            star, mark = start, at
            start += 1
        elif sign and sign in ("?", text[at]):
            start += 1
            at += 1
        elif star >= 0:
            start, mark = star + 1, mark + 1
            at = mark
        else:
            return False
    return not pattern[start:].strip("*")
