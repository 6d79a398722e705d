"""The frontmatter of a SKILL.md: found, read, and held against the rules of Agent Skills.

The format is that of agentskills.io; what the extension adds is that `metadata` has no keys under
`io.modelcontextprotocol/` that nobody defined. It opens no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from dragoman.model.base import NAMESPACE
from dragoman.protocol.yaml import YamlFault, read_yaml

LONGEST: Final = 65_536  # characters

_OPENING: Final = re.compile(r"\ufeff?---\r?\n")
_CLOSING: Final = re.compile(r"\r?\n---[ \t]*(?:\r?\n|\Z)")
_NAME: Final = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")


class FrontmatterFault(ValueError):
    """Why a SKILL.md is none: all that was found, each with its line."""

    def __init__(self, found: list[tuple[int, str]]) -> None:
        super().__init__("; ".join(f"line {line}: {message}" for line, message in found))
        self.found = found


def read_frontmatter(text: str) -> dict[str, Any]:
    """The frontmatter at the head of a SKILL.md, as JSON has it: every field, as its author wrote it.

    Raises:
        FrontmatterFault: there is none, it is not YAML that all readers agree about, or a field breaks
            the rules of Agent Skills.
    """
    opening = _OPENING.match(text)
    if opening is None:
        raise FrontmatterFault([(1, "expected --- on a line of its own, and the frontmatter after it")])
    # The break before the closing line may be the one after the opening line.
    closing = _CLOSING.search(text, opening.end() - 2, opening.end() + LONGEST)
    if closing is None:
        raise FrontmatterFault(
            [(1, f"expected --- on a line of its own after at most {LONGEST} characters of frontmatter")]
        )
    try:
        fields, lines = read_yaml(text[opening.end() : max(opening.end(), closing.start())], line=2)
    except YamlFault as exc:
        raise FrontmatterFault([(exc.line, str(exc))]) from None
    found = [(lines.get(field, 1), f"{field}: {message}") for field, message in _broken(fields)]
    if found:
        raise FrontmatterFault(found)
    return fields


def _broken(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Fields that are not as the specification of Agent Skills has them, and what is wrong."""
    name = fields.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = "expected 1 to 64 lower-case letters, digits and single hyphens, no hyphen at an end"
        yield "name", f"{rule}; found {_shown(fields, 'name')}"
    for field, longest, required in (("description", 1024, True), ("compatibility", 500, False)):
        if field in fields or required:
            value = fields.get(field)
            if not isinstance(value, str) or not value.strip() or len(value) > longest:
                yield field, f"expected a text of 1 to {longest} characters, found {_shown(fields, field)}"
    if not isinstance(fields.get("license", ""), str):
        yield "license", f"expected a text, found {_shown(fields, 'license')}"
    tools: Any = fields.get("allowed-tools", "")
    if not isinstance(tools, str) and not (isinstance(tools, list) and _texts(cast("list[object]", tools))):
        yield "allowed-tools", f"expected a text or a list of texts, found {_shown(fields, 'allowed-tools')}"
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict):
        yield "metadata", f"expected a mapping, found {_shown(fields, 'metadata')}"
        return
    for key in cast("dict[str, Any]", metadata):
        if key.startswith(NAMESPACE):
            yield "metadata", f"{key}: keys under {NAMESPACE} are for extensions of MCP to define"


def _texts(values: list[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _shown(fields: dict[str, Any], field: str) -> str:
    if field not in fields:
        return "none"
    value = fields[field]
    if isinstance(value, str) and len(value) > 80:
        return f"one of {len(value)}"
    return repr(value)[:100]
