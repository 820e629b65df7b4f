"""Traces of jobs: real processes that send to a real receiver."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman.tracing.open_telemetry.export import FLUSH_TIMEOUT
from draftsman.tracing.tracer import submission_of
from draftsman_testing.factories import Factory
from draftsman_testing.http_server import Answer, Reply, Request
from draftsman_testing.trace_receiver import ReceivedSpan, TraceReceiver, receiving_traces
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation, Process
from tests.core.worker.agent_jobs import wait_for_file
from tests.core.worker.workers import wait_for_end, wait_for_status

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
HANDLERS = f"""
import asyncio, os
from pathlib import Path
from draftsman import Done, Failure
HERE = Path(os.environ["DRAFTSMAN_DATA_DIR"]).parent
async def told(ctx):
    await ctx.event("priced", {{"note": "key {SECRET}", "cents": 7}})
    if ctx.job.run == 1:
        await ctx.step("begin", lambda invocation: "begun")
        (HERE / "runs").write_text("runs\\n")
        await asyncio.sleep(3600)
    async def charge(invocation):
        return 7
    await ctx.step("charge", charge)
    answer = await ctx.ask("color", "Which color?", choices=["red", "blue"])
    return Done({{"color": answer.value}})
async def fails(ctx):
    raise Failure("refused with {SECRET}", declared="PERMANENT", code="no_such_thing")
async def quick(ctx):
    return Done({{}})
"""
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
async def receiver() -> AsyncIterator[TraceReceiver]:
    """Provide a receiver of traces."""
    async with receiving_traces() as receiver:
        yield receiver


@pytest.fixture
def traced(installation: Installation, receiver: TraceReceiver) -> Installation:
    """Provide an installation whose processes send their traces soon."""
    (installation.folder / "told.py").write_text(HANDLERS)
    installation.configure(
        None,
        tracing__endpoint=receiver.url,
        log__format="json",
        worker__poll=0.5,
        **{f"handlers.{name}": f"told:{name}" for name in ("told", "fails", "quick")},
    )
    return installation


def worker(installation: Installation, **env: str) -> Process:
    """Start a worker that sends its spans at once."""
    soon = {"OTEL_BSP_SCHEDULE_DELAY": "50"}
    return installation.start("worker", "--health-port", "0", env={**soon, **env})


async def stop(process: Process) -> None:
    """Stop a worker, which sends its last spans."""
    process.signal(signal.SIGTERM)
    assert await process.end() == 0


async def submit(installation: Installation, *args: str, **env: str) -> int:
    """Submit a job by the command; return its number."""
    done = await installation.run("submit", "--json", *args, **env)
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["number"])


def parents_of(spans: list[ReceivedSpan]) -> dict[str, str]:
    """Return the name of each span's parent, by its own name and run."""
    names = {span.id: label(span) for span in spans}
    return {label(span): names.get(span.parent, span.parent) for span in spans}


def label(span: ReceivedSpan) -> str:
    """Return the name of a span, with what tells it from others of the name."""
    details = ("draftsman.run", "draftsman.step.key", "draftsman.delivery.kind")
    told = [str(span.attributes[name]) for name in details if name in span.attributes]
    return " ".join([span.name, *told])


async def delivered(receiver: TraceReceiver, kind: str) -> bool:
    """Return whether the delivery of a kind was recorded."""
    sent = receiver.named("deliver log")
    return any(span.attributes["draftsman.delivery.kind"] == kind for span in sent)


async def test_a_job_has_one_trace_across_its_processes(
    traced: Installation, receiver: TraceReceiver, rt: Runtime
) -> None:
    """Submitted by a command; its first worker is killed; answered by another process."""
    first = worker(traced)
    number = await submit(traced, "--type", "told", "--notify", "log", "--on-lost", "resume")
    await wait_for_file(traced.folder / "runs")

    async def begun() -> bool:
        return bool(receiver.named("step"))

    await until(begun, "the step of the first run")
    first.signal(signal.SIGKILL)
    await first.end()
    second = worker(traced)
    await wait_for_status(rt, number, Status.WAITING_FOR_INPUT)
    await until(lambda: delivered(receiver, "question"), "the delivery of the question")
    answer = await traced.run("answer", f"D-{number}/1", "red")
    assert answer.returncode == 0, answer.stderr
    assert (await wait_for_end(rt, number)).result == {"color": "red"}

    await until(lambda: delivered(receiver, "result"), "the delivery of the result")
    await stop(second)

    job = await rt.read_model.job(number)
    spans = receiver.spans
    assert {span.trace_id for span in spans} == {submission_of(job.id).ids[0]}
    assert len({span.id for span in spans}) == len(spans)
    parents = parents_of([span for span in spans if span.name != "queue"])
    deliveries = {name for name in parents if name.startswith("deliver log")}
    assert {"deliver log question", "deliver log result"} <= deliveries
    assert parents == {
        "submit": "",
        "run told 1": "submit",
        "step begin": "run told 1",
        "run told 2": "submit",
        "step charge": "run told 2",
        "question": "run told 2",
        "run told 3": "submit",
        **dict.fromkeys(deliveries, "submit"),
    }
    assert [span.parent for span in receiver.named("queue")] == [receiver.named("submit")[0].id] * 3


