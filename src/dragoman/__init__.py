"""The public names of dragoman, each loaded on first use (PEP 562).

`import dragoman` reads this file and nothing else; `dragoman.Server` loads the server and what
it stands on. This module knows where each name lives and refuses to know more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.version import VERSION as __version__

if TYPE_CHECKING:
    from msgspec import Meta

    from dragoman.client import Cache, Change, Client, OtherContent, SyncClient, ToolResult
    from dragoman.client.group import ClientGroup
    from dragoman.client.skills import LoadedSkill, SkillFault, SkillFile
    from dragoman.client.sync_group import SyncClientGroup
    from dragoman.client.terminal import decline, terminal_form
    from dragoman.errors import (
        ClosedError,
        ConnectError,
        DeadlineError,
        DragomanError,
        LocalError,
        NegotiationError,
        PeerFault,
        Refusal,
        RemoteError,
        ResourceNotFound,
        ToolError,
        ToolFailure,
        UsageError,
    )
    from dragoman.extensions.skills import Skills
    from dragoman.extensions.tasks import Tasks
    from dragoman.model import (
        Annotations,
        AudioContent,
        CallToolResult,
        CreateMessageParams,
        CreateMessageResult,
        ElicitParams,
        ElicitResult,
        EmbeddedResource,
        GetPromptResult,
        Icon,
        ImageContent,
        InputRequiredResult,
        Prompt,
        PromptMessage,
        ReadResourceResult,
        Resource,
        ResourceContents,
        ResourceLink,
        ResourceTemplate,
        Root,
        TextContent,
        Tool,
        ToolAnnotations,
    )
    from dragoman.model.skills_extension import Skill
    from dragoman.server import Audio, Context, File, Image, Server
    from dragoman.server.depends import Depends
    from dragoman.server.prompts import Message
    from dragoman.transports.http_base import HttpOptions

# Name -> the module that has it. A new public name is one line here and one import above; a test
# holds the two and `__all__` together.
_HOMES = {
    "Annotations": "dragoman.model",
    "Audio": "dragoman.server",
    "AudioContent": "dragoman.model",
    "Cache": "dragoman.client",
    "CallToolResult": "dragoman.model",
    "Change": "dragoman.client",
    "Client": "dragoman.client",
    "ClientGroup": "dragoman.client.group",
    "ClosedError": "dragoman.errors",
    "ConnectError": "dragoman.errors",
    "Context": "dragoman.server",
    "CreateMessageParams": "dragoman.model",
    "CreateMessageResult": "dragoman.model",
    "DeadlineError": "dragoman.errors",
    "Depends": "dragoman.server.depends",
    "DragomanError": "dragoman.errors",
    "ElicitParams": "dragoman.model",
    "ElicitResult": "dragoman.model",
    "EmbeddedResource": "dragoman.model",
    "File": "dragoman.server",
    "GetPromptResult": "dragoman.model",
    "HttpOptions": "dragoman.transports.http_base",
    "Icon": "dragoman.model",
    "Image": "dragoman.server",
    "ImageContent": "dragoman.model",
    "InputRequiredResult": "dragoman.model",
    "LoadedSkill": "dragoman.client.skills",
    "LocalError": "dragoman.errors",
    "Message": "dragoman.server.prompts",
    "Meta": "msgspec",
    "NegotiationError": "dragoman.errors",
    "OtherContent": "dragoman.client",
    "PeerFault": "dragoman.errors",
    "Prompt": "dragoman.model",
    "PromptMessage": "dragoman.model",
    "ReadResourceResult": "dragoman.model",
    "Refusal": "dragoman.errors",
    "RemoteError": "dragoman.errors",
    "Resource": "dragoman.model",
    "ResourceContents": "dragoman.model",
    "ResourceLink": "dragoman.model",
    "ResourceNotFound": "dragoman.errors",
    "ResourceTemplate": "dragoman.model",
    "Root": "dragoman.model",
    "Server": "dragoman.server",
    "Skill": "dragoman.model.skills_extension",
    "SkillFault": "dragoman.client.skills",
    "SkillFile": "dragoman.client.skills",
    "Skills": "dragoman.extensions.skills",
    "SyncClient": "dragoman.client",
    "SyncClientGroup": "dragoman.client.sync_group",
    "Tasks": "dragoman.extensions.tasks",
    "TextContent": "dragoman.model",
    "Tool": "dragoman.model",
    "ToolAnnotations": "dragoman.model",
    "ToolError": "dragoman.errors",
    "ToolFailure": "dragoman.errors",
    "ToolResult": "dragoman.client",
    "UsageError": "dragoman.errors",
    "decline": "dragoman.client.terminal",
    "terminal_form": "dragoman.client.terminal",
}

__all__ = [
    "Annotations",
    "Audio",
    "AudioContent",
    "Cache",
    "CallToolResult",
    "Change",
    "Client",
    "ClientGroup",
    "ClosedError",
    "ConnectError",
    "Context",
    "CreateMessageParams",
    "CreateMessageResult",
    "DeadlineError",
    "Depends",
    "DragomanError",
    "ElicitParams",
    "ElicitResult",
    "EmbeddedResource",
    "File",
    "GetPromptResult",
    "HttpOptions",
    "Icon",
    "Image",
    "ImageContent",
    "InputRequiredResult",
    "LoadedSkill",
    "LocalError",
    "Message",
    "Meta",
    "NegotiationError",
    "OtherContent",
    "PeerFault",
    "Prompt",
    "PromptMessage",
    "ReadResourceResult",
    "Refusal",
    "RemoteError",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceNotFound",
    "ResourceTemplate",
    "Root",
    "Server",
    "Skill",
    "SkillFault",
    "SkillFile",
    "Skills",
    "SyncClient",
    "SyncClientGroup",
    "Tasks",
    "TextContent",
    "Tool",
    "ToolAnnotations",
    "ToolError",
    "ToolFailure",
    "ToolResult",
    "UsageError",
    "__version__",
    "decline",
    "terminal_form",
]


def __getattr__(name: str) -> Any:
    """Load the module that has `name` and keep the value, so that this runs once a name."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
