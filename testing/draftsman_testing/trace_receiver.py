"""A receiver of traces: OTLP over HTTP, as collectors have it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from draftsman_testing.http_server import Answer, Reply, Request, serving


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """A span as it was sent; times are in seconds, ids in hexadecimal digits."""

    name: str
    kind: str
    trace_id: str
    id: str
    parent: str
    """The id of its parent; empty for the first span of a trace."""
    began: float
    ended: float
    attributes: dict[str, Any]
    events: Sequence[tuple[str, dict[str, Any]]]
    error: str | None
    """The text of its error; None: it has none."""
    process: dict[str, Any]
    """The attributes of the process that sent it."""
    schema_url: str


@dataclass
class TraceReceiver:
    """What was received; `answer` replies in its place."""

    spans: list[ReceivedSpan] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    answer: Answer | None = None
    url: str = ""

    def named(self, name: str) -> list[ReceivedSpan]:
        """Return the spans of a name, in the order of their begin."""
        found = (span for span in self.spans if span.name == name)
        return sorted(found, key=lambda span: span.began)

    async def receive(self, request: Request) -> Reply | None:
        """Keep the spans of a request."""
        self.requests.append(request)
        if self.answer is not None:
            return await self.answer(request)
        body = request.body
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        message = ExportTraceServiceRequest.FromString(body)
        self.spans += [
            _received(span, _values(sent.resource.attributes), scope.schema_url)
            for sent in message.resource_spans
            for scope in sent.scope_spans
            for span in scope.spans
        ]
        headers = (("content-type", "application/x-protobuf"),)
        return Reply(200, ExportTraceServiceResponse().SerializeToString(), headers)


@asynccontextmanager
async def receiving_traces() -> AsyncIterator[TraceReceiver]:
    """Receive traces at the `url` of the receiver during the block."""
    receiver = TraceReceiver()
    async with serving(receiver.receive) as receiver.url:
        yield receiver


def _received(span: trace_pb2.Span, process: dict[str, Any], schema_url: str) -> ReceivedSpan:
    is_error = span.status.code == trace_pb2.Status.STATUS_CODE_ERROR
    return ReceivedSpan(
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        began=span.start_time_unix_nano / 1e9,
        ended=span.end_time_unix_nano / 1e9,
        attributes=_values(span.attributes),
        events=[(event.name, _values(event.attributes)) for event in span.events],
        error=span.status.message if is_error else None,
        process=process,
        schema_url=schema_url,
    )


def _values(pairs: Sequence[KeyValue]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "") for pair in pairs}
