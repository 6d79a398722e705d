"""What a server asks of the client: elicitation, sampling, roots, and the result that asks for them.

The same params travel as requests of their own (revisions that ask inline) and inside an
`InputRequiredResult` (the others); this module does not know which.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType, field

from dragoman.model.base import Model, Number, Params, Result, Role
from dragoman.model.content import SamplingMessageContentBlock
from dragoman.model.tools import Tool

ElicitAction = Literal["accept", "decline", "cancel"]
ElicitValue = str | int | float | bool | list[str]


class StringSchema(Model, kw_only=True, tag_field="type", tag="string"):
    """A form field for text."""

    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    min_length: int | UnsetType = UNSET
    max_length: int | UnsetType = UNSET
    format: Literal["email", "uri", "date", "date-time"] | UnsetType = UNSET
    default: str | UnsetType = UNSET


class NumberSchema(Model, kw_only=True):
    """A form field for a number."""

    type: Literal["number", "integer"]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    minimum: Number | UnsetType = UNSET
    maximum: Number | UnsetType = UNSET
    default: Number | UnsetType = UNSET


class BooleanSchema(Model, kw_only=True, tag_field="type", tag="boolean"):
    """A form field for yes or no."""

    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: bool | UnsetType = UNSET


class TitledOption(Model, kw_only=True):
    """One choice: the value that is sent, and the title that is shown."""

    const: str
    title: str


class UntitledSingleSelectEnumSchema(Model, kw_only=True, tag_field="type", tag="string"):
    """A form field for one of several values."""

    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    enum: list[str]
    default: str | UnsetType = UNSET


class TitledSingleSelectEnumSchema(Model, kw_only=True, tag_field="type", tag="string"):
    """A form field for one of several titled choices."""

    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    one_of: list[TitledOption]
    default: str | UnsetType = UNSET


class NamedEnumSchema(Model, kw_only=True, tag_field="type", tag="string"):
    """One of several values with display names beside them: the older way to title an enum.

    `EnumSchema` in revision 2025-06-18; kept, and renamed, in the later ones.
    """

    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    enum: list[str]
    enum_names: list[str] | UnsetType = UNSET
    default: str | UnsetType = UNSET


class UntitledItems(Model, kw_only=True, tag_field="type", tag="string"):
    """The choices of an `UntitledMultiSelectEnumSchema`."""

    enum: list[str]


class TitledItems(Model, kw_only=True):
    """The choices of a `TitledMultiSelectEnumSchema`."""

    any_of: list[TitledOption]


class UntitledMultiSelectEnumSchema(Model, kw_only=True, tag_field="type", tag="array"):
    """A form field for any of several values."""

    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    items: UntitledItems
    default: list[str] | UnsetType = UNSET


class TitledMultiSelectEnumSchema(Model, kw_only=True, tag_field="type", tag="array"):
    """A form field for any of several titled choices."""

    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    items: TitledItems
    default: list[str] | UnsetType = UNSET


EnumSchema = (
    UntitledSingleSelectEnumSchema
    | TitledSingleSelectEnumSchema
    | UntitledMultiSelectEnumSchema
    | TitledMultiSelectEnumSchema
    | NamedEnumSchema
)
PrimitiveSchemaDefinition = StringSchema | NumberSchema | BooleanSchema | EnumSchema


def primitive_schema(definition: dict[str, Any]) -> PrimitiveSchemaDefinition:
    """Reads one property of a form's `requestedSchema` as the struct whose shape it has.

    Raises `msgspec.ValidationError`, naming the member, when it has none of the shapes that
    client/elicitation, "Requested Schema", allows.
    """
    return msgspec.convert(definition, _shape(definition))


def _shape(definition: dict[str, Any]) -> type[PrimitiveSchemaDefinition]:
    match definition.get("type"):
        case "string" if "oneOf" in definition:
            return TitledSingleSelectEnumSchema
        case "string" if "enumNames" in definition:
            return NamedEnumSchema
        case "string":
            return UntitledSingleSelectEnumSchema if "enum" in definition else StringSchema
        case "boolean":
            return BooleanSchema
        case "array":
            items = definition.get("items")
            titled = isinstance(items, dict) and "anyOf" in items
            return TitledMultiSelectEnumSchema if titled else UntitledMultiSelectEnumSchema
        case _:
            return NumberSchema


class ElicitParams(Params, kw_only=True):
    """A question to the person: a form (`requested_schema`), or a page to open (`url`).

    Form mode need not be named on the wire, so one struct reads both and checks that what its mode
    needs is there; `ElicitFormParams` and `ElicitURLParams` are for building.
    """

    mode: Literal["form", "url"] | UnsetType = UNSET
    message: str
    requested_schema: dict[str, Any] | UnsetType = UNSET
    url: str | UnsetType = UNSET
    elicitation_id: str | UnsetType = UNSET
    task: Any = UNSET

    def __post_init__(self) -> None:
        if self.mode == "url":
            if self.url is UNSET:
                raise ValueError("elicitation in mode `url` needs a member `url`")
        elif self.requested_schema is UNSET:
            raise ValueError("elicitation in mode `form` needs a member `requestedSchema`")


class ElicitFormParams(ElicitParams, kw_only=True):
    """A form: `requested_schema` is a flat object schema of primitive fields."""

    requested_schema: dict[str, Any]  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  # required of who builds one


class ElicitURLParams(ElicitParams, kw_only=True):
    """A page for the person to open, whose answers this client must not see."""

    # Not a plain default: a member at its default is not written, and this one has to be.
    mode: Literal["form", "url"] | UnsetType = field(default_factory=lambda: "url")
    url: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  # required of who builds one


class ElicitResult(Result, kw_only=True):
    """What the person did; `content` holds the form's values when they accepted."""

    action: ElicitAction
    content: dict[str, ElicitValue] | UnsetType = UNSET


