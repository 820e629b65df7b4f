"""Streams and killed processes, lost replies, rate limits, outages, and two processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.runs.outcome import Done
from draftsman_bots.slack.live.calls import APPEND, EDIT, START, STATUS, STOP
from draftsman_bots.slack.live.loop import GIVE_UP, LEASE, START_AFTER
from draftsman_testing.factories import QUESTION
from draftsman_testing.slack import Fault, error
from draftsman_testing.slack.message_store import STREAM_LIFE
from draftsman_testing.waits import until, wait_blocked
from tests.bots.slack.channel_fixtures import shown
from tests.bots.slack.live.live_harness import LiveHarness
from tests.core.deliveries.outbox.chaos import DispatcherProcesses
from tests.support.statements import run, value

STATE = "SELECT stream FROM draftsman.live_threads"
SECOND_LIMIT = 30
"""Seconds of the slow call during which a process is killed."""


@pytest.fixture
async def processes(live: LiveHarness) -> AsyncIterator[DispatcherProcesses]:
    slack = live.slack
    arguments = [live.rt.db.url, slack.api_url, slack.bot_token, slack.team, slack.bot_user]
    started = DispatcherProcesses("tests.bots.slack.live.show", arguments)
    yield started
    await started.stop()


async def test_another_process_continues_the_stream_of_a_killed_process(
    live: LiveHarness, processes: DispatcherProcesses
) -> None:
    work = await live.running()
    await live.streaming(work)
    await live.later(3)
    live.slack.faults.next(APPEND, Fault.SLOW(SECOND_LIMIT))
    await live.plan(work, "completed", "completed", "running")
    await processes.start()

    async def calling() -> bool:
        return live.slack.faults.left == 0

    await until(calling, "the call of the process")
    await processes.kill_one()
    await live.round()
    assert live.count(APPEND) == 0, "claimed by the killed process"
    await live.round(LEASE)
    assert live.count(APPEND) == 1
    assert live.tasks()["step-3"] == ("step c", "in_progress")
    assert live.count(START) == 1


async def test_the_stream_of_a_process_that_was_killed_in_its_start_is_ended(
    live: LiveHarness, processes: DispatcherProcesses, conn: Connection
) -> None:
    work = await live.running()
    await live.plan(work, "running", "pending")
    await live.loop.run_once()
    await live.later(START_AFTER + 3)
    live.slack.faults.next(START, Fault.SLOW(1))
    await processes.start()

    async def starting() -> bool:
        return live.slack.faults.left == 0

    await until(starting, "the start")
    await processes.kill_one()
    assert await value(conn, STATE) == "starting"
    await live.slack.until(lambda: live.count(START) == 1, "the stream that nobody knows")
    assert live.stream()["open"]
    await live.round(LEASE)
    assert not live.stream()["open"]
    assert await value(conn, STATE) == "closed"
    await live.round(START_AFTER)
    assert live.count(START) == 1, "a run has a single stream"
    await live.rt.activity.show(work.lease, "0 of 2 steps", "")
    await live.deliver(work.number)
    assert "0 of 2 steps" in shown(live.card())


@pytest.mark.parametrize("scopes", ["full", "minimal"])
async def test_a_start_whose_reply_was_lost_is_not_repeated(
    live: LiveHarness, conn: Connection, scopes: str
) -> None:
    if scopes == "minimal":
        live.slack.world.scopes -= {"channels:history", "groups:history"}
    work = await live.running()
    await live.rt.outbox.notify(work.lease, "n", (), "a message beside the stream")
    await live.deliver(work.number)
    await live.plan(work, "running")
    live.slack.faults.next(START, Fault.DROP_AFTER)
    await live.loop.run_once()
    await live.round(START_AFTER)
    for _ in range(3):
        await live.round()
    assert live.stream()["open"] is (scopes == "minimal")
    assert (live.count(START), await value(conn, STATE)) == (1, "closed")


async def test_a_stream_of_another_job_in_the_thread_is_not_ended_with_an_orphan(
    live: LiveHarness,
) -> None:
    first = await live.running()
    await live.streaming(first)
    thread = f"slack:{live.room}/{live.card()['ts']}"
    second = await live.running(notify=(thread,))
    await live.plan(second, "running")
    live.slack.faults.next(START, Fault.DROP_AFTER)
    await live.round()
    await live.round(START_AFTER)
    await live.round()
    one, other = live.slack.streams(live.room)
    assert (one["open"], other["open"]) == (True, False)


async def test_two_processes_start_and_continue_a_single_stream(
    live: LiveHarness, conn: Connection
) -> None:
    work = await live.running()
    await live.plan(work, "running")
    await live.loop.run_once()
    await live.later(START_AFTER)
    other = live.bot()
    await asyncio.gather(live.loop.run_once(), other.run_once(), live.bot().run_once())
    for _ in range(3):
        await live.later(3)
        await live.line(work, f"make {_}")
        await asyncio.gather(live.loop.run_once(), other.run_once())
    assert (live.count(START), live.count(APPEND)) == (1, 3)
    assert await value(conn, "SELECT count(*) FROM draftsman.live_threads") == 1


async def test_a_process_that_lost_its_claim_starts_no_second_stream(
    live: LiveHarness, conn: Connection
) -> None:
    """The first process is suspended before it records the start; another continues the thread."""
    work = await live.running()
    await live.plan(work, "running")
    await live.loop.run_once()
    await live.later(START_AFTER)
    async with live.rt.db.connection() as holder, holder.transaction():
        await holder.execute("LOCK TABLE draftsman.channel_limits")
        late = asyncio.create_task(live.loop.run_once())
        await wait_blocked(conn, by=holder.info.backend_pid)
        await run(conn, "UPDATE draftsman.live_threads SET token = gen_random_uuid()")
    await late
    assert live.count(START) == 0
    assert await value(conn, STATE) == "none"


async def test_a_stream_that_was_started_without_the_claim_is_ended_at_once(
    live: LiveHarness, conn: Connection
) -> None:
    work = await live.running()
    await live.plan(work, "running")
    await live.loop.run_once()
    await live.later(START_AFTER)
    live.slack.faults.next(START, Fault.SLOW(0.5))
    late = asyncio.create_task(live.loop.run_once())

    async def calling() -> bool:
        return live.slack.faults.left == 0

    await until(calling, "the call")
    await run(conn, "UPDATE draftsman.live_threads SET token = gen_random_uuid()")
    await late
    assert not live.stream()["open"]


async def test_a_stream_that_slack_closed_is_replaced_by_a_summary(
    live: LiveHarness, conn: Connection
) -> None:
    work = await live.running()
    await live.streaming(work)
    await live.later(STREAM_LIFE)
    live.slack.faults.next(APPEND, error("message_not_in_streaming_state"))
    await live.round()
    assert await value(conn, STATE) == "closed"
    assert "continues: see the status message" in shown(live.stream())
    assert "step b" in shown(live.stream())


@pytest.mark.parametrize("code", ["stopped_by_user", "message_not_found", "msg_too_long"])
async def test_a_stream_whose_chunks_are_refused_ends(
    live: LiveHarness, conn: Connection, code: str
) -> None:
    work = await live.running()
    await live.streaming(work)
    live.slack.faults.next(APPEND, error(code))
    live.slack.faults.next(STOP, error(code))
    await live.plan(work, "completed", "completed", "running")
    await live.round()
    assert await value(conn, STATE) == "closed"
    await live.round()
    assert live.count(START) == 1


@pytest.mark.parametrize("method", [START, APPEND, STOP])
async def test_a_rate_limit_is_waited_for(live: LiveHarness, method: str) -> None:
    work = await live.running()
    live.slack.faults.next(method, Fault.RATE_LIMIT(20))
    await live.plan(work, "running")
    await live.loop.run_once()
    await live.round(START_AFTER)
    await live.plan(work, "completed")
    await live.round()
    if method != STOP:
        assert live.count(method) == 0
        await live.round(21)
        await live.round()
    await live.rt.settlement.outcome(work, Done({}))
    await live.round(3)
    assert live.count(STOP) == (method != STOP)
    await live.round(21)
    await live.deliver(work.number)
    assert not live.stream()["open"]
    assert live.tasks()["step-1"][1] == "complete"


async def test_an_outage_of_slack_neither_fails_a_delivery_nor_starts_twice(
    live: LiveHarness, conn: Connection
) -> None:
    work = await live.running()
    await live.streaming(work)
    for fault in (Fault.DROP_BEFORE, Fault.HTML_503, error("internal_error"), Fault.DROP_AFTER):
        live.slack.faults.next(APPEND, fault)
        live.slack.faults.next(STOP, fault)
    await live.plan(work, "completed", "running", "pending")
    await live.line(work, "make")
    for _ in range(5):
        await live.round()
    assert live.tasks()["now"] == ("make", "in_progress")
    await live.rt.asking.ask(work.lease, QUESTION)
    await live.deliver(work.number)
    (*_, question) = live.slack.messages(live.room, live.card()["ts"])
    assert "Which one?" in shown(question)
    assert live.stream()["open"], "the question did not wait for the end of the stream"
    for _ in range(6):
        await live.round()
    assert not live.stream()["open"]
    assert live.count(START) == 1
    assert await value(conn, "SELECT count(*) FROM draftsman.live_threads") == 0
    failed = "SELECT count(*) FROM draftsman.deliveries WHERE status <> 'sent'"
    assert await value(conn, failed) == 0


async def test_the_end_of_a_stream_is_given_up_once_slack_must_have_closed_it(
    live: LiveHarness, conn: Connection
) -> None:
    work = await live.running()
    await live.streaming(work)
    await live.rt.settlement.outcome(work, Done({}))
    live.slack.faults.next(STOP, Fault.DROP_BEFORE, times=99)
    await live.round(GIVE_UP - 60)
    assert await value(conn, "SELECT count(*) FROM draftsman.live_threads") == 1
    await live.round(61)
    assert await value(conn, "SELECT count(*) FROM draftsman.live_threads") == 0


async def test_many_streams_stay_below_the_rate_tiers(live: LiveHarness) -> None:
    live.slack.api.tiers.enforced = True
    works = [await live.running() for _ in range(6)]
    for work in works:
        await live.plan(work, "running")
    await live.loop.run_once()
    await live.round(START_AFTER)
    for n in range(35):
        for work in works:
            await live.line(work, f"make {n}")
        await live.round()
    methods = {START, APPEND, STOP, EDIT}
    limited = [call.method for call in live.slack.calls if call.outcome == "rate limit"]
    assert methods & {*limited} == set()
    assert live.count(START) == 6
    assert 100 <= live.count(APPEND) <= 150, "as many as the tier allows"


async def test_an_unexpected_error_hides_one_run_and_ends_nothing(
    live: LiveHarness, conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    work = await live.running()
    await live.streaming(work)
    await live.running()
    await run(conn, """UPDATE draftsman.live_threads SET shown = '{"step-1": 7}'""")
    before = live.count(STATUS)
    await live.round()
    assert "its run is not shown any more" in caplog.text
    assert live.count(STATUS) == before + 1, "the other run is shown"
    await live.rt.settlement.outcome(work, Done({}))
    await live.round()
    assert await value(conn, "SELECT count(*) FROM draftsman.live_threads") == 1


async def test_a_claimed_thread_delays_no_other_process(
    live: LiveHarness, conn: Connection
) -> None:
    await live.running()
    await live.loop.run_once()
    await live.later(3)
    async with conn.transaction():
        await conn.execute("SELECT FROM draftsman.live_threads FOR UPDATE")
        async with asyncio.timeout(10):
            assert await live.threads.claim(10, LEASE) == []
    [(thread, _)] = await live.threads.claim(10, LEASE)
    assert await live.threads.begin_stream(thread) is not None
    assert await live.threads.begin_stream(thread) is None, "a run has a single stream"
    assert await live.threads.claim(10, LEASE) == []
    assert await live.threads.record(thread, 0)
    assert not await live.threads.record(thread, 0), "the claim has ended"
    assert not await live.threads.remove(thread)
