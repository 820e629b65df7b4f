"""The log of a run: stored soon, in order, once, and limited during an outage."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace

import pytest

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.database.database import Connection
from draftsman.handlers import activity_recorder, run_log
from draftsman.handlers.activity_recorder import ActivityRecorder
from draftsman.handlers.context import RunContext
from draftsman.handlers.registry import Handler
from draftsman.handlers.run_log import BUFFER_LIMIT, CHUNK, RunLog
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome, Snooze
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.service.checkpoints import Checkpoints
from draftsman.runtime import Runtime
from draftsman.settings.quotas import QuotaSettings
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until, wait_blocked
from tests.core.worker.cuttable_proxy import open_proxied
from tests.core.worker.workers import (
    BlockingHandler,
    CapturedLog,
    before_deadline,
    running_worker,
    runtime_with,
    wait_for_status,
)

S = Status


async def stored(rt: Runtime, number: int) -> list[str]:
    return [chunk.text for chunk in await rt.checkpoints.logs(number)]


async def holds(rt: Runtime, number: int, text: str) -> bool:
    return text in "".join(await stored(rt, number))


async def test_a_line_is_stored_soon_with_its_newline(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "DELAY", 0.01)
    work = await make.running()
    lines = RunLog(rt.checkpoints, work.lease)
    lines.write("one")
    await until(lambda: holds(rt, work.number, "one\n"), "the first line")
    lines.write("two\n")
    await until(lambda: holds(rt, work.number, "two\n"), "the second line")
    await lines.close()
    assert await stored(rt, work.number) == ["one\n", "two\n"]


async def test_lines_are_buffered_up_to_the_size_of_a_chunk(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "DELAY", 60)
    work = await make.running()
    lines = RunLog(rt.checkpoints, work.lease)
    text = "".join(f"{number}\n" for number in range(CHUNK // 4))
    lines.write("first")
    assert len(text) > CHUNK
    lines.write(text)
    await until(lambda: holds(rt, work.number, text), "all lines")
    await lines.close()
    pieces = await stored(rt, work.number)
    assert [len(piece) for piece in pieces[:-1]] == [CHUNK] * (len(pieces) - 1)
    assert "".join(pieces) == f"first\n{text}"


async def test_closing_stores_the_rest(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    lines = RunLog(rt.checkpoints, work.lease)
    lines.write("the end\0\ud800")
    await before_deadline(lines.close())
    assert await stored(rt, work.number) == ["the end\ufffd?\n"]


async def test_lines_written_while_a_chunk_is_stored_are_not_lost(
    rt: Runtime, make: Factory, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "DELAY", 0.01)
    work = await make.running()
    lines = RunLog(rt.checkpoints, work.lease)
    async with rt.db.connection() as other_conn, other_conn.transaction():
        await other_conn.execute(
            "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE", (work.number,)
        )
        lines.write("first")
        await wait_blocked(conn, by=other_conn.info.backend_pid)
        lines.write("second")
        closing = asyncio.create_task(lines.close())
        lines.write("third")
        await asyncio.sleep(0)
    await before_deadline(closing)
    assert "".join(await stored(rt, work.number)) == "first\nsecond\nthird\n"


async def test_a_chunk_with_a_lost_reply_is_stored_once(
    rt: Runtime, make: Factory, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "DELAY", 0.01)
    work = await make.running()
    async with open_proxied(database_url) as (proxy, db):
        lines = RunLog(Checkpoints(db), work.lease)
        proxy.drop_reply_to(b"COMMIT")
        lines.write("first")
        await before_deadline(proxy.lost.wait())
        lines.write("second")
        await until(lambda: holds(rt, work.number, "second"), "the second line")
        await lines.close()
    assert "".join(await stored(rt, work.number)) == "first\nsecond\n"


async def test_during_an_outage_the_newest_lines_are_buffered_and_truncation_is_marked(
    rt: Runtime,
    make: Factory,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(run_log, "DELAY", 0.01)
    captured = CapturedLog(caplog)
    work = await make.running()
    async with open_proxied(database_url) as (proxy, db):
        lines = RunLog(Checkpoints(db), work.lease)
        proxy.cut()
        for number in range(3 * BUFFER_LIMIT // 500):
            lines.write(f"{number:0499}")
        assert len(lines._text) <= BUFFER_LIMIT + len(run_log.TRUNCATION_MARK)
        await captured.wait(f"cannot store the log of D-{work.number}")
        proxy.mend()
        await until(lambda: holds(rt, work.number, f"{number:0499}\n"), "the last line")
        await lines.close()
    text = "".join(await stored(rt, work.number))
    assert text.startswith(run_log.TRUNCATION_MARK)
    assert BUFFER_LIMIT // 2 < len(text) < BUFFER_LIMIT + 1000
    whole = text.splitlines()[2:]
    assert whole == [f"{n:0499}" for n in range(int(whole[0]), number + 1)]


async def test_a_run_that_lost_its_lease_stores_no_log_and_reports_no_error(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "DELAY", 0.01)
    work = await make.running()
    lines = RunLog(rt.checkpoints, work.lease)
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    lines.write("late")
    await until(lambda: is_over(lines), "the writer's end")
    lines.write("later")
    await lines.close()
    assert await stored(rt, work.number) == []


async def is_over(lines: RunLog) -> bool:
    return lines._writer is not None and lines._writer.done()


async def test_a_canceled_run_can_still_log(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    await rt.job_control.cancel(work.number, make.owner)
    lines = RunLog(rt.checkpoints, work.lease)
    lines.write("tidying up")
    await lines.close()
    assert await stored(rt, work.number) == ["tidying up\n"]


async def fail(ctx: RunContext) -> Outcome:
    raise ValueError("no luck")


async def ask(ctx: RunContext) -> Outcome:
    await ctx.ask("pick", "Which?", choices=["a"])
    return Done({})


async def sleep(ctx: RunContext) -> Outcome:
    await ctx.sleep("nap", timedelta(hours=1))
    return Done({})


async def snooze(ctx: RunContext) -> Outcome:
    return Snooze(3600)


async def done(ctx: RunContext) -> Outcome:
    return Done({})


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (fail, S.RETRYING),
        (ask, S.WAITING_FOR_INPUT),
        (sleep, S.SCHEDULED),
        (snooze, S.SCHEDULED),
        (done, S.COMPLETED),
    ],
)
async def test_the_last_lines_before_any_end_are_stored(
    rt: Runtime,
    make: Factory,
    monkeypatch: pytest.MonkeyPatch,
    end: Handler,
    status: Status,
) -> None:
    monkeypatch.setattr(run_log, "DELAY", 60)

    async def handler(ctx: RunContext) -> Outcome:
        ctx.log("why it ended")
        return await end(ctx)

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, status)
        (chunk,) = await stored(rt, number)
        assert chunk.startswith("why it ended\n")
        assert ("Traceback" in chunk) == (status == Status.RETRYING)


@pytest.mark.parametrize("canceled", [True, False])
async def test_the_last_lines_before_a_stop_are_stored(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch, canceled: bool
) -> None:
    monkeypatch.setattr(run_log, "DELAY", 60)
    blocking = BlockingHandler()

    async def handler(ctx: RunContext) -> Outcome:
        ctx.log("it began")
        try:
            return await blocking(ctx)
        finally:
            ctx.log("it was stopped")

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}) as process:
        await blocking.next()
        if canceled:
            await rt.job_control.cancel(number, make.owner)
        else:
            process.stop.set()
        await wait_for_status(rt, number, S.CANCELED if canceled else S.RESUMED)
    assert "".join(await stored(rt, number)) == "it began\nit was stopped\n"


async def test_each_run_has_its_own_log(rt: Runtime, make: Factory) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        ctx.log(f"this is run {ctx.job.run}")
        await ctx.ask("pick", "Which?", choices=["a"])
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "a")
        await wait_for_status(rt, number, S.COMPLETED)
    chunks = await rt.checkpoints.logs(number)
    assert [(chunk.run, chunk.seq, chunk.text) for chunk in chunks] == [
        (1, 0, "this is run 1\n"),
        (2, 0, "this is run 2\n"),
    ]


async def test_output_and_activity_are_in_the_order_in_which_they_were_written(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 0.0
    for module in (run_log, activity_recorder):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: seconds))
    work = await make.running()
    log = RunLog(rt.checkpoints, work.lease)
    recorder = ActivityRecorder(rt.activity, work.lease, QuotaSettings())
    log.write("1")
    seconds = 50.0
    recorder.add(Activity(ActivityKind.MESSAGE, "2"))
    seconds = 90.0
    await recorder.close()  # activity is stored sooner than output
    await log.close()
    log.write("3")
    seconds = 100.0
    recorder.add(Activity(ActivityKind.MESSAGE, "4"))
    await recorder.close()
    await log.close()
    chunks = await rt.checkpoints.logs(work.number)
    rows = await rt.activity.page(work.number)
    items = [(chunk.created_at, chunk.text.strip()) for chunk in chunks]
    items = sorted([*items, *((row.created_at, row.text) for row in rows)])
    assert [text for _, text in items] == ["1", "2", "3", "4"]
