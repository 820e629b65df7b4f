"""The status of a job's thread: set while a run works, renewed, and removed."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Final

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import TERMINAL, TRANSITIONS, WAITING, Status
from draftsman.jobs.runs.outcome import Done, Snooze
from draftsman_bots.slack.live.calls import SESSION, STATUS
from draftsman_bots.slack.live.loop import LEASE, RENEWAL, START_AFTER, STATUS_INTERVAL
from draftsman_bots.slack.live.steps import MAX_STATUS
from draftsman_testing.factories import QUESTION
from draftsman_testing.slack import Fault, error
from draftsman_testing.slack.world import STATUS_LIFE
from tests.bots.slack.live.live_harness import LiveHarness
from tests.support.statements import rows, run, value


async def test_a_thread_shows_the_newest_line_while_the_run_works(live: LiveHarness) -> None:
    work = await live.running(text="Tidy up")
    await live.loop.run_once()
    assert live.status() == f"is working on D-{work.number}: Tidy up"
    await live.line(work, "npm test <!everyone>")
    await live.round(STATUS_INTERVAL)
    assert live.status() == f"is working on D-{work.number}: ▸ npm test \u2039!everyone\u203a"
    await live.line(work, "x" * 200)
    await live.round(STATUS_INTERVAL)
    assert len(live.status()) == MAX_STATUS
    await live.rt.settlement.outcome(work, Done({}))
    await live.round()
    assert live.status() == ""
    assert not live.slack.streams(live.room)[1:]


SESSIONS: Final = {
    Status.RUNNING: "processing",
    **dict.fromkeys(WAITING, "suspended"),
    **dict.fromkeys(TERMINAL, "closed"),
}
"""The state of the session by the status of the job; of all other jobs it is active."""
CHANGE: Final = """
    UPDATE draftsman.job_states SET status = %s, version = version + 1,
           run_count = run_count + (%s)::int WHERE number = %s"""


@pytest.mark.slow(fast="test_a_job_that_ends_while_it_waits_closes_its_session")
async def test_a_session_follows_its_job_through_each_transition(
    live: LiveHarness, conn: Connection
) -> None:
    """The triggers are off: the transitions are those of the table, one after another."""
    loop = live.bot(is_agent=True)
    work = await live.running(text="Tidy up")
    await loop.run_once()
    assert live.sessions() == ["processing"]
    await run(conn, "ALTER TABLE draftsman.job_states DISABLE TRIGGER USER")
    status = Status.RUNNING
    for before, after in TRANSITIONS:
        begun = [Status.RUNNING] if status in TERMINAL else []
        for status in (*begun, before, after):
            await conn.execute(CHANGE, (status, status is Status.RUNNING, work.number))
            await live.round(loop=loop)
            if status is Status.RUNNING:
                await live.round(loop=loop)
            assert live.sessions()[-1] == SESSIONS.get(status, "active"), (before, after, status)
    kept = [state for state, _ in groupby(live.sessions())]
    assert live.sessions() == kept, "a state is set once"


async def test_a_job_that_ends_while_it_waits_closes_its_session(
    live: LiveHarness, conn: Connection
) -> None:
    loop = live.bot(is_agent=True)
    work = await live.running(text="Tidy up")
    await loop.run_once()
    await live.rt.asking.ask(work.lease, QUESTION)
    await live.round(loop=loop)
    await live.round(STATUS_LIFE, loop)
    calls = live.count(SESSION)
    assert live.sessions() == ["processing", "suspended"]
    other = await live.running(notify=(f"slack:{live.room}/{live.card()['ts']}",))
    await live.round(loop=live.bot(is_agent=True))
    await live.rt.job_control.cancel(work.number, live.make.owner)
    await live.round(loop=loop)
    assert "closed" in live.sessions(), "another bot process continues it"
    assert live.count(SESSION) <= calls + 2
    await live.rt.settlement.outcome(other, Done({}))
    await live.round(loop=loop)
    await live.round(loop=loop)
    assert live.sessions()[-1] == "closed"
    assert await value(conn, "SELECT count(*) FROM draftsman.live_threads") == 0


async def test_a_session_that_slack_refuses_stops_no_status(live: LiveHarness) -> None:
    loop = live.bot(is_agent=True)
    live.slack.world.scopes.discard("assistant:write")
    await live.running()
    await loop.run_once()
    await live.round(RENEWAL, loop)
    assert live.status()
    assert live.sessions() == []
    assert sum(call.method == SESSION for call in live.slack.calls) == 1, "it is off for a day"


async def test_an_app_that_is_no_agent_has_no_session(live: LiveHarness) -> None:
    await live.running()
    await live.loop.run_once()
    assert live.status()
    assert live.sessions() == []


async def test_a_secret_in_the_title_is_not_shown(live: LiveHarness) -> None:
    work = await live.running(text="use xoxb-123456789012-abcdefghijkl")
    await live.plan(work, "running")
    await live.loop.run_once()
    await live.round(START_AFTER)
    assert "xoxb-123456789012" not in str(live.slack.streams(live.room)) + live.status()


async def test_a_status_is_renewed_before_slack_removes_it(live: LiveHarness) -> None:
    await live.running()
    await live.loop.run_once()
    assert RENEWAL < STATUS_LIFE
    for _ in range(5):
        await live.round(RENEWAL - 1)
        assert live.status(), "the status expired"
        await live.round(2)
    assert live.count(STATUS) <= 6, "renewed although nothing changed"


@pytest.mark.parametrize("ending", ["question", "snooze", "cancel"])
async def test_the_status_is_removed_when_the_run_parks_or_ends(
    live: LiveHarness, ending: str
) -> None:
    work = await live.running()
    await live.loop.run_once()
    assert live.status()
    if ending == "question":
        await live.rt.asking.ask(work.lease, QUESTION)
    elif ending == "snooze":
        await live.rt.settlement.outcome(work, Snooze(3600))
    else:
        await live.rt.job_control.cancel(work.number, live.make.owner)
        await live.rt.settlement.release_run(work, "canceled")
    await live.round()
    assert live.status() == ""
    await live.round()
    assert live.count(STATUS) == 2, "set once, and removed once"


async def test_a_message_in_the_thread_removes_the_status_until_the_next_round(
    live: LiveHarness,
) -> None:
    work = await live.running()
    await live.loop.run_once()
    await live.later(1)
    await live.rt.outbox.notify(work.lease, "n", (), "half way")
    await live.deliver(work.number)
    assert live.status() == ""
    await live.round()
    assert live.status()


async def test_a_killed_bot_leaves_a_status_for_two_minutes_at_most(live: LiveHarness) -> None:
    work = await live.running()
    await live.loop.run_once()
    await live.rt.settlement.outcome(work, Done({}))
    await live.later(STATUS_LIFE)
    assert live.status() == ""
    await live.round(loop=live.bot())
    assert live.count(STATUS) == 1, "an expired status needs no call"


async def test_only_one_of_two_processes_sets_the_status(
    live: LiveHarness, conn: Connection
) -> None:
    await live.running()
    live.slack.faults.next(STATUS, Fault.SLOW(0.3))
    await asyncio.gather(live.loop.run_once(), live.bot().run_once(), live.bot().run_once())
    assert live.count(STATUS) == 1
    assert await value(conn, "SELECT count(*) FROM draftsman.live_threads") == 1


async def test_a_process_that_died_is_followed_by_another_after_its_lease(
    live: LiveHarness, conn: Connection
) -> None:
    await live.running()
    await live.loop._live.claim(10, LEASE)
    await live.round(LEASE - 5)
    assert live.status() == ""
    await live.round(6)
    assert live.status()


@pytest.mark.parametrize(
    ("code", "bucket"),
    [
        ("method_not_supported_for_channel_type", "slack#assistant.threads.setStatus:{room}"),
        ("an_unknown_error", "slack#assistant.threads.setStatus:{room}"),
        ("missing_scope", "slack#assistant.threads.setStatus"),
        ("unknown_method", "slack#assistant.threads.setStatus"),
    ],
)
async def test_a_refusal_turns_the_status_off_and_no_delivery_fails(
    live: LiveHarness, conn: Connection, code: str, bucket: str
) -> None:
    live.slack.faults.next(STATUS, error(code), times=9)
    first = await live.running()
    await live.loop.run_once()
    for _ in range(3):
        await live.round(RENEWAL)
    assert live.slack.faults.left == 8, "asked once"
    paused = "SELECT bucket, reason FROM draftsman.channel_limits WHERE reason IS NOT NULL"
    [(name, reason)] = await rows(conn, paused)
    assert (name, code in reason) == (bucket.format(room=live.room), True)
    assert code in "\n".join(live.health.notes.values())
    assert live.health.ready
    await live.rt.settlement.outcome(first, Done({"summary": "done"}))
    await live.deliver(first.number)
    await live.round()
    assert await value(conn, "SELECT count(*) FROM draftsman.live_threads") == 0
    dead = "SELECT count(*) FROM draftsman.deliveries WHERE status = 'dead_letter'"
    assert await value(conn, dead) == 0


@pytest.mark.parametrize("code", ["invalid_thread_ts", "channel_not_found", "is_archived"])
async def test_a_deleted_card_turns_the_status_off_in_its_thread_only(
    live: LiveHarness, code: str
) -> None:
    live.slack.faults.next(STATUS, error(code))
    await live.running()
    await live.loop.run_once()
    await live.round(RENEWAL)
    assert live.count(STATUS) == 0
    other = await live.running()
    await live.round()
    assert live.count(STATUS) == 1
    assert other.number


async def test_rate_limit_of_slack_is_respected_by_all_processes(live: LiveHarness) -> None:
    live.slack.faults.next(STATUS, Fault.RATE_LIMIT(30))
    await live.running()
    await live.loop.run_once()
    other = live.bot()
    await live.round(20, other)
    assert live.count(STATUS) == 0
    await live.round(11, other)
    assert live.status()


async def test_an_outage_of_slack_only_delays_the_status(
    live: LiveHarness, conn: Connection
) -> None:
    await live.running()
    for fault in (Fault.DROP_BEFORE, Fault.HTML_503, Fault.DROP_AFTER, error("internal_error")):
        live.slack.faults.next(STATUS, fault)
    for _ in range(4):
        await live.round(61)
    assert live.count(STATUS) == 1, "the call whose reply was lost"
    await live.round()
    assert live.status()
    assert live.health.problems == {}
