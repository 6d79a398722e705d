"""What every other wire type is built from: the base struct, metadata, identity, capabilities.

The shapes are those of the newest revision plus the members that older ones had. This module does
not know which revision has which member; the revision records do.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from dragoman.model.shown import record

NAMESPACE = "io.modelcontextprotocol/"
PROTOCOL_VERSION_KEY = NAMESPACE + "protocolVersion"
CLIENT_INFO_KEY = NAMESPACE + "clientInfo"
CLIENT_CAPABILITIES_KEY = NAMESPACE + "clientCapabilities"
LOG_LEVEL_KEY = NAMESPACE + "logLevel"
SUBSCRIPTION_ID_KEY = NAMESPACE + "subscriptionId"
SERVER_INFO_KEY = NAMESPACE + "serverInfo"
RELATED_TASK_KEY = NAMESPACE + "related-task"
PROGRESS_TOKEN_KEY = "progressToken"  # noqa: S105  # the name of a member, not a secret

# MCP admits no null and no fraction here, unlike JSON-RPC 2.0 (basic/index, "Requests").
RequestId = int | str
ProgressToken = int | str
Number = int | float
Role = Literal["user", "assistant"]
CacheScope = Literal["public", "private"]
LoggingLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

COMPLETE = "complete"
INPUT_REQUIRED = "input_required"


class Model(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every wire type: camelCase on the wire, absent members are `UNSET`.

    Unknown members are ignored on the way in (the specification adds members within a revision's
    lifetime), and a member that is `UNSET` is not written.
    """

    def __repr__(self) -> str:
        return record(self)


class Icon(Model, kw_only=True):
    """A picture for a tool, resource, prompt or program; `sizes` are `"48x48"` or `"any"`."""

    src: str
    mime_type: str | UnsetType = UNSET
    sizes: list[str] | UnsetType = UNSET
    theme: Literal["light", "dark"] | UnsetType = UNSET


class Annotations(Model, kw_only=True):
    """Whom content is for, how much it matters (0 to 1), and when it changed (ISO 8601)."""

    audience: list[Role] | UnsetType = UNSET
    priority: Number | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET


class Implementation(Model, kw_only=True):
    """The name and version of a client or server program. Self-reported: never a basis for trust."""

    name: str
    version: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    website_url: str | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET


class ClientCapabilities(Model, kw_only=True):
    """What the client offers the server. A member that is present, even as `{}`, is offered."""

    experimental: dict[str, Any] | UnsetType = UNSET
    roots: dict[str, Any] | UnsetType = UNSET
    sampling: dict[str, Any] | UnsetType = UNSET
    elicitation: dict[str, Any] | UnsetType = UNSET
    tasks: dict[str, Any] | UnsetType = UNSET
    extensions: dict[str, Any] | UnsetType = UNSET


class ServerCapabilities(Model, kw_only=True):
    """What the server offers the client. A member that is present, even as `{}`, is offered."""

    experimental: dict[str, Any] | UnsetType = UNSET
    logging: dict[str, Any] | UnsetType = UNSET
    completions: dict[str, Any] | UnsetType = UNSET
    prompts: dict[str, Any] | UnsetType = UNSET
    resources: dict[str, Any] | UnsetType = UNSET
    tools: dict[str, Any] | UnsetType = UNSET
    tasks: dict[str, Any] | UnsetType = UNSET
    extensions: dict[str, Any] | UnsetType = UNSET


# One reading may stand for many requests, so nobody changes it.
class RequestMeta(Model, kw_only=True, frozen=True):  # type: ignore[misc]  # structs may, where dataclasses may not
    """The typed reading of a request's or notification's `_meta` (basic/index, "_meta").

    Every member is optional here, because revisions with a handshake say most of it once; what a
    revision requires is for its admission to check. The trace members are W3C Trace Context.
    """

    protocol_version: str | UnsetType = field(name=PROTOCOL_VERSION_KEY, default=UNSET)
    client_info: Implementation | UnsetType = field(name=CLIENT_INFO_KEY, default=UNSET)
    client_capabilities: ClientCapabilities | UnsetType = field(name=CLIENT_CAPABILITIES_KEY, default=UNSET)
    log_level: LoggingLevel | UnsetType = field(name=LOG_LEVEL_KEY, default=UNSET)
    subscription_id: RequestId | UnsetType = field(name=SUBSCRIPTION_ID_KEY, default=UNSET)
    progress_token: ProgressToken | UnsetType = UNSET
    traceparent: str | UnsetType = UNSET
    tracestate: str | UnsetType = UNSET
    baggage: str | UnsetType = UNSET


class ResultMeta(Model, kw_only=True):
    """The typed reading of a result's `_meta`."""

    server_info: Implementation | UnsetType = field(name=SERVER_INFO_KEY, default=UNSET)
    subscription_id: RequestId | UnsetType = field(name=SUBSCRIPTION_ID_KEY, default=UNSET)


class Params(Model, kw_only=True):
    """Base of all params, and the params of a method that has none of its own.

    `meta` stays as it was sent: nothing in it is lost, and a sender may put an encoded one there.
    """

    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class PaginatedParams(Params, kw_only=True):
    """The specification's `PaginatedRequestParams`: `cursor` is opaque, and absent for the first page."""

    cursor: str | UnsetType = UNSET


class ResourceParams(Params, kw_only=True):
    """The specification's `ResourceRequestParams`."""

    uri: str


class InputResponseParams(Params, kw_only=True):
    """What a retry carries after an `input_required` result: the answers by key, and the state echoed."""

    input_responses: dict[str, Any] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET


class Result(Model, kw_only=True):
    """Base of all results. `result_type` is absent where the revision has no such member."""

    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)
    result_type: str | UnsetType = UNSET


class EmptyResult(Result, kw_only=True):
    """A success that says nothing more."""


class CacheableResult(Result, kw_only=True):
    """A result with a lifetime in milliseconds, and whether it may be shared between users."""

    ttl_ms: int | UnsetType = UNSET
    cache_scope: CacheScope | UnsetType = UNSET


class PaginatedResult(CacheableResult, kw_only=True):
    """One page of a list; `next_cursor` is absent on the last page."""

    next_cursor: str | UnsetType = UNSET
