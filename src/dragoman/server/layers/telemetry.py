"""Spans and durations by OpenTelemetry's semantic conventions for MCP, where its API is installed.

The parent of a span is what the request's `_meta` names (`traceparent`, `tracestate`, `baggage`).
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal, UsageError
from dragoman.model import CallToolResult, Result
from dragoman.protocol.call import Call
from dragoman.server.middleware import Handler
from dragoman.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Link, Span, TracerProvider

_SCOPE: Final = "dragoman"
# Seconds, as the conventions name them for `mcp.server.operation.duration`.
_BOUNDARIES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_OF_SPANS: Final = frozenset({"jsonrpc.request.id", "mcp.resource.uri", "client.address", "client.port"})


class Telemetry:
    """A server span and a duration for every call.

    Providers are the global ones unless they are given. Arguments and results, which may be
    sensitive, are recorded only with `payloads=True`.

    Raises:
        UsageError: the package opentelemetry-api is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        payloads: bool = False,
    ) -> None:
        try:
            from opentelemetry import context, metrics, propagate, trace
        except ImportError as exc:
            raise UsageError(
                f"Telemetry needs opentelemetry-api, which cannot be imported ({exc})",
                hint="pip install 'dragoman[telemetry]'",
            ) from exc
        self._trace = trace
        self._extract = propagate.extract
        self._current = context.get_current
        self._tracer = trace.get_tracer(_SCOPE, VERSION, tracer_provider)
        meter = metrics.get_meter(_SCOPE, VERSION, meter_provider)
        self._durations = meter.create_histogram(
            "mcp.server.operation.duration",
            unit="s",
            description="Time from the arrival of a request to its answer.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._payloads = payloads

    async def __call__(self, call: Call, proceed: Handler) -> Result:
        """The layer itself."""
        attributes = _attributes(call)
        parent, links = self._parent(call)
        span = self._tracer.start_span(
            _name(call),
            context=parent,
            kind=self._trace.SpanKind.SERVER,
            attributes=attributes,
            links=links,
        )
        if self._payloads and call.method.name == "tools/call" and call.params.arguments is not UNSET:
            span.set_attribute("gen_ai.tool.call.arguments", bytes(call.params.arguments).decode())
        begun = time.perf_counter()
        failure: dict[str, Any] = {}
        try:
            with self._trace.use_span(span, record_exception=False, set_status_on_exception=False):
                result = await proceed(call)
            failure = self._answered(span, result)
            return result
        except BaseException as exc:
            failure = self._raised(span, exc)
            raise
        finally:
            measured = {name: value for name, value in attributes.items() if name not in _OF_SPANS}
            if call.method.name == "tools/call" and not _is_known(call):
                measured.pop("gen_ai.tool.name")
            self._durations.record(time.perf_counter() - begun, measured | failure)
            span.end()

    def _parent(self, call: Call) -> tuple[Context | None, list[Link]]:
        """The context in `_meta`, linked to the one that is current here; or else the current one."""
        trace = self._trace
        raw = call.params.meta
        meta: dict[str, Any] = {} if raw is UNSET else msgspec.json.decode(raw, type=dict[str, Any])
        texts = {name: value for name, value in meta.items() if isinstance(value, str)}
        found = self._extract(texts, context=self._current())
        ambient = trace.get_current_span().get_span_context()
        named = trace.get_current_span(found).get_span_context()
        if not named.is_valid or named == ambient:
            return found, []
        return found, [trace.Link(ambient)] if ambient.is_valid else []

    def _answered(self, span: Span, result: Result) -> dict[str, Any]:
        if not isinstance(result, CallToolResult):
            return {}
        if result.is_error is True:
            return self._failed(span, "tool_error")
        if self._payloads:
            span.set_attribute("gen_ai.tool.call.result", msgspec.json.encode(result).decode())
        return {}

    def _raised(self, span: Span, exc: BaseException) -> dict[str, Any]:
        if isinstance(exc, Refusal):
            code = str(exc.code)
            return self._failed(span, code, said=exc.message, more={"rpc.response.status_code": code})
        return self._failed(span, "cancelled" if isinstance(exc, CancelledError) else type(exc).__qualname__)

    def _failed(
        self, span: Span, kind: str, *, said: str | None = None, more: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        failure = {"error.type": kind, **(more or {})}
        span.set_attributes(failure)
        span.set_status(self._trace.StatusCode.ERROR, said)
        return failure


def _name(call: Call) -> str:
    """The method and what it is about, as far as that is one of few: not what a client made up."""
    method = call.method.name
    if method == "prompts/get" or (method == "tools/call" and _is_known(call)):
        return f"{method} {call.params.name}"
    return method


def _is_known(call: Call) -> bool:
    return call.home is None or call.home.tool(call.params.name) is not None


def _attributes(call: Call) -> dict[str, Any]:
    method, params = call.method.name, call.params
    attributes: dict[str, Any] = {
        "mcp.method.name": method,
        "mcp.protocol.version": call.revision.version,
        "jsonrpc.request.id": str(call.id),
    }
    if method == "tools/call":
        attributes |= {"gen_ai.tool.name": params.name, "gen_ai.operation.name": "execute_tool"}
    elif method == "prompts/get":
        attributes["gen_ai.prompt.name"] = params.name
    elif isinstance(getattr(params, "uri", None), str):
        attributes["mcp.resource.uri"] = params.uri
    if hasattr(call.channel, "headers"):
        attributes |= {"network.transport": "tcp", "network.protocol.name": "http"}
    else:
        attributes["network.transport"] = "pipe"
    address: Any = getattr(call.channel, "client", None)
    if address:
        attributes |= {"client.address": str(address[0]), "client.port": int(address[1])}
    return attributes
