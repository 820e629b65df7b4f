"""Spans as they are sent, and the traces of apps that submit jobs."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Literal

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from draftsman import log
from draftsman.database.database import Connection
from draftsman.ids import new_id
from draftsman.runtime import Runtime
from draftsman.settings.log import LogSettings
from draftsman.settings.tracing import TracingSettings
from draftsman.tracing import gen_ai
from draftsman.tracing.open_telemetry import process
from draftsman.tracing.open_telemetry.export import MAX_TEXT, exporting
from draftsman.tracing.span_metrics import DROPPED, EXPORTED
from draftsman.tracing.tracer import Kind, active, parse_traceparent, span, submission_of
from draftsman_testing.factories import Factory
from draftsman_testing.http_server import Reply, Request
from draftsman_testing.trace_receiver import TraceReceiver, receiving_traces
from tests.support.statements import value


@pytest.fixture
async def receiver() -> AsyncIterator[TraceReceiver]:
    """Provide a receiver of traces."""
    async with receiving_traces() as receiver:
        yield receiver


async def test_a_span_has_its_parent_its_attributes_and_its_error(receiver: TraceReceiver) -> None:
    sent = EXPORTED.value()
    async with exporting(receiver.url):
        with span("outer", {"a": 1, "none": None, "long": "x" * 5000}):
            with suppress(ValueError), span("inner", {}, Kind.CLIENT) as inner:
                inner.event("retried", {"password": "password=hunter2"})
                raise ValueError("wrong: password=hunter2")
            with pytest.raises(KeyboardInterrupt), span("ended", {}):
                raise KeyboardInterrupt
    assert EXPORTED.value() - sent == 3
    [outer], [inner_span] = receiver.named("outer"), receiver.named("inner")
    assert outer.attributes["a"] == 1
    assert len(outer.attributes["long"]) == MAX_TEXT
    assert "none" not in outer.attributes
    assert outer.error is None
    assert (inner_span.kind, inner_span.parent) == ("CLIENT", outer.id)
    assert inner_span.error == "wrong: password=***"
    assert [event[0] for event in inner_span.events] == ["retried", "exception"]
    assert inner_span.events[0][1] == {"password": "password=***"}
    assert receiver.named("ended")[0].error is None, "a run that is interrupted has not failed"
    assert outer.process["service.name"] == "draftsman"
    assert outer.schema_url == gen_ai.SCHEMA_URL
    assert active() is None


async def test_the_standard_variables_name_the_service(
    receiver: TraceReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "payments")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=payments")
    async with process.tracing(TracingSettings()), process.tracing(TracingSettings()):
        with span("step", {}):
            pass
    [step] = receiver.named("step")
    assert step.process["service.name"] == "payments"
    assert step.process["deployment.environment.name"] == "test"
    assert receiver.requests[0].headers["x-team"] == "payments"


async def test_a_wrong_variable_turns_traces_off_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "-1")
    async with exporting("http://localhost:4318"):
        assert active() is None
    assert "no traces are recorded" in caplog.text


async def test_an_outage_of_the_receiver_is_a_single_line_in_the_log(
    receiver: TraceReceiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuses(_: Request) -> Reply:
        return Reply(400)

    receiver.answer = refuses
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    dropped = DROPPED.value("refused")
    async with exporting(receiver.url):
        for _ in range(3):
            with span("step", {}):
                pass
    assert DROPPED.value("refused") - dropped == 3
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.message for record in warnings] == [
        "traces are not received: their spans are dropped until they are"
    ]


async def test_a_ratio_of_all_traces_is_whole_in_each_process(
    receiver: TraceReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process decides by the id of the job, whether or not it has the first span."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    jobs = [new_id() for _ in range(60)]
    for name in ("submitter", "worker"):
        async with exporting(receiver.url):
            tracer = active()
            assert tracer is not None
            for id in jobs:
                context = submission_of(id)
                if name == "submitter":
                    tracer.begin_trace("submit", {}, context, 0.0)
                else:
                    tracer.start("run", Kind.CONSUMER, {}, parent=context).end()
    first = {span.trace_id for span in receiver.named("submit")}
    assert first == {span.trace_id for span in receiver.named("run")}
    assert 10 < len(first) < 50


@pytest.mark.parametrize("is_on", [False, True])
async def test_a_job_of_an_app_is_a_part_of_the_trace_of_the_app(
    rt: Runtime, make: Factory, conn: Connection, receiver: TraceReceiver, is_on: bool
) -> None:
    """Whose provider is its own."""
    app = TracerProvider(shutdown_on_exit=False).get_tracer("app")
    async with process.tracing(TracingSettings(endpoint=receiver.url) if is_on else None):
        with app.start_as_current_span("request") as request:
            number = await make.queued()
        plain = await make.queued()
    query = "SELECT overrides ->> 'traceparent' FROM draftsman.job_requests WHERE number = %(job)s"
    stored = parse_traceparent(await value(conn, query, {"job": number}))
    assert stored is not None
    context = request.get_span_context()
    assert stored.trace_id == context.trace_id
    assert await value(conn, query, {"job": plain}) is None
    job = await rt.read_model.job(plain)
    if not is_on:
        assert stored.span_id == context.span_id
        assert receiver.spans == []
        return
    first, second = receiver.named("submit")
    assert (first.parent, first.id) == (trace.format_span_id(context.span_id), stored.ids[1])
    assert (second.trace_id, second.id) == submission_of(job.id).ids
    assert (second.parent, second.attributes["draftsman.job"]) == ("", job.name)


def test_the_names_of_calls_of_models_are_those_of_the_conventions() -> None:
    from opentelemetry.semconv import schemas
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    known = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
    call = {**gen_ai.call("google", "m"), **gen_ai.response("m", 1, 2)}
    assert call.keys() <= known
    providers = {item.value for item in gen_ai_attributes.GenAiProviderNameValues}
    for provider in ("openai", "anthropic", "google"):
        assert gen_ai.call(provider, "m")[gen_ai.PROVIDER] in providers
    assert gen_ai.SCHEMA_URL in {schema.value for schema in schemas.Schemas}


@pytest.mark.parametrize("form", ["text", "json"])
async def test_a_line_of_the_log_has_the_ids_of_the_span_that_logs(
    receiver: TraceReceiver, form: Literal["text", "json"]
) -> None:
    stream = io.StringIO()
    log.setup(LogSettings(format=form), stream)
    logger = logging.getLogger("draftsman.test")
    async with exporting(receiver.url):
        logger.warning("before")
        with span("step", {}):
            logger.warning("within")
    logger.warning("after")
    [step] = receiver.named("step")
    before, within, after = stream.getvalue().splitlines()
    assert "trace_id" not in before + after
    if form == "text":
        assert within.endswith(f"within trace_id={step.trace_id}")
    else:
        entry = json.loads(within)
        assert (entry["trace_id"], entry["span_id"]) == (step.trace_id, step.id)
