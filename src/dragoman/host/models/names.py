"""Names of tools on the wire: kept where an API takes them, and where not replaced by one that says which."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Final

from dragoman.host.models.base import LeftOut, Shown
from dragoman.host.naming import ApiNames

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")  # in the names of any API


def fitted(
    tools: Iterable[Shown], rule: ApiNames, *, most: int | None = None
) -> tuple[list[tuple[str, Shown]], list[LeftOut]]:
    """Each tool with its name on the wire, and those of which there are more than one, or than `most`.

    A name that the API does not take becomes what of it is legal, with a hash of the whole: the same one
    whatever other tools there are, so that a history stays true.
    """
    shown: dict[str, Shown] = {}
    left_out: list[LeftOut] = []
    for item in tools:
        if item.name in shown:
            left_out.append(LeftOut(item.name, f"name {item.name!r}: another tool has it"))
        elif most is not None and len(shown) >= most:
            left_out.append(LeftOut(item.name, f"the API takes at most {most:,} tools"))
        else:
            shown[item.name] = item
    taken = {name for name in shown if rule.accepts(name)}
    named: list[tuple[str, Shown]] = []
    for item in shown.values():
        name = item.name if item.name in taken else legal(item.name, rule, taken=taken)
        taken.add(name)
        named.append((name, item))
    return named, left_out


def legal(name: str, rule: ApiNames, *, taken: Collection[str]) -> str:
    """A name that the rule accepts, for one that it does not, and that is not among those taken."""
    plain = _ILLEGAL.sub("_", name)
    if not rule.accepts(plain[:1]):
        plain = f"_{plain}"
    whole = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    digits = 8
    while (found := f"{plain[: rule.limit - digits - 1]}_{whole[:digits]}") in taken:
        digits += 8  # another tool is itself called like this one with its hash
    return found
