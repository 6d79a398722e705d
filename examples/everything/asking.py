"""The part of the everything server that asks the client: forms, models, roots, several rounds.

Each handler is written once. On revisions with a handshake its questions are requests to the client; on the
stateless ones its call ends with `input_required`, and is entered anew when the answers come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import UNSET, Meta

from dragoman import Context, InputRequiredResult, Server
from dragoman.model import (
    CreateMessageParams,
    CreateMessageRequest,
    ElicitFormParams,
    ElicitRequest,
    InputRequest,
    SamplingMessage,
    TextContent,
)


@dataclass
class Name:
    name: str


@dataclass
class Contact:
    username: Annotated[str, Meta(description="User's response")]
    email: Annotated[str, Meta(description="User's email address")]


DEFAULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    },
    "required": [],
}

TITLED = [
    {"const": "value1", "title": "First Option"},
    {"const": "value2", "title": "Second Option"},
    {"const": "value3", "title": "Third Option"},
]

ENUMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    "required": [],
}


async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model."""
    answer = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {said(answer.content)}"


async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the person for a name and an address."""
    answer = await ctx.elicit(message, Contact)
    return f"User response: action={answer.action}, content={answer.data}"


async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with a form in which every field has a default."""
    answer = await ctx.elicit("Please review and update the form fields with defaults", DEFAULTS)
    return f"Elicitation completed: action={answer.action}, content={answer.data}"


async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with a form of all kinds of choices."""
    answer = await ctx.elicit("Please select options from the enum fields", ENUMS)
    return f"Elicitation completed: action={answer.action}, content={answer.data}"


async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Asks one question."""
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {answer.data.name}!" if answer.data else "Hello, whoever you are!"


async def test_input_required_result_sampling(ctx: Context) -> str:
    """Asks the client's model one question."""
    answer = await ctx.sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return f"The model says: {said(answer.content)}"


async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Asks for the client's roots."""
    roots = await ctx.list_roots(key="client_roots")
    return f"The client has {len(roots)} roots: {', '.join(root.uri for root in roots)}"


async def test_input_required_result_request_state(ctx: Context) -> str:
    """Asks for a confirmation, and knows afterwards that it did."""
    await ctx.step("asked", lambda: True)
    answer = await ctx.elicit(
        "Please confirm", {"type": "object", "properties": {"ok": {"type": "boolean"}}}, key="confirm"
    )
    return f"state-ok: {answer.action}"


async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Asks the person, the model and for the roots, all at once."""
    name, greeting, roots = await ctx.gather(
        ctx.elicit("What is your name?", Name, key="user_name"),
        ctx.sample("Generate a greeting", max_tokens=50, key="greeting"),
        ctx.list_roots(key="client_roots"),
    )
    return f"{said(greeting.content)} {name.data.name if name.data else ''} ({len(roots)} roots)"


async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Asks twice, one after the other."""
    name = await ctx.elicit("Step 1: What is your name?", Name, key="step1")
    form = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    colour = await ctx.elicit("Step 2: What is your favorite color?", form, key="step2")
    return f"{name.data} likes {colour.data}"


async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Asks for a confirmation; a state that was changed on its way is refused."""
    await ctx.elicit(
        "Please confirm", {"type": "object", "properties": {"ok": {"type": "boolean"}}}, key="confirm"
    )
    return "The state came back as it was"


def test_missing_capability(ctx: Context) -> str:
    """Needs a client that can sample; refuses every other."""
    ctx.require("sampling")
    return "The client declared sampling"


# The raw form: the handler says itself what it needs, and finds the answers in its context ------------------


def test_streaming_elicitation(ctx: Context) -> InputRequiredResult:
    """Always ends with a question to the person, whatever was answered before."""
    ctx.require("elicitation")
    return InputRequiredResult(input_requests={"user_name": ask_name()})


def test_input_required_result_capabilities(ctx: Context) -> InputRequiredResult:
    """Asks for what this client can give, and for nothing else."""
    able: dict[str, InputRequest] = {}
    if ctx.client_capabilities.elicitation is not UNSET:
        able["user_name"] = ask_name()
    if ctx.client_capabilities.sampling is not UNSET:
        able["capital_question"] = ask_model("What is the capital of France?")
    return InputRequiredResult(input_requests=able)


def ask_name() -> ElicitRequest:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return ElicitRequest(params=ElicitFormParams(message="What is your name?", requested_schema=schema))


def ask_model(question: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(text=question))
    return CreateMessageRequest(params=CreateMessageParams(messages=[message], max_tokens=100))


def said(content: Any) -> str:
    """The text of a model's answer."""
    return content.text if isinstance(content, TextContent) else repr(content)


def add_to(server: Server) -> None:
    """Make tools of all these."""
    for function in (
        test_sampling,
        test_elicitation,
        test_elicitation_sep1034_defaults,
        test_elicitation_sep1330_enums,
        test_input_required_result_elicitation,
        test_input_required_result_sampling,
        test_input_required_result_list_roots,
        test_input_required_result_request_state,
        test_input_required_result_multiple_inputs,
        test_input_required_result_multi_round,
        test_input_required_result_tampered_state,
        test_missing_capability,
        test_streaming_elicitation,
        test_input_required_result_capabilities,
    ):
        server.add_tool(function)
