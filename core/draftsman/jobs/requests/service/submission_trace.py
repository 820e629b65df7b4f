"""Traces of submissions: a job that is submitted within a trace is a part of it.

Any other job begins a trace of its own, whose ids are made from that of the job.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from draftsman.ids import job_name
from draftsman.tracing.tracer import (
    Kind,
    SpanContext,
    Tracer,
    active,
    caller,
    submission_of,
)

NAME: Final = "submit"


def traceparent() -> str | None:
    """Return what a job that is submitted now keeps of the trace around it; None: there is none."""
    enclosing = _enclosing()
    return None if enclosing is None else enclosing.traceparent


class TracedSubmission:
    """A submission whose jobs are recorded."""

    def __init__(self, tracer: Tracer | None) -> None:
        self._tracer = tracer
        self._began = time.time()

    def created(self, id: UUID, number: int, type: str, queue: str) -> None:
        """Record a new job that begins a trace."""
        if self._tracer is not None:
            attributes = {
                "draftsman.job": job_name(number),
                "draftsman.job.type": type,
                "draftsman.queue": queue,
            }
            self._tracer.begin_trace(NAME, attributes, submission_of(id), self._began)


_UNTRACED = TracedSubmission(None)


@contextmanager
def traced_submission(count: int) -> Iterator[TracedSubmission]:
    """Record the submission of so many requests, within the trace around it if there is one."""
    if (tracer := active()) is None:
        yield _UNTRACED
    elif (enclosing := _enclosing()) is None:
        yield TracedSubmission(tracer)
    else:
        attributes = {"draftsman.requests": count}
        with tracer.current(NAME, Kind.PRODUCER, attributes, parent=enclosing):
            yield _UNTRACED


def _enclosing() -> SpanContext | None:
    """Return the span in which this program submits: its own, or that of who started it."""
    if (tracer := active()) is not None:
        return tracer.context() or caller()
    if "opentelemetry.trace" in sys.modules:  # an app may have traces of its own
        from draftsman.tracing.open_telemetry.app_span import current_span

        return current_span() or caller()
    return caller()
