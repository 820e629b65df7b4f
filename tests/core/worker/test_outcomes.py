"""The end of a run: the handler's result or exception, and the job's next status."""

from __future__ import annotations

import asyncio
import gc
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.registry import Handler
from draftsman.jobs.job import Job, Status
from draftsman.jobs.runs.outcome import Cancel, Done, Outcome, Snooze
from draftsman.questions.question import Answered
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    BlockingHandler,
    before_deadline,
    event_kinds,
    noop,
    rescue_live,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)
from tests.support.cases import cases

S = Status


class UnknownBaseException(BaseException):
    """A BaseException of an unknown class."""


def returning(value: Any) -> Handler:
    async def handler(ctx: RunContext) -> Outcome:
        return cast(Outcome, value)

    return handler


def raising(error: BaseException) -> Handler:
    async def handler(ctx: RunContext) -> Outcome:
        raise error

    return handler


async def run_to_end(
    rt: Runtime, make: Factory, handler: Handler, *stops: Status, **job: Any
) -> Job:
    """Run a job once and return it, after a check that its worker still works."""
    number = await make.queued(type="it", queue="default", **job)
    async with running_worker(runtime_with(rt), {"it": handler, "noop": noop}):
        await wait_for_status(rt, number, *stops)
        after = await make.queued(queue="default")
        assert (await wait_for_end(rt, after)).status is S.COMPLETED
    return await rt.read_model.job(number)


async def test_a_result_is_stored_with_the_job(rt: Runtime, make: Factory) -> None:
    job = await run_to_end(rt, make, returning(Done({"found": [1, "two"]})), S.COMPLETED)
    assert job.result == {"found": [1, "two"]}
    assert (await run_of(rt, job.number)).status == "completed"


async def test_a_snooze_delays_the_job_without_using_an_attempt(rt: Runtime, make: Factory) -> None:
    at = datetime.now(UTC) + timedelta(hours=2)
    job = await run_to_end(rt, make, returning(Snooze(at)), S.SCHEDULED)
    assert (job.run_at, job.attempts, job.retry_count) == (at, 0, 0)
    assert (await run_of(rt, job.number)).status == "parked"


async def test_a_handler_can_cancel_its_job(rt: Runtime, make: Factory) -> None:
    job = await run_to_end(rt, make, returning(Cancel("not wanted\0")), S.CANCELED)
    assert job.cancel_reason == "not wanted\ufffd"
    assert (job.cancel_requested_by or "").startswith("worker:")


@pytest.mark.parametrize(
    ("error", "status", "error_class", "counts"),
    [
        (Failure("slow down", http_status=429), S.RETRYING, "TRANSIENT_APP", (0, 1)),
        (Failure("no such page", http_status=404), S.FAILED, "PERMANENT", (0, 0)),
        (Failure("odd"), S.RETRYING, "TRANSIENT_INFRA", (1, 1)),
        (Failure("bad", declared="INVALID_OUTPUT"), S.FAILED, "INVALID_OUTPUT", (0, 0)),
        (TimeoutError(), S.RETRYING, "TRANSIENT_APP", (0, 1)),
        (FileNotFoundError(2, "No such file"), S.FAILED, "PERMANENT", (0, 0)),
        (ConnectionResetError(104, "reset"), S.RETRYING, "TRANSIENT_INFRA", (1, 0)),
        (ValueError("what?"), S.RETRYING, "TRANSIENT_INFRA", (1, 1)),
    ],
)
async def test_an_exception_determines_the_next_status_and_the_used_budget(
    rt: Runtime,
    make: Factory,
    error: Exception,
    status: Status,
    error_class: str,
    counts: tuple[int, int],
) -> None:
    job = await run_to_end(rt, make, raising(error), status)
    assert (job.error_class, (job.attempts, job.retry_count)) == (error_class, counts)
    run = await run_of(rt, job.number)
    assert (run.status, run.error, run.error_class) == ("failed", job.last_error, error_class)


