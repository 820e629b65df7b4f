"""The tracer and its spans, sent over OTLP; imported where tracing is on.

Spans are sent by a thread, from a queue of limited length: where the receiver is slow or gone, they
are dropped and counted. What they say is redacted as the log is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final
from weakref import WeakKeyDictionary

from opentelemetry import trace
from opentelemetry.context import Context, attach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import (
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
    OTEL_BSP_MAX_QUEUE_SIZE,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision

from draftsman import version
from draftsman.formats.truncation import truncate
from draftsman.log import redact, redact_values
from draftsman.processes.process_name import PROCESS_NAME
from draftsman.tracing import gen_ai
from draftsman.tracing.open_telemetry.app_span import context_of
from draftsman.tracing.span_metrics import DROPPED, EXPORTED
from draftsman.tracing.tracer import Attributes, Kind, Span, SpanContext, Tracer, Value, active, use

MAX_TEXT: Final = 1000
"""Maximum characters of a text of a span."""
MAX_READ: Final = 10 * MAX_TEXT
"""Characters of a text that are searched for secrets."""
MAX_QUEUE: Final = 2048
"""Spans that wait to be sent, unless the standard variable says otherwise."""
MAX_BATCH: Final = 512
"""Spans that are sent together, unless the standard variable says otherwise."""
FLUSH_TIMEOUT: Final = 2.0
"""Seconds that a process waits at its end until its last spans are sent."""
NANOSECONDS: Final = 1_000_000_000
_EXPORTER_LOG: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
"""It warns of each attempt; here an outage is a single line."""
_log = logging.getLogger(__name__)


@asynccontextmanager
async def exporting(endpoint: str | None) -> AsyncIterator[None]:
    """Record and send the spans of this process during the block, once for nested blocks.

    `endpoint` is the URL of the receiver, without the path; None: that of the standard variables.
    """
    if active() is not None:
        yield
        return
    try:
        queue = _Queue(_exporter(endpoint))
        ids = _Ids()
        provider = TracerProvider(resource=_resource(), id_generator=ids, shutdown_on_exit=False)
    except Exception as error:  # a standard variable that has no such value
        _log.warning("no traces are recorded: %s", error)
        yield
        return
    provider.add_span_processor(queue)
    use(_OpenTelemetry(provider, ids))
    try:
        yield
    finally:
        use(None)
        await _finish(queue)


def _exporter(endpoint: str | None) -> OTLPSpanExporter:
    own = logging.getLogger(_EXPORTER_LOG)
    if own.level == logging.NOTSET:
        own.setLevel(logging.CRITICAL)
    if endpoint is None:
        return OTLPSpanExporter()
    return OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")


def _resource() -> Resource:
    own = {
        "service.name": "draftsman",
        "service.version": version.installed(),
        "process.title": PROCESS_NAME.get(),
    }
    return Resource.create().merge(Resource(own)).merge(OTELResourceDetector().detect())


async def _finish(queue: _Queue) -> None:
    """Send the last spans, for a limited time: the thread that sends ends with the process."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def shut_down() -> None:
        queue.shutdown()  # type: ignore[no-untyped-call]
        with contextlib.suppress(RuntimeError):  # the loop has ended by now
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=shut_down, name="last spans", daemon=True).start()
    try:
        async with asyncio.timeout(FLUSH_TIMEOUT):
            await ended.wait()
    except TimeoutError:
        _log.warning("the last spans of this process were not sent within %g s", FLUSH_TIMEOUT)


class _Export(SpanExporter):
    """Sends spans and counts them; an outage of the receiver is a single line in the log."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failed = False
        self._lock = threading.Lock()
        self._waiting = 0

    def admit(self, limit: int) -> bool:
        """Count a span that will be exported, unless too many are waiting."""
        with self._lock:
            if self._waiting >= limit:
                return False
            self._waiting += 1
            return True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:
            _log.debug("spans could not be sent: %s", error)
            result = SpanExportResult.FAILURE
        with self._lock:
            self._waiting -= len(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed:
            DROPPED.add("refused", amount=len(spans))
        else:
            EXPORTED.add(amount=len(spans))
        if failed and not self._failed:
            _log.warning("traces are not received: their spans are dropped until they are")
        self._failed = failed
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class _Queue(BatchSpanProcessor):
    """A queue that refuses further spans while it is full, those that are being sent included."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._export = _Export(exporter)
        self._limit = int(os.environ.get(OTEL_BSP_MAX_QUEUE_SIZE) or MAX_QUEUE)
        batch = int(os.environ.get(OTEL_BSP_MAX_EXPORT_BATCH_SIZE) or MAX_BATCH)
        super().__init__(
            self._export,
            max_queue_size=self._limit,
            max_export_batch_size=min(batch, self._limit),
        )

    def on_end(self, span: ReadableSpan) -> None:
        if not (span.context and span.context.trace_flags.sampled):
            return
        if self._export.admit(self._limit):
            super().on_end(span)
        else:
            DROPPED.add("queue_full")


