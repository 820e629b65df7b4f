"""Contexts of traces, and a process that records none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from draftsman.ids import new_id
from draftsman.settings.tracing import TracingSettings
from draftsman.tracing.tracer import (
    SpanContext,
    active,
    called_by,
    caller,
    parse_traceparent,
    run_span_id,
    span,
    submission_of,
)
from tests.support.cases import cases

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


def test_a_context_is_written_as_it_is_read() -> None:
    for flags, sampled in (("01", True), ("00", False)):
        text = f"00-{TRACE}-{SPAN}-{flags}"
        context = parse_traceparent(text)
        assert context == SpanContext(int(TRACE, 16), int(SPAN, 16), sampled)
        assert context is not None
        assert context.traceparent == text
    assert parse_traceparent(f"cc-{TRACE}-{SPAN}-03") is not None, "a later version, other flags"


@cases(
    "text",
    [
        None,
        7,
        "",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE}-{SPAN}",
        "00-" + "٣" * 32 + f"-{SPAN}-01",
    ],
)
def test_what_is_no_context_is_ignored(text: object) -> None:
    assert parse_traceparent(text) is None


def test_each_process_finds_the_same_ids_of_a_job() -> None:
    id = new_id()
    submission = submission_of(id)
    assert submission == submission_of(id, "no context")
    assert submission.sampled is None, "the sampler decides"
    ids = {submission.span_id, *(run_span_id(id, run) for run in range(1, 100))}
    assert len(ids) == 100
    stored = f"00-{TRACE}-{SPAN}-00"
    assert submission_of(id, stored) == parse_traceparent(stored)


def test_all_bits_of_the_ids_of_traces_are_random() -> None:
    """As samplers by ratio assume: half of the ids of jobs have each bit."""
    ids = [submission_of(new_id()).trace_id for _ in range(400)]
    for bit in range(128):
        assert 100 < sum(id >> bit & 1 for id in ids) < 300, bit


def test_the_caller_of_a_program_is_known_within_the_block_only() -> None:
    with called_by(f"00-{TRACE}-{SPAN}-01"):
        assert caller() == SpanContext(int(TRACE, 16), int(SPAN, 16), True)
        with called_by("broken"):
            assert caller() is None
    assert caller() is None


def test_without_a_tracer_a_span_does_nothing() -> None:
    assert active() is None
    with span("step", {"draftsman.step.key": "charge"}) as current:
        current.set({"a": 1})
        current.event("b", {})
        current.fail("c", "d")
        current.activate()
        current.end()


@contextmanager
def variables(monkeypatch: pytest.MonkeyPatch, values: dict[str, str]) -> Iterator[None]:
    """Set standard variables for a block."""
    with monkeypatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        yield


def test_the_standard_variables_decide_before_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = TracingSettings(endpoint="http://localhost:4318"), TracingSettings()
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    traces = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}
    expected: list[tuple[dict[str, str], bool, bool]] = [
        ({}, True, False),
        (endpoint, True, True),
        (traces, True, True),
        (endpoint | {"OTEL_TRACES_EXPORTER": "none"}, False, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True, True),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, True, True),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False, False),
        (endpoint | {"OTEL_SDK_DISABLED": "True"}, False, False),
    ]
    for values, with_endpoint, without in expected:
        with variables(monkeypatch, values):
            assert (here.is_on, there.is_on) == (with_endpoint, without), values
            is_elsewhere = bool(values.keys() & {*endpoint, *traces})
            assert here.own_endpoint == (None if is_elsewhere else here.endpoint), values


def test_a_process_without_traces_does_not_load_open_telemetry() -> None:
    code = (
        "import sys, draftsman.worker_main, draftsman.client, draftsman.runtime,"
        " draftsman.worker.worker_process, draftsman.jobs.requests.service.submissions\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'requests'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