@pytest.mark.parametrize("limits", [{"max_attempts": 1}, {"max_retries": 0}])
async def test_a_failure_with_a_spent_budget_is_a_dead_letter(
    rt: Runtime, make: Factory, limits: dict[str, int]
) -> None:
    error = ValueError("no luck")
    job = await run_to_end(rt, make, raising(error), S.DEAD_LETTER, **limits)
    assert job.run_count == 1
    assert job.last_error == "ValueError: no luck"
    assert (await event_kinds(rt, job.number))[-1] == "job_dead_lettered"


async def test_the_retry_after_of_a_failure_is_respected(rt: Runtime, make: Factory) -> None:
    error = Failure("later", http_status=429, retry_after=1000)
    job = await run_to_end(rt, make, raising(error), S.RETRYING)
    assert job.next_retry_at is not None
    assert 990 < (job.next_retry_at - job.updated_at).total_seconds() <= 1000


@pytest.mark.parametrize("error", [SystemExit(3), UnknownBaseException("odd")])
async def test_no_exception_of_a_handler_ends_its_worker(
    rt: Runtime, make: Factory, error: BaseException
) -> None:
    job = await run_to_end(rt, make, raising(error), S.RETRYING)
    assert job.error_class == "TRANSIENT_INFRA"
    assert type(error).__name__ in (job.last_error or "")


async def cancel_a_child(ctx: RunContext) -> Outcome:
    child = asyncio.ensure_future(asyncio.Event().wait())
    child.cancel()
    await child  # a common mistake
    return Done()


async def cancel_itself(ctx: RunContext) -> Outcome:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return Done()


async def cancel_itself_and_fail(ctx: RunContext) -> Outcome:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    raise asyncio.CancelledError


@pytest.mark.parametrize("handler", [cancel_a_child, cancel_itself, cancel_itself_and_fail])
async def test_a_cancellation_that_nobody_requested_is_a_failure_with_an_attempt(
    rt: Runtime, make: Factory, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    job = await run_to_end(rt, make, handler, S.RETRYING)
    assert (job.run_count, job.attempts) == (1, 1)
    assert job.next_retry_at is not None
    assert (job.last_error or "").startswith("CancelledError: nobody canceled the run")
    assert f"D-{job.number}: run 1 failed; attempt 2 of 3, retry 1 of 3 at " in caplog.text
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(job.number))
    assert handler.__name__ in log, "the traceback"


@pytest.mark.parametrize("value", [None, "done", Done(cast(Any, None)), Done(cast(Any, [1]))])
async def test_an_invalid_return_value_fails_the_job_with_a_clear_error(
    rt: Runtime, make: Factory, value: Any
) -> None:
    job = await run_to_end(rt, make, returning(value), S.FAILED, S.COMPLETED)
    assert (job.status, job.error_class) == (S.FAILED, "INVALID_OUTPUT")
    assert "return" in (job.last_error or "")
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(job.number))
    assert repr(value) in log


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"big": "x" * 2**20}, "at most 1,048,576 are kept"),
        ({"odd": {1, 2}}, "a value of type set is not JSON"),
        ({"nan": float("nan")}, "nan is not JSON"),
    ],
)
async def test_a_result_that_cannot_be_stored_is_invalid_output(
    rt: Runtime, make: Factory, result: dict[str, Any], message: str
) -> None:
    job = await run_to_end(rt, make, returning(Done(result)), S.FAILED)
    assert job.error_class == "INVALID_OUTPUT"
    assert message in (job.last_error or "")


