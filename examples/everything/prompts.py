"""The part of the everything server that gives prompts, and suggests what to fill in."""

from __future__ import annotations

from typing import Any, Literal

from dragoman import Context, Image, Message, Server
from dragoman.model import TextResourceContents

CONTEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"context": {"type": "string"}},
    "required": ["context"],
}

PLACES = {"France": ["Paris", "Lyon", "Marseille"], "Korea": ["서울", "부산", "인천"]}


def test_simple_prompt() -> str:
    """Takes nothing and gives one message."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Repeats its arguments.

    Args:
        arg1: First test argument.
        arg2: Second test argument.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803  # the suite names it so
    """Puts a resource into a message.

    Args:
        resourceUri: URI of the resource to embed.
    """
    embedded = TextResourceContents(
        uri=resourceUri, mime_type="text/plain", text="Embedded resource content for testing."
    )
    return [embedded, "Please process the embedded resource above."]


def travel(country: str, city: str, days: int = 3, style: Literal["slow", "busy"] = "slow") -> list[Message]:
    """Plans a journey. Its arguments have types, and suggestions that depend on one another.

    Args:
        country: Where to go.
        city: Where to start.
        days: How long.
        style: How many things a day.
    """
    return [
        Message(f"I have {days} days for {city} in {country}, and want a {style} journey."),
        Message("What do you want to see most of all?", role="assistant"),
    ]


def cities(typed: str, settled: dict[str, str]) -> list[str]:
    """Those of the country that was chosen before, or all."""
    chosen = PLACES.get(settled.get("country", ""))
    known = chosen or [city for several in PLACES.values() for city in several]
    return [city for city in known if typed.casefold() in city.casefold()]


async def test_input_required_result_prompt(ctx: Context) -> str:
    """Asks the person for context before it says anything."""
    answer = await ctx.elicit("What context should the prompt use?", CONTEXT, key="user_context")
    given = answer.data["context"] if answer.data else "none"
    return f"Use this context: {given}"


def add_to(server: Server, picture: bytes) -> None:
    """All of them, and a tool that changes the list."""
    server.add_prompt(test_simple_prompt)
    server.add_prompt(test_prompt_with_arguments, complete={"arg1": ["test", "testing", "tested"]})
    server.add_prompt(test_prompt_with_embedded_resource)
    server.add_prompt(travel, title="Plan a journey", complete={"country": list(PLACES), "city": cities})
    server.add_prompt(test_input_required_result_prompt)

    @server.prompt
    def test_prompt_with_image() -> list[Any]:
        """Puts a picture into a message."""
        return [Image(picture, format="png"), "Please analyze the image above."]

    @server.tool
    async def test_trigger_prompt_change() -> str:
        """Adds a prompt and takes it away; whoever listens is told of both."""

        def test_passing_prompt() -> str:
            """Is gone again before anybody can ask for it."""
            return "Nobody reads this"

        server.add_prompt(test_passing_prompt)
        server.remove_prompt("test_passing_prompt")
        return "Added a prompt and removed it"
