"""`dragoman list TARGET`: tools, resources, prompts or skills: a table, or in JSON as the server has them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from dragoman.cli import output
from dragoman.cli.brush import Brush
from dragoman.cli.session import perform
from dragoman.client import Client
from dragoman.errors import RemoteError
from dragoman.jsonrpc.message import METHOD_NOT_FOUND
from dragoman.model import Prompt, Resource, ResourceTemplate, Tool, ToolAnnotations
from dragoman.model.skills_extension import Skill
from dragoman.schema.references import resolve
from dragoman.schema.shapes import is_array, is_object

_ALTERNATIVES = 6  # values of an enumeration that are written out
_DEPTH = 2  # alternatives inside of alternatives that are told


def run(options: Namespace) -> int:
    """List them; returns the exit status."""
    if options.resources:
        return perform(options, _resources, show=_show_resources)
    if options.prompts:
        return perform(options, _prompts, show=_show_prompts)
    if options.skills:
        return perform(options, _skills, show=_show_skills)
    return perform(options, _tools, show=_show)


Listed = TypeVar("Listed")


async def _known(asked: Awaitable[list[Listed]], *, offered: object) -> list[Listed]:
    """What the server lists: nothing, where it does not know the list and has not said that it offers it."""
    try:
        return await asked
    except RemoteError as exc:
        if exc.code != METHOD_NOT_FOUND or offered is not UNSET:
            raise
        return []


async def _resources(client: Client) -> dict[str, list[Any]]:
    offered = client.capabilities.resources
    return {
        "resources": await _known(client.list_resources(), offered=offered),
        # There is no capability for them alone.
        "resourceTemplates": await _known(client.list_resource_templates(), offered=UNSET),
    }


def _show_resources(value: dict[str, list[Any]]) -> None:
    resources: list[Resource] = value["resources"]
    templates: list[ResourceTemplate] = value["resourceTemplates"]
    if not resources and not templates:
        output.note("the server lists no resources")
        return
    rows = [("URI", "NAME", "TYPE", "DESCRIPTION")]
    rows += [(one.uri, one.name, _type(one), _first(one)) for one in resources]
    rows += [(one.uri_template, one.name, _type(one), _first(one)) for one in templates]
    _table(rows)


def _type(one: Resource | ResourceTemplate) -> str:
    return "" if one.mime_type is UNSET else one.mime_type


async def _prompts(client: Client) -> dict[str, list[Prompt]]:
    return {"prompts": await _known(client.list_prompts(), offered=client.capabilities.prompts)}


def _show_prompts(value: dict[str, list[Prompt]]) -> None:
    prompts = value["prompts"]
    if not prompts:
        output.note("the server has no prompts")
        return
    rows = [("PROMPT", "ARGUMENTS", "DESCRIPTION")]
    _table([*rows, *((prompt.name, _taken(prompt), _first(prompt)) for prompt in prompts)])


def _taken(prompt: Prompt) -> str:
    arguments = [] if prompt.arguments is UNSET else prompt.arguments
    return " ".join(one.name if one.required is True else f"[{one.name}]" for one in arguments)


async def _skills(client: Client) -> dict[str, list[Skill]]:
    return {"skills": await client.list_skills()}


def _show_skills(value: dict[str, list[Skill]]) -> None:
    skills = value["skills"]
    if not skills:
        output.note("the server lists no skills")
        return
    rows = [("SKILL", "FILES", "BYTES", "DESCRIPTION")]
    for skill in skills:
        described = str(skill.frontmatter["description"]).strip().partition("\n")[0]
        rows.append((skill.uri, *_extent(skill), described))
    _table(rows)


def _extent(skill: Skill) -> tuple[str, str]:
    """How many files there are, and how many bytes; of a skill that is made as it is read nobody knows."""
    if isinstance(skill.resources, str):
        return skill.resources, ""
    return str(len(skill.resources)), str(sum(file.size for file in skill.resources))


async def _tools(client: Client) -> dict[str, list[Tool]]:
    return {"tools": await _known(client.list_tools(), offered=client.capabilities.tools)}


def _show(value: dict[str, list[Tool]]) -> None:
    tools = value["tools"]
    if not tools:
        output.note("the server has no tools")
        return
    rows = [("TOOL", "ARGUMENTS", "HINTS", "DESCRIPTION"), *map(_row, tools)]
    _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> None:
    head, *lines = output.table(rows, output.columns())
    output.line(Brush.for_stdout()("dim", head))
    for line in lines:
        output.line(line)


def _row(tool: Tool) -> tuple[str, str, str, str]:
    return tool.name, signature(tool.input_schema), hints(tool.annotations), _first(tool)


def _first(one: Tool | Resource | ResourceTemplate | Prompt) -> str:
    description = one.description if one.description is not UNSET else one.title
    return "" if description is UNSET else description.strip().partition("\n")[0]


def hints(annotations: ToolAnnotations | msgspec.UnsetType) -> str:
    """What a tool's annotations say, in words; only what they do say."""
    if annotations is UNSET:
        return ""
    said = {
        "read-only": annotations.read_only_hint,
        "destructive": annotations.destructive_hint,
        "idempotent": annotations.idempotent_hint,
        "open-world": annotations.open_world_hint,
    }
    return ",".join(word for word, value in said.items() if value is True)


def signature(schema: dict[str, Any]) -> str:
    """The arguments of a tool on one line: `name:type`, in brackets where they may be left out."""
    properties = schema.get("properties")
    required = schema.get("required")
    needed = required if is_array(required) else []
    parts: list[str] = []
    for name, place in properties.items() if is_object(properties) else ():
        text = f"{name}:{kind(place, schema)}"
        parts.append(text if name in needed else f"[{text}]")
    return " ".join(parts)


def kind(schema: Any, root: dict[str, Any], *, depth: int = 0) -> str:
    """What a value may be, in a word or two."""
    if is_object(schema) and "$ref" in schema:
        schema = resolve(root, schema["$ref"])
    if not is_object(schema) or depth > _DEPTH:
        return "any"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if is_array(values):
        shown = [value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in values]
        return "|".join(shown[:_ALTERNATIVES] + ["…"] * (len(shown) > _ALTERNATIVES))
    named = schema.get("type")
    if is_array(named):
        return "|".join(map(str, named))
    if isinstance(named, str):
        return named
    either = schema.get("anyOf") or schema.get("oneOf")
    return (
        "|".join(dict.fromkeys(kind(inner, root, depth=depth + 1) for inner in either))
        if is_array(either)
        else "any"
    )
