"""Members of an entry, read strictly: each says what was expected, what came, and where.

Knows no dialect. A value is never in a message: it may be a secret that lost its quotes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from dragoman.host.config.located import Node, TextError
from dragoman.host.config.record import Origin, Problem

Choice = TypeVar("Choice")

_LARGEST: Final = 10**30  # no float has all whole numbers, and none those of 300 digits
_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


class Bad(Exception):
    """What is left out: the message says what was expected, the node is where."""

    def __init__(self, text: str, node: Node) -> None:
        super().__init__(text)
        self.text = text
        self.node = node


def kind(value: object) -> str:
    """What a value is, in words."""
    found: type[object] = type(value)
    return _KINDS.get(found, found.__name__)


def wrong(expected: str, value: Any) -> str:
    """What was expected and what kind of value came."""
    return f"expected {expected}; received {kind(value)}"


def origin(node: Node, file: str) -> Origin:
    """The place of a node."""
    return Origin(node.file or file, node.line, node.column)


def unreadable(exc: TextError, file: str) -> Problem:
    """The problem that a text is not of its form."""
    return Problem(f"not {exc.form}: {exc.message}", Origin(file, exc.line, exc.column))


def problem(bad: Bad, file: str, *, server: str | None = None) -> Problem:
    """The problem of something that is left out."""
    start = "" if server is None else f"server {server!r} is left out: "
    return Problem(f"{start}{bad.text}", origin(bad.node, file), server)


def need(node: Node, what: str = "an object") -> Node:
    """The node, which has to be an object."""
    if not isinstance(node.value, dict):
        raise Bad(wrong(what, node.value), node)
    return node


def block(node: Node, member: str) -> Node | None:
    """A member that is an object, or None where there is none."""
    found = node.members.get(member)
    if found is not None and not isinstance(found.value, dict):
        raise Bad(f"`{member}`: {wrong('an object', found.value)}", found)
    return found


def text(node: Node, member: str) -> str:
    """A string that is there and is not empty."""
    found = node.members.get(member)
    if found is None:
        raise Bad(f"expected a member `{member}`", node)
    if not isinstance(found.value, str):
        raise Bad(f"`{member}`: {wrong('a string', found.value)}", found)
    if not found.value.strip():
        raise Bad(f"`{member}` is empty", found)
    return found.value


def maybe(node: Node, member: str) -> str | None:
    """A string, or None where there is no such member."""
    found = node.members.get(member)
    if found is None:
        return None
    if not isinstance(found.value, str):
        raise Bad(f"`{member}`: {wrong('a string', found.value)}", found)
    return found.value


def words(node: Node, member: str) -> tuple[str, ...]:
    """A list of strings; none where there is no such member."""
    found = node.members.get(member)
    if found is None:
        return ()
    if not isinstance(found.value, list):
        raise Bad(f"`{member}`: {wrong('a list of strings', found.value)}", found)
    for item in found.items:
        if not isinstance(item.value, str):
            raise Bad(f"`{member}`: {wrong('a string', item.value)}", item)
    return tuple(item.value for item in found.items)


def table(node: Node, member: str) -> dict[str, str]:
    """An object of strings; an empty one where there is no such member."""
    found = node.members.get(member)
    if found is None:
        return {}
    if not isinstance(found.value, dict):
        raise Bad(f"`{member}`: {wrong('an object of strings', found.value)}", found)
    for name, value in found.members.items():
        if not isinstance(value.value, str):
            raise Bad(f"`{member}.{name}`: {wrong('a string', value.value)}", value)
    return {name: value.value for name, value in found.members.items()}


def scalars(node: Node, member: str) -> dict[str, str]:
    """An object of strings, numbers and nulls, as texts; null is left out."""
    found = block(node, member)
    texts: dict[str, str] = {}
    if found is None:
        return {}
    for name, value in found.members.items():
        plain = value.value
        if isinstance(plain, bool) or not isinstance(plain, str | int | float | None):
            raise Bad(f"`{member}.{name}`: {wrong('a string or a number', plain)}", value)
        if plain is not None:
            texts[name] = plain if isinstance(plain, str) else f"{plain:g}"
    return texts


def number(node: Node, member: str, *, unit: str) -> float | None:
    """A number, or None where there is no such member."""
    found = node.members.get(member)
    if found is None:
        return None
    value = found.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Bad(f"`{member}`: {wrong(f'{unit} as a number', value)}", found)
    if value != value or (isinstance(value, int) and abs(value) > _LARGEST):  # noqa: PLR0124  # NaN is not itself
        raise Bad(f"`{member}`: expected {unit} as a number of a sane size", found)
    return value


def flag(node: Node, member: str, *, default: bool = False) -> bool:
    """True or false."""
    found = node.members.get(member)
    if found is None:
        return default
    if not isinstance(found.value, bool):
        raise Bad(f"`{member}`: {wrong('true or false', found.value)}", found)
    return found.value


def choice(node: Node, member: str, *, among: Mapping[str, Choice]) -> Choice | None:
    """What one of a few words stands for, or None where there is no such member."""
    found = node.members.get(member)
    if found is None:
        return None
    if not isinstance(found.value, str) or found.value not in among:
        said = repr(found.value) if isinstance(found.value, str) else kind(found.value)
        raise Bad(f"`{member}`: expected one of {', '.join(among)}; received {said}", found)
    return among[found.value]


def texts(path: str, node: Node) -> Iterator[tuple[str, str]]:
    """Every string below a node, with the path to it."""
    if isinstance(node.value, str):
        yield path, node.value
    for name, member in node.members.items():
        yield from texts(f"{path}.{name}" if path else name, member)
    for index, item in enumerate(node.items):
        yield from texts(f"{path}[{index}]", item)


def strings(node: Node | None, file: str, *, what: str) -> tuple[list[Node], list[Problem]]:
    """The strings of a list, and a problem for everything else in it."""
    if node is None:
        return [], []
    if not isinstance(node.value, list):
        return [], [Problem(f"`{what}`: {wrong('a list', node.value)}", origin(node, file))]
    good = [item for item in node.items if isinstance(item.value, str)]
    bad = [item for item in node.items if not isinstance(item.value, str)]
    return good, [Problem(f"`{what}`: {wrong('a string', item.value)}", origin(item, file)) for item in bad]


def unknown(node: Node, names: Collection[str]) -> Iterator[str]:
    """Warnings for members that the host does not know."""
    for name in node.members:
        if name not in names:
            yield f"`{name}` is no field of this host's entries, and is ignored"


def twice(
    node: Node, file: str, *, names: Iterable[str] | None = None, server: str | None = None
) -> Iterator[Problem]:
    """Problems for members whose names stand more than once; of all names, or of those given."""
    start = "" if server is None else f"server {server!r}: "
    for name in node.twice if names is None else names:
        if name in node.twice:
            said = f"{start}`{name}` stands twice; the last one counts"
            yield Problem(said, Origin(file, *node.names[name]), server)