async def test_what_a_run_says_is_redacted_as_in_the_log(
    traced: Installation, receiver: TraceReceiver, rt: Runtime
) -> None:
    process = worker(traced)
    number = await submit(traced, "--type", "fails")
    await wait_for_end(rt, number)
    told = await submit(traced, "--type", "told")
    await wait_for_file(traced.folder / "runs")
    canceling = await traced.run("cancel", f"D-{told}", "--yes")
    assert canceling.returncode == 0, canceling.stderr
    await wait_for_end(rt, told)
    await stop(process)
    [failed] = receiver.named("run fails")
    assert failed.error == "refused with ghp_***"
    assert failed.attributes["draftsman.outcome"] == "failed"
    assert failed.attributes["error.type"] == "no_such_thing"
    details = {"exception.type": "no_such_thing", "exception.message": failed.error}
    assert failed.events == [("exception", details)]
    [canceled] = receiver.named("run told")
    assert canceled.attributes["draftsman.outcome"] == "canceled"
    assert canceled.error is None
    payload = {"draftsman.event.payload": '{"note": "key ghp_***", "cents": 7}'}
    assert canceled.events == [("priced", payload)]
    body = b"".join(request.body for request in receiver.requests)
    assert SECRET.encode() not in body
    lines = [json.loads(line) for line in process.output_text.splitlines() if line[:1] == "{"]
    [line] = [line for line in lines if "refused with" in line["message"]]
    assert (line["trace_id"], line["span_id"]) == (failed.trace_id, failed.id)
    assert [line for line in lines if "trace_id" not in line], "there are lines of no job"


async def test_a_job_that_is_submitted_within_a_trace_is_a_part_of_it(
    traced: Installation, receiver: TraceReceiver, rt: Runtime
) -> None:
    number = await submit(traced, "--type", "quick", TRACEPARENT=TRACEPARENT)
    untraced = await submit(
        traced, "--type", "quick", TRACEPARENT=TRACEPARENT, OTEL_SDK_DISABLED="true"
    )
    process = worker(traced)
    for job in (number, untraced):
        await wait_for_end(rt, job)
    await stop(process)
    _, trace_id, caller, _ = TRACEPARENT.split("-")
    [submitted] = receiver.named("submit")
    assert (submitted.trace_id, submitted.parent) == (trace_id, caller)
    runs = {span.attributes["draftsman.job"]: span for span in receiver.named("run quick")}
    assert {run.trace_id for run in runs.values()} == {trace_id}
    assert runs[f"D-{number}"].parent == submitted.id
    assert runs[f"D-{untraced}"].parent == caller


async def _hangs(_: Request) -> Reply | None:
    await asyncio.Event().wait()
    return None


async def _is_busy(_: Request) -> Reply | None:
    return Reply(503)


async def _closes(_: Request) -> Reply | None:
    return None


@pytest.mark.parametrize("answer", [_hangs, _is_busy, _closes])
async def test_a_receiver_that_does_not_receive_delays_no_job(
    traced: Installation, receiver: TraceReceiver, rt: Runtime, make: Factory, answer: Answer
) -> None:
    receiver.answer = answer
    process = worker(traced, OTEL_BSP_MAX_QUEUE_SIZE="8")
    began = time.monotonic()
    jobs = [await make.queued(type="quick", queue="default") for _ in range(20)]
    for number in jobs:
        assert (await wait_for_end(rt, number)).status is Status.COMPLETED
    await process.says("health endpoints on port")
    found = re.search(r"health endpoints on port (\d+)", process.output_text)
    assert found is not None
    async with httpx.AsyncClient() as client:
        metrics = (await client.get(f"http://127.0.0.1:{found[1]}/metrics")).text
    assert 'draftsman_spans_dropped_total{reason="queue_full"}' in metrics
    stopping = time.monotonic()
    await stop(process)
    assert time.monotonic() - stopping < FLUSH_TIMEOUT + 5
    assert stopping - began < 20
    assert process.output_text.count("traces are not received") <= 1
