"""What the revisions with a handshake share: who calls is what `initialize` said.

Also the steps by which a result in the newest shape becomes one of an older revision. It knows
which fields an older shape lacks, not which revision lacks them: that is in the modules that
list these steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import Refusal
from dragoman.model import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    GetPromptResult,
    InitializeResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    Prompt,
    ReadResourceResult,
    RequestMeta,
    ResourceContents,
    ResourceLink,
    Result,
    TextContent,
    Tool,
)
from dragoman.revisions.base import NOBODY, Caller, Method

if TYPE_CHECKING:
    from dragoman.revisions.base import Addition, Seal

NOT_INITIALIZED = (
    "Not initialized: this connection has had no `initialize`. Send it first, or send "
    "`_meta` with io.modelcontextprotocol/protocolVersion and clientCapabilities (2026-07-28)"
)

Step = Callable[[Any], Any]


def identify(session: Caller | None, method: Method, *, meta: RequestMeta) -> Caller:
    """The caller of a session; before the handshake only open methods are answered.

    Raises:
        Refusal: -32600 when there was no handshake and the method needs one.
    """
    del meta  # what `initialize` said counts, whatever a request says
    if session is not None:
        return session
    if not method.open:
        raise Refusal(-32600, NOT_INITIALIZED)
    return NOBODY


def sealer(steps: Mapping[type[Result], Step]) -> Seal:
    """A `Revision.seal`: takes out what no handshake revision has, then applies `steps` by result type."""

    def seal(result: Result, method: Method, *, extra: Addition) -> Result:
        del extra  # these revisions name the server in the handshake
        if result.result_type is not UNSET:
            result = replace(result, result_type=UNSET)
        if method.cacheable and getattr(result, "ttl_ms", UNSET) is not UNSET:
            result = replace(result, ttl_ms=UNSET, cache_scope=UNSET)
        step = steps.get(type(result))
        return result if step is None else step(result)

    return seal


def chain(*steps: Step) -> Step:
    """One step out of several, first to last."""

    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run


def object_structured(result: CallToolResult) -> CallToolResult:
    """`structuredContent` was an object before 2026-07-28; other JSON stays in the text alone."""
    value = result.structured_content
    if value is UNSET or isinstance(value, Mapping) or hasattr(value, "__struct_fields__"):
        return result
    if isinstance(value, msgspec.Raw) and bytes(value[:1]) == b"{":
        return result
    return replace(result, structured_content=UNSET)


def without_structured(result: CallToolResult) -> CallToolResult:
    """Before 2025-06-18 a tool result had no structured content; its text says the same."""
    return result if result.structured_content is UNSET else replace(result, structured_content=UNSET)


def link_as_text(block: ContentBlock) -> ContentBlock:
    """Before 2025-06-18 there was no `resource_link`: the link is told in text."""
    if type(block) is not ResourceLink:
        return block
    return TextContent(text=f"{block.title or block.name}: {block.uri}")


def audio_as_text(block: ContentBlock) -> ContentBlock:
    """Before 2025-03-26 there was no audio content: its absence is told in text."""
    if type(block) is not AudioContent:
        return block
    return TextContent(text=f"[audio, {block.mime_type}: this client's protocol has no audio]")


def link_without_icons(block: ContentBlock) -> ContentBlock:
    """Before 2025-11-25 nothing had icons."""
    if type(block) is not ResourceLink or block.icons is UNSET:
        return block
    return replace(block, icons=UNSET)


def plain(block: ContentBlock) -> ContentBlock:
    """Before 2025-06-18 content had no `_meta`, and annotations did not say when something was modified."""
    block = _undated(block)
    if block.meta is not UNSET:
        block = replace(block, meta=UNSET)
    if type(block) is EmbeddedResource and block.resource.meta is not UNSET:
        block = replace(block, resource=_plain_resource(block.resource))
    return block


def _plain_resource(resource: ResourceContents) -> ResourceContents:
    return resource if resource.meta is UNSET else replace(resource, meta=UNSET)


def plain_resources(result: ReadResourceResult) -> ReadResourceResult:
    """A step for `resources/read`: before 2025-06-18 contents had no `_meta`."""
    return replace(result, contents=[_plain_resource(resource) for resource in result.contents])


def contents(change: Callable[[ContentBlock], ContentBlock]) -> Step:
    """A step for `tools/call`: `change` applied to each content block."""

    def run(result: CallToolResult) -> CallToolResult:
        blocks = [change(block) for block in result.content]
        if all(new is old for new, old in zip(blocks, result.content, strict=True)):
            return result
        return replace(result, content=blocks)

    return run


def tools(*fields: str) -> Step:
    """A step for `tools/list`: tools without `fields`, and without output schemas that are no object's."""
    dropped: dict[str, Any] = dict.fromkeys(fields, UNSET)

    def run(result: ListToolsResult) -> ListToolsResult:
        return replace(result, tools=[replace(_object_output(tool), **dropped) for tool in result.tools])

    return run