class _Ids(RandomIdGenerator):
    """Random ids, except of spans whose ids are known before."""

    def __init__(self) -> None:
        self._next = threading.local()

    def prepare(self, trace_id: int | None, span_id: int | None) -> None:
        """Let the next span of this thread have these ids."""
        self._next.trace_id, self._next.span_id = trace_id, span_id

    def generate_trace_id(self) -> int:
        return self._take("trace_id") or super().generate_trace_id()

    def generate_span_id(self) -> int:
        return self._take("span_id") or super().generate_span_id()

    def _take(self, name: str) -> int | None:
        id: int | None = getattr(self._next, name, None)
        setattr(self._next, name, None)
        return id


_next: Final[WeakKeyDictionary[trace.Span, trace.Span]] = WeakKeyDictionary()
"""Spans that continue others: a run may go on as the next one of its job."""


def _current() -> trace.Span:
    span = trace.get_current_span()
    while (continued := _next.get(span)) is not None:
        span = continued
    return span


class _Span(Span):
    """A span of OpenTelemetry."""

    def __init__(self, span: trace.Span) -> None:
        self.span = span
        context = span.get_span_context()
        self.context = SpanContext(context.trace_id, context.span_id, context.trace_flags.sampled)

    def set(self, attributes: Attributes) -> None:
        self.span.set_attributes(_shown(attributes))

    def event(self, name: str, attributes: Attributes) -> None:
        self.span.add_event(name, _shown(attributes))

    def fail(self, kind: str, message: str) -> None:
        text = _text(message)
        self.span.set_status(trace.StatusCode.ERROR, text)
        self.span.set_attribute("error.type", kind)
        self.span.add_event("exception", {"exception.type": kind, "exception.message": text})

    def activate(self) -> None:
        attach(trace.set_span_in_context(self.span))

    def continue_as(self, other: Span) -> None:
        if isinstance(other, _Span):
            _next[self.span] = other.span

    def end(self) -> None:
        self.span.end()


class _OpenTelemetry(Tracer):
    """The tracer of a provider."""

    def __init__(self, provider: TracerProvider, ids: _Ids) -> None:
        self._provider = provider
        self._ids = ids
        self._tracer = provider.get_tracer(
            "draftsman", version.installed(), schema_url=gen_ai.SCHEMA_URL
        )

    def start(
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        *,
        parent: SpanContext | None = None,
        id: int | None = None,
    ) -> Span:
        self._ids.prepare(None, id)
        span = self._tracer.start_span(
            name,
            trace.set_span_in_context(_current()) if parent is None else self._within(parent),
            trace.SpanKind[kind],
            _shown(attributes),
        )
        return _Span(span)

    def begin_trace(
        self, name: str, attributes: Attributes, context: SpanContext, began: float
    ) -> None:
        self._ids.prepare(context.trace_id, context.span_id)
        span = self._tracer.start_span(
            name,
            Context(),
            trace.SpanKind.PRODUCER,
            _shown(attributes),
            start_time=int(began * NANOSECONDS),
        )
        span.end()

    def record(
        self,
        name: str,
        attributes: Attributes,
        *,
        parent: SpanContext,
        began: float,
        ended: float,
        kind: Kind = Kind.INTERNAL,
        id: int | None = None,
        error: str | None = None,
    ) -> None:
        self._ids.prepare(None, id)
        span = self._tracer.start_span(
            name,
            self._within(parent),
            trace.SpanKind[kind],
            _shown(attributes),
            start_time=int(began * NANOSECONDS),
        )
        if error is not None:
            _Span(span).fail(error, error)
        span.end(int(max(began, ended) * NANOSECONDS))

    @contextmanager
    def current(
        self, name: str, kind: Kind, attributes: Attributes, *, parent: SpanContext | None = None
    ) -> Iterator[Span]:
        span = self.start(name, kind, attributes, parent=parent)
        assert isinstance(span, _Span)  # noqa: S101 - its own
        with trace.use_span(
            span.span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield span
            except Exception as error:
                span.fail(type(error).__name__, str(error))
                raise

    def context(self) -> SpanContext | None:
        return context_of(_current())

    def event(self, name: str, payload: Mapping[str, object]) -> None:
        span = _current()
        if span.is_recording():
            text = truncate(json.dumps(redact_values(payload), default=str), MAX_TEXT)
            span.add_event(name, {"draftsman.event.payload": text} if payload else None)

    def _within(self, parent: SpanContext) -> Context:
        """Return the context of a span of any process.

        Whether a trace is sampled that begins with a job is decided by its id, alike everywhere.
        """
        sampled = parent.sampled
        if sampled is None:
            sampler = self._provider.sampler
            result = sampler.should_sample(Context(), parent.trace_id, "submit")
            sampled = result.decision is not Decision.DROP
        flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if sampled else trace.TraceFlags.DEFAULT)
        remote = trace.SpanContext(
            parent.trace_id, parent.span_id, is_remote=True, trace_flags=flags
        )
        return trace.set_span_in_context(trace.NonRecordingSpan(remote), Context())


def _shown(attributes: Attributes) -> dict[str, Value]:
    """Return the attributes without secrets, and without those that are None."""
    return {
        name: _text(value) if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None
    }


def _text(text: str) -> str:
    return truncate(redact(text[:MAX_READ]), MAX_TEXT)