class ElicitationCompleteParams(Params, kw_only=True):
    """`notifications/elicitation/complete`: the page has been dealt with (revision 2025-11-25)."""

    elicitation_id: str


class SamplingMessage(Model, kw_only=True):
    """One message of a conversation with a model; `content` is one block or several."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class ModelHint(Model, kw_only=True):
    """A part of a model's name."""

    name: str | UnsetType = UNSET


class ModelPreferences(Model, kw_only=True):
    """Which model the server would like; the priorities are from 0 to 1."""

    hints: list[ModelHint] | UnsetType = UNSET
    cost_priority: Number | UnsetType = UNSET
    speed_priority: Number | UnsetType = UNSET
    intelligence_priority: Number | UnsetType = UNSET


class ToolChoice(Model, kw_only=True):
    """Whether the model may, must or must not use the tools it is given."""

    mode: Literal["auto", "required", "none"] | UnsetType = UNSET


class CreateMessageParams(Params, kw_only=True):
    """The specification's `CreateMessageRequestParams`: ask the client's model."""

    messages: list[SamplingMessage]
    model_preferences: ModelPreferences | UnsetType = UNSET
    system_prompt: str | UnsetType = UNSET
    include_context: Literal["none", "thisServer", "allServers"] | UnsetType = UNSET
    temperature: Number | UnsetType = UNSET
    max_tokens: int
    stop_sequences: list[str] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    tools: list[Tool] | UnsetType = UNSET
    tool_choice: ToolChoice | UnsetType = UNSET
    task: Any = UNSET


class CreateMessageResult(Result, kw_only=True):
    """What the client's model answered; `stop_reason` is `endTurn`, `maxTokens`, ... or its own word."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]
    model: str
    stop_reason: str | UnsetType = UNSET


class Root(Model, kw_only=True):
    """A place the server may work in; `uri` is a `file://` URI."""

    uri: str
    name: str | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class ListRootsResult(Result, kw_only=True):
    """The roots the client offers."""

    roots: list[Root]


class CreateMessageRequest(Model, kw_only=True, tag_field="method", tag="sampling/createMessage"):
    """A sampling request inside an `InputRequiredResult`."""

    params: CreateMessageParams


class ListRootsRequest(Model, kw_only=True, tag_field="method", tag="roots/list"):
    """A question for the roots inside an `InputRequiredResult`."""

    params: Params | UnsetType = UNSET


class ElicitRequest(Model, kw_only=True, tag_field="method", tag="elicitation/create"):
    """An elicitation inside an `InputRequiredResult`."""

    params: ElicitParams


InputRequest = CreateMessageRequest | ListRootsRequest | ElicitRequest
InputResponse = CreateMessageResult | ListRootsResult | ElicitResult

# The wire does not tag answers: what one is follows from the method that it answers.
INPUT_RESPONSES: Mapping[str, type[InputResponse]] = MappingProxyType(
    {
        "sampling/createMessage": CreateMessageResult,
        "roots/list": ListRootsResult,
        "elicitation/create": ElicitResult,
    }
)


class InputRequiredResult(Result, kw_only=True):
    """The call goes on when it is sent again with answers under the same keys and the state echoed.

    At least one of the two members is there (basic/patterns/mrtr).
    """

    input_requests: dict[str, InputRequest] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