def _object_output(tool: Tool) -> Tool:
    schema = tool.output_schema
    if schema is UNSET or schema.get("type") == "object":
        return tool
    return replace(tool, output_schema=UNSET)


def listed(member: str, *fields: str) -> Step:
    """A step for a list result: each entry of `member` without `fields`."""
    dropped: dict[str, Any] = dict.fromkeys(fields, UNSET)

    def run(result: Any) -> Any:
        return replace(result, **{member: [replace(entry, **dropped) for entry in getattr(result, member)]})

    return run


def prompt_messages(change: Step) -> Step:
    """A step for `prompts/get`: `change` applied to each message's content."""

    def run(result: GetPromptResult) -> GetPromptResult:
        return replace(result, messages=[replace(m, content=change(m.content)) for m in result.messages])

    return run


def bare_server(*fields: str) -> Step:
    """A step for `initialize`: the server described without `fields`."""
    dropped: dict[str, Any] = dict.fromkeys(fields, UNSET)

    def run(result: InitializeResult) -> InitializeResult:
        return replace(result, server_info=replace(result.server_info, **dropped))

    return run


def untitled_arguments(result: ListPromptsResult) -> ListPromptsResult:
    """Before 2025-06-18 the arguments of a prompt had no titles."""
    return replace(result, prompts=[_untitled(prompt) for prompt in result.prompts])


def _untitled(prompt: Prompt) -> Prompt:
    if prompt.arguments is UNSET:
        return prompt
    return replace(prompt, arguments=[replace(argument, title=UNSET) for argument in prompt.arguments])


def without_completions(result: InitializeResult) -> InitializeResult:
    """Before 2025-03-26 there was completion, but no capability for it."""
    return replace(result, capabilities=replace(result.capabilities, completions=UNSET))


def undated(member: str) -> Step:
    """A step for a list result: as `plain` has it of annotations."""

    def run(result: Any) -> Any:
        return replace(result, **{member: [_undated(entry) for entry in getattr(result, member)]})

    return run


def _undated(entry: Any) -> Any:
    said = entry.annotations
    if said is UNSET or said.last_modified is UNSET:
        return entry
    return replace(entry, annotations=replace(said, last_modified=UNSET))


def lists(*fields: str) -> dict[type[Result], Step]:
    """The same fields taken out of prompts, resources and templates."""
    return {
        ListPromptsResult: listed("prompts", *fields),
        ListResourcesResult: listed("resources", *fields),
        ListResourceTemplatesResult: listed("resource_templates", *fields),
    }


def first_lists() -> dict[type[Result], Step]:
    """Prompts, resources and templates as they were before 2025-06-18."""
    fields = ("icons", "title", "meta")
    return {
        ListPromptsResult: chain(listed("prompts", *fields), untitled_arguments),
        ListResourcesResult: chain(listed("resources", *fields), undated("resources")),
        ListResourceTemplatesResult: chain(
            listed("resource_templates", *fields), undated("resource_templates")
        ),
    }
