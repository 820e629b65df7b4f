"""The current span of OpenTelemetry in this program, which may have a provider of its own."""

from __future__ import annotations

from opentelemetry import trace

from draftsman.tracing.tracer import SpanContext


def current_span() -> SpanContext | None:
    """Return the current span, also one that another library began; None without one."""
    return context_of(trace.get_current_span())


def context_of(span: trace.Span) -> SpanContext | None:
    """Return the ids of a span; None: it is none."""
    context = span.get_span_context()
    if not context.is_valid:
        return None
    return SpanContext(context.trace_id, context.span_id, context.trace_flags.sampled)
