"""The smallest server: one tool that calculates.

    dragoman call examples/calculate/server.py demo_calculate a=10 b=5 operation=add

A tool is a function: its signature is the schema, its docstring the description. What it raises is
an answer that the caller can act on.
"""

from __future__ import annotations

from typing import Literal

from dragoman import Server, ToolError

server = Server("calculate", version="1.0.0")


@server.tool
def demo_calculate(a: float, b: float, operation: Literal["add", "subtract", "multiply", "divide"]) -> float:
    """Calculate with two numbers."""
    if operation == "add":
        return a + b
    if operation == "subtract":
        return a - b
    if operation == "multiply":
        return a * b
    if b == 0:
        raise ToolError(f"cannot divide {a:g} by zero")
    return a / b


if __name__ == "__main__":
    server.run()
