"""`resources/*`: what a resource and a template are, how they are listed, read and watched."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from dragoman.model.base import (
    Annotations,
    CacheableResult,
    Icon,
    InputResponseParams,
    Model,
    PaginatedResult,
    ResourceParams,
)
from dragoman.model.content import ResourceContents


class Resource(Model, kw_only=True):
    """A resource as a list shows it; `size` is in bytes, before any base64."""

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    size: int | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class ResourceTemplate(Model, kw_only=True):
    """A family of resources; `uri_template` is an RFC 6570 template."""

    uri_template: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class ListResourcesResult(PaginatedResult, kw_only=True):
    """One page of resources."""

    resources: list[Resource]


class ListResourceTemplatesResult(PaginatedResult, kw_only=True):
    """One page of resource templates."""

    resource_templates: list[ResourceTemplate]


class ReadResourceParams(InputResponseParams, kw_only=True):
    """The specification's `ReadResourceRequestParams`."""

    uri: str


class ReadResourceResult(CacheableResult, kw_only=True):
    """The contents of a resource, or of the several it stands for."""

    contents: list[ResourceContents]


class SubscribeParams(ResourceParams, kw_only=True):
    """`resources/subscribe`: watch one resource (revisions with a handshake)."""


class UnsubscribeParams(ResourceParams, kw_only=True):
    """`resources/unsubscribe`: watch it no more."""


class ResourceUpdatedParams(ResourceParams, kw_only=True):
    """`notifications/resources/updated`: this resource, or one under it, has changed."""