def nested(depth: int) -> Any:
    """Return a value of nested lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


DEEP: Final = nested(5000)


@cases(
    "write",
    {
        "result": lambda ctx: asyncio.sleep(0, Done({"deep": DEEP})),
        "checkpoint": lambda ctx: ctx.checkpoint({"deep": DEEP}),
        "step": lambda ctx: ctx.step("effect", lambda _: DEEP),
        "event": lambda ctx: ctx.event("looked", {"deep": DEEP}),
        "usage": lambda ctx: ctx.usage({"deep": DEEP}),
        "parameters": lambda ctx: worker_run(ctx).describe({"deep": DEEP}),
        "action": lambda ctx: ctx.approve("send", "Send it?", action={"deep": DEEP}),
        "payload": lambda ctx: ctx.spawn("child", "noop", payload={"deep": DEEP}),
    }.items(),
    ids=lambda write: write[0],
)
async def test_a_value_that_is_nested_too_deeply_is_an_error_of_the_handler(
    rt: Runtime, make: Factory, write: tuple[str, Any]
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        return await write[1](ctx) or Done()

    number = await make.queued(type="it", queue="default")
    async with running_worker(runtime_with(rt), {"it": handler}):
        job = await wait_for_status(rt, number, S.FAILED, S.RETRYING, S.COMPLETED)
    assert (job.status, job.run_count) == (S.FAILED, 1), job.last_error
    assert "nested too deeply" in (job.last_error or "")


async def test_a_question_inside_a_task_group_parks_the_run(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(ctx.ask("pick", "Which?", choices=["a", "b"]))
        answer = task.result()
        return Done({"got": answer.value if isinstance(answer, Answered) else None})

    number = await make.queued(type="it", queue="default")
    async with running_worker(runtime_with(rt), {"it": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "b")
        job = await wait_for_end(rt, number)
    assert (job.result, job.run_count, job.attempts) == ({"got": "b"}, 2, 0)
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


async def test_a_run_that_times_out_fails_without_a_retry(rt: Runtime, make: Factory) -> None:
    number = await make.queued(type="it", queue="default")
    async with running_worker(
        runtime_with(rt, types={"it": {"timeout": 0.05}}), {"it": BlockingHandler()}
    ):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class, job.attempts) == (S.FAILED, "PERMANENT", 0)
    assert job.last_error == "ran for 0.05 s (job limit, time spent waiting excluded)"


@pytest.mark.parametrize("fields", [{"overrides": {"timeout": 0.05}}, {"agent": "quick"}], ids=str)
async def test_a_job_or_its_agent_can_have_a_shorter_timeout_than_the_type(
    rt: Runtime, make: Factory, fields: dict[str, Any]
) -> None:
    number = await make.queued(type="it", queue="default", **fields)
    agents = {"quick": {"command": ["x"], "timeout": 0.05}}
    async with running_worker(runtime_with(rt, agents=agents), {"it": BlockingHandler()}):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")


async def test_running_time_is_the_sum_of_runs_without_waiting(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    remaining: list[float] = []

    async def handler(ctx: RunContext) -> Outcome:
        remaining.append(worker_run(ctx).deadline)
        await ctx.ask("pick", "Which?", choices=["a", "b"])
        await ctx.ask("more", "And now?", choices=["a", "b"])
        return Done({})

    number = await make.queued(type="it", queue="default")
    async with running_worker(runtime_with(rt, types={"it": {"timeout": 100}}), {"it": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await set_run(conn, number, 1, "600 seconds", "560 seconds")
        await make.answer(number, "a")
        await wait_for_question(rt, number, 2)
        await set_run(conn, number, 2, "500 seconds", "430 seconds")
        await make.answer(number, "a", n=2)
        job = await wait_for_end(rt, number)
    assert remaining == [100, pytest.approx(60, abs=0.01)]
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert job.last_error == "ran 110 s in total, over the job limit of 100 s"


async def set_run(conn: Connection, job: int, run: int, began: str, outcome: str) -> None:
    """Move a run to another time, as the owner of the server."""
    await conn.execute("SET session_replication_role = replica")
    await conn.execute(
        "UPDATE draftsman.job_runs SET started_at = draftsman.now() - %s::interval,"
        " finished_at = draftsman.now() - %s::interval WHERE job = %s AND ordinal = %s",
        (began, outcome, job, run),
    )
    await conn.execute("SET session_replication_role = origin")


async def rescue_job(rt: Runtime, make: Factory, number: int) -> None:
    """Rescue the job of a worker whose lease has ended."""
    job = await rt.read_model.job(number)
    assert job.worker_id is not None
    assert await rescue_live(rt, job.worker_id) == 1


@pytest.mark.parametrize("then", [returning(Done({"late": 1})), raising(ValueError("late"))])
async def test_a_run_that_lost_its_lease_writes_nothing(
    rt: Runtime, make: Factory, then: Handler
) -> None:
    entered = asyncio.Event()
    go = asyncio.Event()

    async def handler(ctx: RunContext) -> Outcome:
        entered.set()
        await go.wait()
        return await then(ctx)

    number = await make.queued(type="it", queue="default", on_lost="fail")
    async with running_worker(
        runtime_with(rt, heartbeat=20), {"it": handler, "noop": noop}
    ) as process:
        await before_deadline(entered.wait())
        await rescue_job(rt, make, number)
        before = await rt.read_model.job(number), await rt.read_model.job_events(number)
        go.set()
        await wait_for_end(rt, await make.queued(queue="default"))
        await process.heartbeat.beat()

        async def let_go() -> bool:
            return not process.worker.leases()

        await until(let_go, "the end of the run")
    assert (await rt.read_model.job(number), await rt.read_model.job_events(number)) == before
    assert before[0].status is S.FAILED


SECRET = "postgresql://anna:hunter2hunter2@db/x token=abcdef123456"


async def _error_of(rt: Runtime, make: Factory, error: BaseException) -> tuple[Job, str]:
    """Let a handler raise this; return its job, and the run's log, once job and run agree."""

    async def handler(ctx: RunContext) -> Outcome:
        raise error

    number = await make.queued(type="it", queue="default", max_attempts=1, max_retries=0)
    async with running_worker(runtime_with(rt), {"it": handler}):
        job = await wait_for_end(rt, number)
    run = await run_of(rt, number)
    event = (await rt.read_model.job_events(number))[-1]
    assert run.error == job.last_error
    assert event.payload["error"] == str(job.last_error)[:2000]
    return job, "".join(chunk.text for chunk in await rt.checkpoints.logs(number))


