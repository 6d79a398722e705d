"""One registered tool: what a list shows of it, and how a call becomes a call of its function."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isasyncgenfunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, TypeVar, cast

import msgspec
from msgspec import UNSET

from dragoman.errors import DragomanError, Refusal, ToolError, UsageError
from dragoman.model import CallToolResult, Icon, Result, TextContent, ToolAnnotations
from dragoman.model import Tool as Entry
from dragoman.protocol.call import Call
from dragoman.schema.errors import ArgumentError, Fault, OutputError
from dragoman.schema.options import check_options
from dragoman.schema.parameters import HeaderParameter, header_parameters
from dragoman.schema.signature import Signature, reflect
from dragoman.schema.validate import Validator
from dragoman.server.asking import Suspend
from dragoman.server.context import Context
from dragoman.server.function import Begin, Function, Invoke, beginner, invoker, raised, refusal, tell
from dragoman.server.injection import find_injection
from dragoman.server.results import MEDIA, Results

if TYPE_CHECKING:
    from dragoman.server.depends import Needs

log = logging.getLogger("dragoman.server")

TaskChoice: TypeAlias = bool | Literal["required"]

_NAME_MAX: Final = 128
_NAME_OF: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")


class ToolOptions(TypedDict, total=False):
    """What `@server.tool(...)` takes, all optional.

    `name`, `title`, `description`: instead of the function's own. `annotations`: hints, as
    `ToolAnnotations` or a mapping with the wire's names. `icons`, `meta`: as on the wire.
    `timeout`: seconds after which a call ends with an error. `inline`: run a plain function on the
    event loop instead of in a thread. `input_schema`: a JSON Schema to publish and check by, in
    place of the signature's. `output_schema`: likewise for the result; False for none. `tags`: words
    of your own, for `Server(visible=...)`; no client sees them. `task`: the call becomes a task where
    the client knows tasks; `"required"`: it is refused where it does not; or a function of the call
    that says one of these, and may ask the client before it does. Needs the extension `Tasks`.
    """

    name: str
    title: str
    description: str
    annotations: ToolAnnotations | Mapping[str, Any]
    icons: Sequence[Icon]
    meta: Mapping[str, Any]
    timeout: float
    inline: bool
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | Literal[False]
    tags: Iterable[str]
    task: TaskChoice | Callable[[Call], TaskChoice | Awaitable[TaskChoice]]


Decode = Callable[[bytes | msgspec.Raw], dict[str, Any]]
T = TypeVar("T")


class Tool(msgspec.Struct, eq=False):
    """A tool of a server."""

    entry: Entry
    signature: Signature
    results: Results
    invoke: Invoke
    decode: Decode
    headers: tuple[HeaderParameter, ...]
    timeout: float | None
    protocol_errors: bool = False  # refused arguments are -32602, not a tool result
    tags: frozenset[str] = frozenset()
    needs: Needs | None = None  # what is supplied to the function beside its arguments
    task: TaskChoice | Callable[[Call], TaskChoice | Awaitable[TaskChoice]] = False
    begin: Begin | None = None  # decode and invoke at once, for functions that need nothing more

    @property
    def name(self) -> str:
        """What it is called by."""
        return self.entry.name

    async def run(self, call: Call) -> Result:
        """The result of one call; what goes wrong inside the tool is a result with `isError`.

        Raises:
            Refusal: the tool, or something it used, refused the request itself.
        """
        begin = self.begin  # what is called and is no method is fetched first: Python finds it faster
        try:
            try:
                work = self._begun(call) if begin is None else begin(call.params.arguments)
            except ArgumentError as exc:
                return self.refused(exc)
            value = await (work if self.timeout is None else self._within(work, self.timeout))
            return self.results.of(value)
        except (Refusal, Suspend, GeneratorExit):  # the last is how a coroutine is thrown away
            raise
        except BaseException as exc:  # noqa: BLE001  # whatever a tool raises is its answer, sys.exit() included
            return self._raised(exc)

    def _begun(self, call: Call) -> Awaitable[Any]:
        raw = call.params.arguments
        arguments = self.decode(b"{}" if raw is UNSET else raw)
        if self.signature.context is not None:
            arguments[self.signature.context] = Context(call)
        if self.needs is None:
            return self.invoke(arguments)
        return self.needs.around(call, arguments, invoke=self.invoke)

    def refused(self, exc: ArgumentError) -> CallToolResult:
        """The answer to arguments that do not fit. Raises Refusal where that is a protocol error."""
        if self.protocol_errors:
            raise refusal(exc) from None
        return failed(str(exc))

    def open_to(self, principal: str | None) -> bool:
        """Whether whoever offers it lets this principal see it."""
        del principal
        return True

    async def _within(self, work: Awaitable[Any], seconds: float) -> Any:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise  # the tool's own time-out, not ours
            raise ToolError(f"{self.entry.name} did not finish within {seconds:g} s") from None

    def _raised(self, exc: BaseException) -> CallToolResult:
        name = self.entry.name
        if isinstance(exc, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise exc
            # Nobody called the request off: what the tool awaited was cancelled, and it is owed an answer.
            return failed(f"{name} was cancelled from within")
        if isinstance(exc, OutputError):
            log.error("tool %s returned what cannot be sent: %s", name, exc)
            return failed(f"The tool {name} returned a value that cannot be sent: {exc}")
        if not isinstance(exc, DragomanError):
            log.warning("tool %s raised", name, exc_info=raised(exc))
        return failed(tell(exc))


def failed(text: str) -> CallToolResult:
    """A tool result that says what went wrong."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def build(function: Function, options: ToolOptions, *, protocol_errors: bool = False) -> Tool:
    """Reflect on `function` once and make a tool of it.

    Raises:
        UsageError: a signature, a name or an option that cannot be.
    """
    check_options(options, ToolOptions.__optional_keys__, of="a tool")
    given = options.get("name")
    injection = find_injection()
    signature = reflect(
        function, context_types=(Context,), injected=injection, content_types=MEDIA, name=given
    )
    name = given or signature.name
    if not name or name == "<lambda>":
        raise UsageError("a tool needs a name: @server.tool(name=...)")
    if isgeneratorfunction(function) or isasyncgenfunction(function):
        raise UsageError(
            f"{name}() yields: a tool has one result",
            hint="return a list; what is to arrive earlier is told by ctx.report_progress or ctx.info",
        )
    decode: Decode = signature.decode
    input_schema = signature.input_schema
    if "input_schema" in options:
        input_schema = dict(options["input_schema"])
        decode = _checked(Validator(input_schema), name)
    results = Results.of_signature(signature, options.get("output_schema"))
    entry = Entry(
        name=name,
        title=options.get("title", UNSET),
        description=options.get("description", signature.description) or UNSET,
        input_schema=input_schema,
        output_schema=UNSET if results.schema is None else results.schema,
        annotations=tool_hints(options.get("annotations")),
        icons=list(options["icons"]) if "icons" in options else UNSET,
        meta=dict(options["meta"]) if "meta" in options else UNSET,
    )
    return Tool(
        entry=entry,
        signature=signature,
        results=results,
        invoke=invoker(signature.function, inline=options.get("inline", False)),
        decode=decode,
        headers=header_parameters(input_schema),
        timeout=options.get("timeout"),
        protocol_errors=protocol_errors,
        tags=frozenset(options.get("tags", ())),
        needs=None if injection is None else injection.needs(signature),
        task=_task(options.get("task", False)),
        begin=None if "input_schema" in options else beginner(signature),
    )


