"""`dragoman prompt TARGET NAME`: a prompt of a server, its arguments filled in."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.cli import arguments, content, output
from dragoman.cli.progress import Bar
from dragoman.cli.questions import on_terminal
from dragoman.cli.session import perform
from dragoman.client import Client
from dragoman.errors import RemoteError, UsageError
from dragoman.model import PromptMessage
from dragoman.schema.wording import nearest


def run(options: Namespace) -> int:
    """Get the prompt; returns the exit status."""
    try:
        given = {word.key: word.text for word in arguments.words(options.argument)}
    except UsageError as exc:
        return output.fail(exc, json=options.json)
    bar = Bar()
    work = partial(_get, options=options, given=given, bar=bar)
    return perform(options, work, show=_show, **on_terminal(bar.clear))


async def _get(client: Client, *, options: Namespace, given: dict[str, str], bar: Bar) -> Any:
    try:
        found = await client.get_prompt(options.prompt, given, progress=bar)
    except RemoteError:
        await _offer(client, options.prompt)
        raise
    finally:
        bar.clear()
    if not options.json:
        return found.messages
    description = {} if found.description is UNSET else {"description": found.description}
    return {**description, "messages": msgspec.to_builtins(found.messages)}


def _show(messages: list[PromptMessage]) -> None:
    for message in messages:
        output.text(f"{message.role}: {content.describe(message.content)}")


async def _offer(client: Client, name: str) -> None:
    """Say what the server has, or what the prompt takes."""
    try:
        prompts = {prompt.name: prompt for prompt in await client.list_prompts()}
    except RemoteError:
        return
    prompt = prompts.get(name)
    if prompt is None:
        close = nearest(name, list(prompts))
        others = (
            f": did you mean {close!r}?" if close else f"; there is {', '.join(prompts)}" if prompts else ""
        )
        output.note(f"dragoman: no prompt {name!r}{others}")
    elif prompt.arguments is not UNSET:
        taken = [
            argument.name if argument.required is True else f"[{argument.name}]"
            for argument in prompt.arguments
        ]
        output.note(f"dragoman: {name} takes {' '.join(taken)}")
