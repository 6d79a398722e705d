"""Mock servers: tools from a file, with answers that were recorded, written down or made from their schemas.

Nothing of the real server runs. Arguments are checked as the real one would check them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET

from dragoman.errors import UsageError
from dragoman.model import CallToolResult, TextContent, Tool
from dragoman.protocol.lenient import without_nulls
from dragoman.schema.errors import SchemaError
from dragoman.schema.shapes import is_array, is_object
from dragoman.schema.validate import Validator
from dragoman.server import Server
from dragoman.server.tool import ToolOptions
from dragoman.testing.cassette import Cassette
from dragoman.testing.samples import sample

_EXPECTED: Final = "a list of tools, an object with `tools`, or what `dragoman list --json` prints"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers to calls with these arguments, whatever others there are."""

    arguments: Mapping[str, Any]
    result: CallToolResult

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Whether it is for such a call."""
        return all(name in arguments and arguments[name] == value for name, value in self.arguments.items())


@dataclass(slots=True)
class Mocked:
    """The tools of a mock server and their answers, by name. Of answers that fit, the first one counts."""

    tools: list[Tool]
    answers: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])


def mock(path: Path | str, *, name: str | None = None) -> Server:
    """A server with the tools of a file: a cassette (`.jsonl`), or JSON.

    The JSON is a list of tools as `tools/list` has them, an object with `tools`, or what `dragoman list
    --json` prints. Beside `tools`, `answers` may say what they answer: `{"lookup": [{"arguments": {"id": 1},
    "result": {...}}, {"text": "for all others"}]}`. What has no answer gets one made from the tool's
    output schema.

    Raises:
        UsageError: the file cannot be read, or is none of these; says where.
    """
    path = Path(path)
    mocked = _of_cassette(path) if path.suffix == ".jsonl" else _of_json(path)
    return server(mocked, name=name or path.stem)


def server(mocked: Mocked, *, name: str) -> Server:
    """A server with these tools."""
    made = Server(name, version="0")
    for tool in mocked.tools:
        options: dict[str, Any] = {
            key: value
            for key in ("name", "title", "description", "annotations", "icons", "meta", "input_schema")
            if (value := getattr(tool, key)) is not UNSET
        }
        options["output_schema"] = False if tool.output_schema is UNSET else tool.output_schema
        try:
            Validator(tool.input_schema).check()
            made.add_tool(_function(tool, mocked.answers.get(tool.name, [])), **cast("ToolOptions", options))
        except (UsageError, SchemaError) as exc:
            raise UsageError(f"tool {tool.name!r}: {exc}") from None
    return made


def _function(tool: Tool, answers: list[Answer]) -> Any:
    made = _made(tool)

    async def answer(**arguments: Any) -> CallToolResult:
        return next((one.result for one in answers if one.fits(arguments)), made)

    return answer


def _made(tool: Tool) -> CallToolResult:
    """An answer out of the tool's own description."""
    plain = CallToolResult(content=[TextContent(text=f"{tool.name} is a mock")])
    schema = tool.output_schema
    if schema is UNSET:
        return plain
    value = sample(schema)
    try:
        if not Validator(schema).is_valid(value):
            return _unanswered(tool)
    except SchemaError:
        return _unanswered(tool)
    text = msgspec.json.encode(value).decode()
    return CallToolResult(content=[TextContent(text=text)], structured_content=value)


def _unanswered(tool: Tool) -> CallToolResult:
    text = f"{tool.name} is a mock, and no value could be made for its output schema: give it an answer"
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


# Files ---------------------------------------------------------------------------------------------


def _of_json(path: Path) -> Mocked:
    try:
        value: Any = msgspec.json.decode(path.read_bytes())
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise UsageError(f"{path}: not JSON: {exc}") from None
    if is_object(value) and is_object(value.get("result")):
        value = value["result"]
    listed = value.get("tools") if is_object(value) else value
    if not is_array(listed):
        raise UsageError(f"{path}: expected {_EXPECTED}")
    tools = [_tool(entry, f"{path}: tools[{index}]") for index, entry in enumerate(listed)]
    answers: Any = value.get("answers", {}) if is_object(value) else {}
    return Mocked(tools, _answers(answers, {tool.name for tool in tools}, path=path))


def _answers(table: Any, names: set[str], *, path: Path) -> dict[str, list[Answer]]:
    if not is_object(table):
        raise UsageError(f"{path}: `answers`: expected an object of lists by tool")
    answers: dict[str, list[Answer]] = {}
    for name, given in table.items():
        place = f"{path}: answers.{name}"
        if name not in names:
            raise UsageError(f"{place}: no tool of that name; there is {', '.join(sorted(names)) or 'none'}")
        if not is_array(given):
            raise UsageError(f"{place}: expected a list")
        answers[name] = [_answer(entry, f"{place}[{index}]") for index, entry in enumerate(given)]
    return answers


def _tool(entry: Any, place: str) -> Tool:
    try:
        return msgspec.convert(without_nulls(entry), Tool)
    except msgspec.ValidationError as exc:
        raise UsageError(f"{place}: no tool: {exc}") from None


def _answer(entry: Any, place: str) -> Answer:
    if not is_object(entry):
        raise UsageError(f"{place}: expected an object with `result` or `text`")
    arguments = entry.get("arguments", {})
    if not is_object(arguments):
        raise UsageError(f"{place}.arguments: expected an object")
    if isinstance(entry.get("text"), str):
        return Answer(arguments, CallToolResult(content=[TextContent(text=entry["text"])]))
    if "result" not in entry:
        raise UsageError(f"{place}: expected an object with `result` or `text`")
    return Answer(arguments, _result(entry["result"], f"{place}.result"))


def _result(value: Any, place: str) -> CallToolResult:
    try:
        result = msgspec.convert(without_nulls(value), CallToolResult)
    except msgspec.ValidationError as exc:
        raise UsageError(f"{place}: no result of a tool: {exc}") from None
    return result


def _of_cassette(path: Path) -> Mocked:
    tools: dict[str, Tool] = {}
    answers: dict[str, list[Answer]] = {}
    for exchange in Cassette.load(path).exchanges():
        result = (exchange.response or {}).get("result")
        if not is_object(result):
            continue
        listed = result.get("tools")
        if exchange.method == "tools/list" and is_array(listed):
            for entry in listed:
                tool = _tool(entry, f"{path}: tools/list")
                tools[tool.name] = tool
        elif exchange.method == "tools/call" and result.get("resultType", "complete") == "complete":
            name, arguments = exchange.arguments.get("name"), exchange.arguments.get("arguments")
            answer = Answer(arguments if is_object(arguments) else {}, _result(result, f"{path}: {name}"))
            answers.setdefault(str(name), []).append(answer)
    if not tools:
        raise UsageError(
            f"{path}: no list of tools was recorded", hint="record a session that lists the tools"
        )
    for given in answers.values():
        # Those with the most arguments first, so that a call finds what is most like it; what is like
        # none of them gets the answer that came last.
        last = given[-1]
        given.sort(key=lambda one: -len(one.arguments))
        given.append(Answer({}, last.result))
    return Mocked(list(tools.values()), answers)