class NameRule:
    """Follows the tools of a server: a name that clients may refuse is logged as it is given."""

    def check(self, item: Tool) -> None:
        """Nothing: the rule is a SHOULD, and a server that breaks it works with many clients."""

    def added(self, item: Tool) -> None:
        """Warn of a name outside the rule (server/tools, "Tool Names")."""
        name = item.name
        odd = "".join(dict.fromkeys(char for char in name if char not in _NAME_OF))
        if not odd and len(name) <= _NAME_MAX:
            return
        said = f"has {odd!r} in it" if odd else f"is {len(name)} characters long"
        log.warning(
            "the name of the tool %.140r %s, which some clients refuse: the specification has 1 to %d of "
            "A-Z a-z 0-9 _ - . (server/tools, Tool Names)",
            name,
            said,
            _NAME_MAX,
        )

    def removed(self, item: Tool) -> None:
        """Nothing."""


def _task(given: T) -> T:
    if isinstance(given, bool) or given == "required" or callable(given):
        return given
    raise UsageError(f'task: expected True, False, "required" or a function of the call, received {given!r}')


def tool_hints(given: ToolAnnotations | Mapping[str, Any] | None) -> ToolAnnotations | msgspec.UnsetType:
    """Hints as people write them. Raises UsageError for a hint that there is not."""
    if given is None:
        return UNSET
    if isinstance(given, ToolAnnotations):
        return given
    check_options(given, ToolAnnotations.__struct_encode_fields__, of="annotations", noun="hint")
    try:
        return msgspec.convert(dict(given), ToolAnnotations)
    except msgspec.ValidationError as exc:
        raise UsageError(f"annotations: {exc}") from None


def _checked(validator: Validator, name: str) -> Decode:
    """A decoder that goes by a schema the author wrote, not by the signature."""

    def decode(source: bytes | msgspec.Raw) -> dict[str, Any]:
        value = msgspec.json.decode(source)
        faults = validator.errors(value)
        if faults:
            raise ArgumentError(tuple(faults), name)
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise ArgumentError((Fault(field="", expected="an object", received=kind),), name)
        return cast("dict[str, Any]", value)

    return decode
