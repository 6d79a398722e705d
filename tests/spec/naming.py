"""Which struct of the model stands for which definition of the specification."""

from __future__ import annotations

from types import UnionType
from typing import Any

import msgspec

from dragoman import model

# Where the model's name is neither the definition's nor that without `Request` or `Notification`.
RENAMED: dict[str, Any] = {
    "BaseMetadata": None,  # a mixin of `name` and `title`, never on the wire by itself
    "ElicitRequestFormParams": model.ElicitFormParams,
    "ElicitRequestURLParams": model.ElicitURLParams,
    "Icons": None,  # a mixin
    "EnumSchema": model.NamedEnumSchema,  # as 2025-06-18 has it; later a union, see UNIONS
    "LegacyTitledEnumSchema": model.NamedEnumSchema,
    "ResourceContents": None,  # the base of the two kinds; the model's struct is their union
    "ResourceReference": model.ResourceTemplateReference,  # its name up to 2025-03-26
    "NotificationMetaObject": model.RequestMeta,
    "RequestMetaObject": model.RequestMeta,
    "ResultMetaObject": model.ResultMeta,
    "SubscriptionsListenResultMetaObject": model.ResultMeta,
    "NotificationParams": model.Params,
    "RequestParams": model.Params,
    "PaginatedRequestParams": model.PaginatedParams,
    "ResourceRequestParams": model.ResourceParams,
    "InputResponseRequestParams": model.InputResponseParams,
    "TaskAugmentedRequestParams": None,  # a mixin of `task`
    "GetTaskResult": model.TaskResult,
    "CancelTaskResult": model.TaskResult,
    "GetTaskPayloadResult": model.Result,
    "InputRequests": dict[str, model.InputRequest],
    "Annotated": None,  # a mixin of `annotations` (2024-11-05)
    "Error": None,  # the engine's, as the envelopes are
}

# Methods whose params have no definition of their own in some revision, by their request.
PARAMS: dict[str, type[model.Model]] = {
    "InitializedNotification": model.Params,
    "PingRequest": model.Params,
    "DiscoverRequest": model.DiscoverParams,
    "ListRootsRequest": model.Params,
    "ListPromptsRequest": model.PaginatedParams,
    "ListResourcesRequest": model.PaginatedParams,
    "ListResourceTemplatesRequest": model.PaginatedParams,
    "ListTasksRequest": model.PaginatedParams,
    "ListToolsRequest": model.PaginatedParams,
    "PaginatedRequest": model.PaginatedParams,
    "ElicitRequest": model.ElicitParams,
    "GetTaskRequest": model.TaskParams,
    "GetTaskPayloadRequest": model.TaskParams,
    "CancelTaskRequest": model.TaskParams,
    "PromptListChangedNotification": model.Params,
    "ResourceListChangedNotification": model.Params,
    "RootsListChangedNotification": model.Params,
    "ToolListChangedNotification": model.Params,
}


def model_for(definition: str) -> Any:
    """The type that reads this definition, or None."""
    if definition in RENAMED:
        return RENAMED[definition]
    short = definition.replace("RequestParams", "Params").replace("NotificationParams", "Params")
    found = getattr(model, short, None)
    is_type = isinstance(found, UnionType) or (isinstance(found, type) and issubclass(found, msgspec.Struct))
    return found if is_type else None


def params_for(definition: str) -> type[model.Model]:
    """The struct that reads the params of this request or notification."""
    if definition in PARAMS:
        return PARAMS[definition]
    stem = definition.removesuffix("Request").removesuffix("Notification")
    found: type[model.Model] = getattr(model, f"{stem}Params")
    return found
