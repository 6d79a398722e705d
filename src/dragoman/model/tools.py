"""`tools/list` and `tools/call`: what a tool is, how it is called, what it answers.

Schemas are plain dicts here; this module does not know what is in them.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, UnsetType, field

from dragoman.model.base import Icon, InputResponseParams, Model, PaginatedResult, Result
from dragoman.model.content import ContentBlock


class ToolAnnotations(Model, kw_only=True):
    """Hints about what a tool does. Untrusted unless the server is (server/tools)."""

    title: str | UnsetType = UNSET
    read_only_hint: bool | UnsetType = UNSET
    destructive_hint: bool | UnsetType = UNSET
    idempotent_hint: bool | UnsetType = UNSET
    open_world_hint: bool | UnsetType = UNSET


class ToolExecution(Model, kw_only=True):
    """How a tool may be run (revision 2025-11-25): whether a call may, must or must not be a task."""

    task_support: Literal["forbidden", "optional", "required"] | UnsetType = UNSET


class Tool(Model, kw_only=True):
    """A tool as a list shows it. `input_schema` is a JSON Schema of type `object`."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    execution: ToolExecution | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class ListToolsResult(PaginatedResult, kw_only=True):
    """One page of tools."""

    tools: list[Tool]


class CallToolParams(InputResponseParams, kw_only=True, gc=False):  # JSON goes round in no circles
    """The specification's `CallToolRequestParams`.

    `arguments` stays raw until the tool's own decoder reads it; `task` is revision 2025-11-25's
    wish to run the call as a task.
    """

    name: str
    arguments: Raw | UnsetType = UNSET
    task: Any = UNSET


class CallToolResult(Result, kw_only=True, gc=False):
    """What a tool answered. With `is_error`, `content` says what went wrong, for the model to act on.

    `structured_content` is any JSON value; before revision 2026-07-28, an object.
    """

    content: list[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool | UnsetType = UNSET
