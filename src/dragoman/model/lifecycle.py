"""The rest of the protocol: handshake, discovery, cancellation, progress, logging, subscriptions,
completion, and the data of MCP's own errors.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from dragoman.model.base import (
    CacheableResult,
    ClientCapabilities,
    Implementation,
    LoggingLevel,
    Model,
    Number,
    Params,
    ProgressToken,
    RequestId,
    Result,
    ServerCapabilities,
)
from dragoman.model.inputs import ElicitParams

HEADER_MISMATCH = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022
# Revisions before 2026-07-28 only.
RESOURCE_NOT_FOUND = -32002
URL_ELICITATION_REQUIRED = -32042


class InitializeParams(Params, kw_only=True):
    """The specification's `InitializeRequestParams`: the handshake, up to revision 2025-11-25."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class InitializeResult(Result, kw_only=True):
    """The revision the server chose, and what it offers."""

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | UnsetType = UNSET


class DiscoverParams(Params, kw_only=True):
    """`server/discover` has no params but `_meta`."""


class DiscoverResult(CacheableResult, kw_only=True):
    """The revisions the server speaks, and what it offers; who it is stands in `_meta`."""

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | UnsetType = UNSET


class CancelledParams(Params, kw_only=True):
    """`notifications/cancelled`. Only 2025-11-25 lets `request_id` be absent, for tasks."""

    request_id: RequestId | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class ProgressParams(Params, kw_only=True):
    """`notifications/progress`: `progress` grows; `total` is what it grows to, if known."""

    progress_token: ProgressToken
    progress: Number
    total: Number | UnsetType = UNSET
    message: str | UnsetType = UNSET


class SetLevelParams(Params, kw_only=True):
    """`logging/setLevel` (revisions with a handshake)."""

    level: LoggingLevel


class LoggingMessageParams(Params, kw_only=True):
    """`notifications/message`: one entry of the server's log; `data` is any JSON value."""

    level: LoggingLevel
    logger: str | UnsetType = UNSET
    data: Any


class SubscriptionFilter(Model, kw_only=True):
    """Which notifications a listener wants; `resource_subscriptions` are URIs.

    `task_ids` belong to the extension `io.modelcontextprotocol/tasks`.
    """

    tools_list_changed: bool | UnsetType = UNSET
    prompts_list_changed: bool | UnsetType = UNSET
    resources_list_changed: bool | UnsetType = UNSET
    resource_subscriptions: list[str] | UnsetType = UNSET
    task_ids: list[str] | UnsetType = UNSET


class SubscriptionsListenParams(Params, kw_only=True):
    """`subscriptions/listen`: keep this request open and send these notifications."""

    notifications: SubscriptionFilter


class SubscriptionsAcknowledgedParams(Params, kw_only=True):
    """`notifications/subscriptions/acknowledged`: what of the wish the server will honour."""

    notifications: SubscriptionFilter


class SubscriptionsListenResult(Result, kw_only=True):
    """The subscription is over; its id stands in `_meta`."""


class PromptReference(Model, kw_only=True, tag_field="type", tag="ref/prompt"):
    """Completion for an argument of this prompt."""

    name: str
    title: str | UnsetType = UNSET


class ResourceTemplateReference(Model, kw_only=True, tag_field="type", tag="ref/resource"):
    """Completion for a variable of this resource template; `uri` is the template."""

    uri: str


class CompleteArgument(Model, kw_only=True):
    """The argument being typed, and what stands there so far."""

    name: str
    value: str


class CompleteContext(Model, kw_only=True):
    """The arguments that are settled already."""

    arguments: dict[str, str] | UnsetType = UNSET


class CompleteParams(Params, kw_only=True):
    """The specification's `CompleteRequestParams`."""

    ref: PromptReference | ResourceTemplateReference
    argument: CompleteArgument
    context: CompleteContext | UnsetType = UNSET


class Completion(Model, kw_only=True):
    """At most 100 values; `total` may be more."""

    values: list[str]
    total: int | UnsetType = UNSET
    has_more: bool | UnsetType = UNSET


class CompleteResult(Result, kw_only=True):
    """What the argument may become."""

    completion: Completion


class UnsupportedProtocolVersionData(Model, kw_only=True):
    """The data of error -32022."""

    supported: list[str]
    requested: str


class MissingRequiredClientCapabilityData(Model, kw_only=True):
    """The data of error -32021."""

    required_capabilities: ClientCapabilities


class URLElicitationRequiredData(Model, kw_only=True):
    """The data of error -32042 (revision 2025-11-25)."""

    elicitations: list[ElicitParams]


class ResourceNotFoundData(Model, kw_only=True):
    """The data of a refusal to read an unknown resource."""

    uri: str
