"""A server that does a little of everything, for recordings."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman import Context, Server, ToolError


@dataclass
class Answer:
    yes: bool


def orders(*, price: int = 10) -> Server:
    server = Server("orders", version="1.0.0", instructions="ask politely", secret="s" * 32)

    @server.tool
    async def lookup(order_id: str, ctx: Context) -> dict[str, int]:
        """Look an order up."""
        await ctx.report_progress(1, 2, "half")
        return {"price": price}

    @server.tool
    async def login(user: str, password: str) -> str:
        return f"{user} is in, with {password}"

    @server.tool
    async def fail() -> str:
        raise ToolError(f"it costs {price}")

    @server.tool
    async def confirm(ctx: Context) -> str:
        answer = await ctx.elicit("Sure?", Answer)
        return f"{answer.action}: {answer.data.yes if answer.data else None}"

    return server
