"""Functions whose arguments arrive as texts by name: those of prompts, templates and completions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct

from dragoman.errors import DragomanError, Refusal, UsageError
from dragoman.protocol.call import Call
from dragoman.schema.errors import OutputError
from dragoman.schema.signature import Signature, reflect
from dragoman.schema.texts import Texts
from dragoman.server.asking import Suspend
from dragoman.server.context import Context
from dragoman.server.function import Function, Invoke, invoker, raised, tell
from dragoman.server.injection import find_injection

if TYPE_CHECKING:
    from dragoman.server.depends import Needs


log = logging.getLogger("dragoman.server")

# Not for a handler's caller to turn into an answer: refused on purpose, asked on purpose, thrown away.
PASSED: Final = (Refusal, Suspend, GeneratorExit)


class TextFunction(Struct, frozen=True, eq=False):
    """A function, and how it is called with texts."""

    signature: Signature
    texts: Texts
    invoke: Invoke
    needs: Needs | None  # what is supplied beside the arguments

    @staticmethod
    def of(function: Function, noun: str, *, name: str | None = None, inline: bool = False) -> TextFunction:
        """Reflect on `function` once; `noun` is what is made of it, and `name` what that is called.

        Raises:
            UsageError: a signature that cannot be called with named values.
        """
        if not callable(function):
            raise UsageError(f"a {noun} is made of a function, received {type(function).__name__}")
        # Whatever it returns, no schema of it is published: there is none to draw up.
        injection = find_injection()
        signature = reflect(
            function, context_types=(Context,), injected=injection, content_types=(object,), name=name
        )
        needs = None if injection is None else injection.needs(signature)
        return TextFunction(signature, Texts(signature), invoker(signature.function, inline=inline), needs)

    async def call(self, call: Call, context: Context, *, arguments: Mapping[str, Any]) -> Any:
        """Call it with arguments as `texts` reads them."""
        keywords = dict(arguments)
        if self.signature.context is not None:
            keywords[self.signature.context] = context
        if self.needs is None:
            return await self.invoke(keywords)
        return await self.needs.around(call, keywords, invoke=self.invoke)

    def named(self, noun: str, name: str | None) -> str:
        """`name`, or the function's own. Raises UsageError if it has none."""
        name = name or self.signature.name
        if name in ("", "<lambda>"):
            raise UsageError(f"a {noun} needs a name: @server.{noun}(..., name=...)")
        return name


def failure(exc: BaseException, name: str, *, data: Any = UNSET) -> Refusal:
    """-32603 for what the handler `name` raised, whatever it is: the request is owed an answer.

    Raises `exc` itself where it is the end of the request, and not of what the handler awaited.
    """
    if isinstance(exc, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise exc
        return Refusal(-32603, f"{name} was cancelled from within", data)
    if isinstance(exc, OutputError):
        log.error("%s returned what cannot be sent: %s", name, exc)
    elif not isinstance(exc, DragomanError):
        log.warning("%s raised", name, exc_info=raised(exc))
    return Refusal(-32603, f"{name}: {tell(exc)}", data)
