"""The server of ours that clients of others call; python -m tests.interop.served serves it over stdio."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from dragoman import Context, Server, ToolError
from dragoman.model import ContentBlock, ImageContent, TextContent

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@dataclass
class Order:
    """An order."""

    order_id: str
    amount: float
    note: str | None = None


@dataclass
class Booking:
    """What the person is asked."""

    day: Literal["friday", "saturday"]
    people: int = 2


def build() -> Server:  # noqa: C901  # a list of tools, one after the other
    server = Server("served", version="1.0.0", instructions="Add before you wait.")
    stopped, there = 0, False
    all_heard = asyncio.Event()

    @server.tool(annotations={"readOnlyHint": True}, title="Addition")
    async def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    @server.tool
    def echo(text: str) -> str:
        """Give the text back."""
        return text

    @server.tool
    def order(order_id: Annotated[str, Meta(pattern=r"^[A-Z]-\d{4}$")]) -> Order:
        """Find an order."""
        return Order(order_id, 12.5)

    @server.tool
    async def fail() -> str:
        """Always fails."""
        raise ToolError("nothing works today")

    @server.tool
    async def picture() -> list[ContentBlock]:
        """A picture with words."""
        return [TextContent(text="한 점"), ImageContent(data=PIXEL, mime_type="image/png")]

    @server.tool
    async def book(ctx: Context) -> str:
        """Ask the person, then the model, then for the roots."""
        booking = await ctx.elicit("Which table?", Booking)
        if booking.data is None:
            return booking.action
        said = await ctx.sample(f"Say something on {booking.data.people} people.")
        roots = await ctx.list_roots()
        words = said.content.text if isinstance(said.content, TextContent) else "?"
        return f"{booking.data.day}, {booking.data.people}, {words}, {roots[0].uri}"

    @server.tool
    async def steps(count: int, ctx: Context) -> str:
        """Report progress, and end when somebody says that it was heard.

        The TypeScript SDKs forget who listens when the answer comes in, before they hand on progress
        that came in with it.
        """
        for step in range(count):
            await ctx.report_progress(step + 1, count, f"step {step + 1}")
        await all_heard.wait()
        return "done"

    @server.tool
    async def heard() -> None:
        """Let `steps` end."""
        all_heard.set()

    @server.tool
    async def wait(ctx: Context) -> str:
        """Say that it began, and never end."""
        nonlocal stopped
        await ctx.report_progress(0, 1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped += 1
            raise
        return "never"

    @server.tool
    async def waits_stopped() -> int:
        """How many calls of `wait` were cancelled."""
        return stopped

    async def more() -> str:
        """There on and off."""
        return "more"

    @server.tool
    async def change() -> bool:
        """Add a tool, or take it away again; says whether it is there now."""
        nonlocal there
        there = not there
        if there:
            server.add_tool(more)
        else:
            server.remove_tool("more")
        return there

    return server


if __name__ == "__main__":
    build().run()
