"""Results as the verbs return them, or the question that came in place of one.

Each reading takes the raw result of one method. It knows no connection and asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.client.result import ToolResult, check_type, read
from dragoman.errors import PeerFault
from dragoman.model import (
    INPUT_REQUIRED,
    CompleteResult,
    DiscoverResult,
    GetPromptResult,
    InputRequiredResult,
    ReadResourceResult,
    Result,
)
from dragoman.model.skills_extension import GetSkillResult
from dragoman.protocol.lenient import reader

T = TypeVar("T")
R = TypeVar("R", bound=Result)


class _Kind(msgspec.Struct, rename="camel"):
    result_type: str | UnsetType = UNSET


_kind: Final = msgspec.json.Decoder(_Kind).decode
_asked: Final = reader(InputRequiredResult)


def _typed(kind: type[R], method: str) -> Callable[[Raw], R]:
    decode = reader(kind)

    def read(raw: Raw) -> R:
        try:
            result = decode(raw)
        except msgspec.ValidationError as exc:
            raise PeerFault(f"malformed result of {method}: {exc}") from None
        check_type(result.result_type)
        return result

    return read


def _or_asked(kind: type[R], method: str) -> Callable[[Raw], R | InputRequiredResult]:
    complete = _typed(kind, method)

    def read(raw: Raw) -> R | InputRequiredResult:
        try:
            asks = _kind(raw).result_type == INPUT_REQUIRED
        except msgspec.ValidationError as exc:
            raise PeerFault(f"malformed result of {method}: {exc}") from None
        if not asks:
            return complete(raw)
        try:
            return _asked(raw)
        except msgspec.ValidationError as exc:
            raise PeerFault(f"malformed request for input: {exc}") from None

    return read


def read_tool(raw: Raw) -> ToolResult | InputRequiredResult:
    """A result of `tools/call`, kept even where it does not fit. Raises PeerFault, as `result.read`."""
    answer, result = read(raw)
    if answer.result_type != INPUT_REQUIRED:
        return result
    return InputRequiredResult(input_requests=answer.input_requests, request_state=answer.request_state)


# Each raises PeerFault for what is no result of its method.
read_contents: Final = _or_asked(ReadResourceResult, "resources/read")
read_prompt: Final = _or_asked(GetPromptResult, "prompts/get")
read_completion: Final = _typed(CompleteResult, "completion/complete")
read_discover: Final = _typed(DiscoverResult, "server/discover")
read_skill_entry: Final = _typed(GetSkillResult, "skills/get")
