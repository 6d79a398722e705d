"""A notebook: resources, a template, a prompt with suggestions, and notices when something changes.

    dragoman run examples/notes/server.py
    dragoman run examples/notes/server.py --http 127.0.0.1:8000

It keeps its notes in memory.
"""

from __future__ import annotations

from typing import Annotated, Literal

from dragoman import Message, Meta, Server

server = Server("notes", version="1.0.0", instructions="Read a note before you change it.")
notes = {"garden": "Cut the roses.", "today": "Buy bread."}


def names(typed: str) -> list[str]:
    """Suggestions: the notes that begin with what was typed."""
    return [name for name in sorted(notes) if name.startswith(typed)]


@server.resource("notes://all", ttl_ms=5_000, cache_scope="private")
async def everything() -> dict[str, str]:
    """All notes in one."""
    return notes


@server.resource("notes://note/{name}", mime_type="text/plain", complete={"name": names})
async def note(name: str) -> str | None:
    """One note."""
    return notes.get(name)


@server.prompt(title="Summarise a note", complete={"name": names})
async def summarise(
    name: Annotated[str, Meta(description="Which note")], length: Literal["short", "long"] = "short"
) -> list[Message]:
    """Ask for a summary."""
    return [
        Message(f"Give me a {length} summary of this note."),
        Message(notes.get(name, "(empty)")),
    ]


@server.tool
async def write(name: str, text: str) -> str:
    """Write a note; whoever watches it is told."""
    notes[name] = text
    server.notify_resource_updated(f"notes://note/{name}")
    return f"Wrote {name}."


@server.tool
async def pin(name: str) -> str:
    """Put a note on the list of resources; whoever listens is told that the list changed."""

    async def pinned() -> str:
        return notes.get(name, "")

    server.add_resource(f"notes://pinned/{name}", pinned, name=name, mime_type="text/plain")
    return f"Pinned {name}."


if __name__ == "__main__":
    server.run()