@pytest.mark.parametrize("own", [True, False], ids=["failure", "exception"])
@pytest.mark.parametrize(
    ("text", "error_text"),
    [
        ("one\n\ttwo\nthree", "one\n\ttwo\nthree"),
        ("caf\udce9 a\x00b", "caf? a\ufffdb"),
        (f"cannot reach {SECRET}", "cannot reach postgresql://anna:***@db/x token=***"),
        ("", ""),
    ],
    ids=["lines", "dirty", "secret", "empty"],
)
async def test_the_text_of_an_error_is_stored_in_job_run_and_event(
    rt: Runtime, make: Factory, text: str, error_text: str, own: bool
) -> None:
    job, log = await _error_of(rt, make, Failure(text) if own else ValueError(text))
    prefix = "" if own else "ValueError: " if text else "ValueError"
    expected = prefix + error_text
    if own and not text:
        expected = "Work failed."
    assert str(job.last_error).startswith(expected)
    assert "Traceback" in log, "also of a Failure: it says where the handler raised it"
    assert "hunter2" not in f"{log}{job.last_error}"


@pytest.mark.parametrize("own", [True, False], ids=["failure", "exception"])
async def test_a_huge_error_is_truncated_in_the_job_and_complete_in_the_log(
    rt: Runtime, make: Factory, own: bool
) -> None:
    text = "begin " + "x" * 100_000 + " password=hunter2hunter2 end"
    job, log = await _error_of(rt, make, Failure(text) if own else ValueError(text))
    assert len(str(job.last_error)) == 4000
    assert str(job.last_error).endswith("x…")
    assert "x" * 100_000 + " password=*** end" in log


async def test_an_error_that_cannot_be_formatted_fails_its_job(rt: Runtime, make: Factory) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    job, log = await _error_of(rt, make, Mute())
    assert job.last_error == "Mute with an unprintable message: RuntimeError"
    assert "Traceback" in log
