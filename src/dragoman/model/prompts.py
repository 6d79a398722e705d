"""`prompts/list` and `prompts/get`: what a prompt is, and the messages it becomes."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from dragoman.model.base import Icon, InputResponseParams, Model, PaginatedResult, Result, Role
from dragoman.model.content import ContentBlock


class PromptArgument(Model, kw_only=True):
    """One argument of a prompt. Its value is always a string."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class Prompt(Model, kw_only=True):
    """A prompt as a list shows it."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class PromptMessage(Model, kw_only=True):
    """One message of a prompt."""

    role: Role
    content: ContentBlock


class ListPromptsResult(PaginatedResult, kw_only=True):
    """One page of prompts."""

    prompts: list[Prompt]


class GetPromptParams(InputResponseParams, kw_only=True):
    """The specification's `GetPromptRequestParams`."""

    name: str
    arguments: dict[str, str] | UnsetType = UNSET


class GetPromptResult(Result, kw_only=True):
    """The prompt with its arguments filled in."""

    description: str | UnsetType = UNSET
    messages: list[PromptMessage]
