"""The tracer of this process: none unless tracing is on, then that of `open_telemetry`.

    with span("step", {"draftsman.step.key": key}):      # costs nothing while tracing is off
    if (tracer := active()) is not None:                 # what needs more than a name

Ids of a job's trace are made from the id of the job, so that each process knows them and none are
stored. Only a job that was submitted within another trace keeps that: a `traceparent` of W3C.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple
from uuid import UUID

TRACEPARENT: Final = "traceparent"
"""Key of the overrides under which a job keeps the trace that it was submitted in."""
TRACEPARENT_VARIABLE: Final = "TRACEPARENT"
"""Variable of the environment with the trace in which a command runs."""
_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", re.ASCII
)
Value = str | bool | int | float
Attributes = Mapping[str, Value | None]
"""Attributes of a span; None: it has none of this name."""


class Kind(StrEnum):
    """Kind of a span, as OpenTelemetry has it."""

    INTERNAL = "INTERNAL"
    CLIENT = "CLIENT"
    PRODUCER = "PRODUCER"
    CONSUMER = "CONSUMER"


class SpanContext(NamedTuple):
    """A span in its trace; `sampled` is None where the sampler of the process decides."""

    trace_id: int
    span_id: int
    sampled: bool | None = None

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of the trace and of the span, as text."""
        return f"{self.trace_id:032x}", f"{self.span_id:016x}"

    @property
    def traceparent(self) -> str:
        """The context in the format of W3C Trace Context."""
        flags = 0 if self.sampled is False else 1
        return f"00-{'-'.join(self.ids)}-{flags:02x}"


def parse_traceparent(text: object) -> SpanContext | None:
    """Return the context in a `traceparent`; None for any other value."""
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    if not trace_id or not span_id:
        return None
    return SpanContext(trace_id, span_id, bool(flags & 1))


def submission_of(id: UUID, traceparent: object = None) -> SpanContext:
    """Return the parent of the spans of a job: the span of its submission.

    That of a job without a `traceparent` begins its trace. Its ids are hashes, since samplers take
    all bits of a trace's id to be random.
    """
    return parse_traceparent(traceparent) or SpanContext(
        _hash(id, "trace", 16), _hash(id, "job", 8)
    )


def run_span_id(id: UUID, run: int) -> int:
    """Return the id of the span of a run, which any process may record."""
    return _hash(id, str(run), 8)


def _hash(id: UUID, part: str, size: int) -> int:
    """Return a number of so many bytes, never 0."""
    digest = blake2b(id.bytes + part.encode(), digest_size=size).digest()
    return int.from_bytes(digest, "big") or 1


class Span(ABC):
    """A span that has begun."""

    context: SpanContext

    @abstractmethod
    def set(self, attributes: Attributes) -> None:
        """Add attributes."""

    @abstractmethod
    def event(self, name: str, attributes: Attributes) -> None:
        """Add an event."""

    @abstractmethod
    def fail(self, kind: str, message: str) -> None:
        """Record an error."""

    @abstractmethod
    def activate(self) -> None:
        """Let it be the parent of further spans in the current context, until that ends."""

    @abstractmethod
    def continue_as(self, other: Span) -> None:
        """Let another span be the current one wherever this one is, which has ended."""

    @abstractmethod
    def end(self) -> None:
        """End it now."""


class Tracer(ABC):
    """Records spans; nothing of it raises an error or waits."""

    @abstractmethod
    def start(
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        *,
        parent: SpanContext | None = None,
        id: int | None = None,
    ) -> Span:
        """Begin a span; without a `parent` it is a child of the current span."""

    @abstractmethod
    def begin_trace(
        self, name: str, attributes: Attributes, context: SpanContext, began: float
    ) -> None:
        """Record the first span of a trace, with these ids, which ends now."""

    @abstractmethod
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
        """Record a span that was not this process's to begin, with its times."""

    @abstractmethod
    def current(
        self, name: str, kind: Kind, attributes: Attributes, *, parent: SpanContext | None = None
    ) -> AbstractContextManager[Span]:
        """Begin a span that is the parent of those within the block; it has the block's error."""

    @abstractmethod
    def context(self) -> SpanContext | None:
        """Return the current span, of whichever program began it."""

    @abstractmethod
    def event(self, name: str, payload: Mapping[str, object]) -> None:
        """Add an event to the current span."""


class _NoSpan(Span):
    """The span of a process without tracing."""

    context = SpanContext(0, 0, sampled=False)

    def set(self, attributes: Attributes) -> None:
        pass

    def event(self, name: str, attributes: Attributes) -> None:
        pass

    def fail(self, kind: str, message: str) -> None:
        pass

    def activate(self) -> None:
        pass

    def continue_as(self, other: Span) -> None:
        pass

    def end(self) -> None:
        pass


_OFF: Final[AbstractContextManager[Span]] = nullcontext(_NoSpan())
_tracer: Tracer | None = None
_caller: Final[ContextVar[SpanContext | None]] = ContextVar("caller", default=None)
"""The span of another program in which this one runs."""


def active() -> Tracer | None:
    """Return the tracer of this process; None: tracing is off."""
    return _tracer


def use(tracer: Tracer | None) -> None:
    """Let this process have this tracer."""
    global _tracer
    _tracer = tracer


def span(
    name: str, attributes: Attributes, kind: Kind = Kind.INTERNAL
) -> AbstractContextManager[Span]:
    """Record the block as a child of the current span, while tracing is on."""
    return _OFF if _tracer is None else _tracer.current(name, kind, attributes)


def caller() -> SpanContext | None:
    """Return the span of another program in which this one submits jobs."""
    return _caller.get()


@contextmanager
def called_by(traceparent: str | None) -> Iterator[None]:
    """Submit the jobs of the block in the trace of a `traceparent`; any other text is ignored."""
    before = _caller.get()
    _caller.set(parse_traceparent(traceparent))
    try:
        yield
    finally:
        _caller.set(before)  # the end may run in another context, where a token is invalid
