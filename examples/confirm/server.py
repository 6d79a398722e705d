"""A tool that asks before it acts: one handler, on every revision and every transport.

    dragoman run examples/confirm/server.py

Where the revision lets a server ask, the question is a request to the client in the middle of the call.
Where it does not, the call ends with the question and is made again with the answer; the handler is entered
anew, and the step that moves the money is done once all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dragoman import Context, Meta, Server

server = Server("confirm", version="1.0.0")
charges: list[float] = []


@dataclass
class Refund:
    sure: Annotated[bool, Meta(description="Refund the whole amount")]


def pay(amount: float) -> int:
    """The effect that must not happen twice."""
    charges.append(amount)
    return len(charges)


@server.tool
async def refund_order(order_id: str, amount: float, ctx: Context) -> str:
    """Give the money for an order back, once a person said yes."""
    answer = await ctx.elicit(f"Refund {amount} for {order_id}?", Refund, key="sure")
    if answer.data is None or not answer.data.sure:
        return "Nothing was refunded."
    number = await ctx.step("pay", pay, amount)
    return f"Refunded {amount} for {order_id} (charge {number})."


if __name__ == "__main__":
    server.run()
