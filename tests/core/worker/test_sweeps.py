"""Sweeps promote due jobs, in batches, run by the leader or by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from draftsman.database.database import Connection, Database
from draftsman.errors import NotPermitted, UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import jobs
from draftsman.questions.question import OnExpire
from draftsman.questions.store import questions
from draftsman.runtime import Runtime, wire
from draftsman.settings import Settings
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.support.statements import rows, run


async def _statuses(rt: Runtime, numbers: Sequence[int]) -> list[Status]:
    return [(await rt.read_model.job(number)).status for number in numbers]


async def test_due_jobs_are_queued_or_resumed(make: Factory, rt: Runtime, clock: Clock) -> None:
    due = await make.scheduled(delay=60)
    later = await make.scheduled(delay=600)
    paused = await make.paused(60)
    retrying = await make.retrying()
    await clock.forward(300)
    assert [await rt.promotion.promote(LeaderTerm()) for _ in range(2)] == [3, 0]
    assert await _statuses(rt, [due, later, paused, retrying]) == [
        Status.QUEUED,
        Status.SCHEDULED,
        Status.RESUMED,
        Status.QUEUED,
    ]
    kinds = [
        (await rt.read_model.job_events(number))[-1].kind for number in (due, paused, retrying)
    ]
    assert kinds == ["job_promoted", "job_woken", "job_retried"]


async def test_a_job_due_now_is_promoted(make: Factory, conn: Connection) -> None:
    await make.scheduled()
    async with conn.transaction():
        await run(conn, "UPDATE draftsman.job_states SET run_at = draftsman.now()")
        assert await jobs.promote(conn, LeaderTerm(), 100) == 1


async def test_a_promoted_job_can_be_claimed_and_forgets_its_retry_time(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    number = await make.retrying()
    await clock.forward(300)
    await rt.promotion.promote(LeaderTerm())
    job = await rt.read_model.job(number)
    assert (job.next_retry_at, job.queued_at) == (None, job.updated_at)
    assert await rt.settlement.outcome(await make.running(number), Done()) is Status.COMPLETED


async def test_a_sweep_is_bounded_and_takes_the_oldest_first(
    make: Factory, settings: Settings, db: Database, clock: Clock
) -> None:
    sweeps = settings.sweeps.model_copy(update={"limit": 2})
    rt = wire(settings.model_copy(update={"sweeps": sweeps}), db, False)
    numbers = [await make.scheduled(delay=100 - n) for n in range(5)]
    await clock.forward(200)
    assert await rt.promotion.promote(LeaderTerm()) == 2
    assert await _statuses(rt, numbers) == [Status.SCHEDULED] * 3 + [Status.QUEUED] * 2
    assert [await rt.promotion.promote(LeaderTerm()) for _ in range(3)] == [2, 1, 0]


async def test_rows_locked_by_another_transaction_are_skipped(
    make: Factory, rt: Runtime, db: Database, clock: Clock
) -> None:
    held = await make.scheduled(delay=10)
    free = await make.scheduled(delay=20)
    await clock.forward(60)
    async with db.transaction() as other:
        await other.execute(
            "SELECT 1 FROM draftsman.job_states WHERE number = %s FOR NO KEY UPDATE", (held,)
        )
        assert await rt.promotion.promote(LeaderTerm()) == 1
    assert await _statuses(rt, [held, free]) == [Status.SCHEDULED, Status.QUEUED]


async def test_the_next_due_time_is_the_earliest_of_all(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    assert await rt.sweeps.next_due() is None
    await make.queued()
    assert await rt.sweeps.next_due() is None
    for seconds in (5000, 500):
        await make.scheduled(delay=seconds)
    assert await rt.sweeps.next_due() == pytest.approx(500, abs=5)
    await make.asked(QUESTION.model_copy(update={"expires_in": 50.0}))
    assert await rt.sweeps.next_due() == pytest.approx(25, abs=5), "a reminder at half of its time"
    await make.retrying()
    assert (await rt.sweeps.next_due() or 99) < 5
    await clock.forward(100)
    assert (await rt.sweeps.next_due() or 0) < -40


async def test_a_question_without_further_reminders_is_due_at_its_deadline(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.asked(QUESTION.model_copy(update={"expires_in": 100.0}))
    await clock.forward(95)
    await rt.sweeps.run("remind", LeaderTerm())
    assert await rt.sweeps.next_due() == pytest.approx(5, abs=4)


async def test_claimable_jobs_are_announced_once_a_queue(
    make: Factory, rt: Runtime, conn: Connection, clock: Clock
) -> None:
    """A single notification for each queue and statement, however many jobs it moved."""
    for _ in range(3):
        await make.scheduled(delay=10, queue="a")
    await make.scheduled(delay=10, queue="b")
    await clock.forward(60)
    await run(conn, "LISTEN draftsman_jobs")
    await rt.promotion.promote(LeaderTerm())
    payloads = [notice.payload async for notice in conn.notifies(timeout=5, stop_after=2)]
    assert sorted(payloads) == ["a", "b"]


@pytest.mark.parametrize(
    "name", ["expire", "remind", "promote", "schedules", "rescue", "deregister", "partitions"]
)
async def test_an_operator_can_run_a_sweep_manually(rt: Runtime, people: People, name: str) -> None:
    assert await rt.sweeps.run_now(name, people.olga) == 0
    for actor in (people.anna, people.ben, people.carol):
        with pytest.raises(NotPermitted, match="may not sweep"):
            await rt.sweeps.run_now(name, actor)


async def test_an_unknown_sweep_is_refused_with_the_known_sweeps(
    rt: Runtime, people: People
) -> None:
    with pytest.raises(UsageError, match=f"choose: {', '.join(rt.sweeps.names)}$"):
        await rt.sweeps.run_now("broom", people.olga)


async def test_a_manual_sweep_does_the_same_as_the_leader(
    make: Factory, rt: Runtime, people: People, clock: Clock
) -> None:
    number = await make.scheduled(delay=10)
    await clock.forward(60)
    assert await rt.sweeps.run_now("promote", people.olga) == 1
    assert await _statuses(rt, [number]) == [Status.QUEUED]


async def test_a_sweep_keeps_the_invariants(
    make: Factory, rt: Runtime, conn: Connection, clock: Clock
) -> None:
    for status in Status:
        await make.job_in(status)
    await clock.forward(100_000)
    for name in rt.sweeps.names:
        await rt.sweeps.run(name, LeaderTerm())
    statuses = await rows(conn, "SELECT DISTINCT status::text FROM draftsman.jobs ORDER BY 1")
    assert {"claimed", "running", "waiting_for_input", "waiting_for_approval"} & {
        status for (status,) in statuses
    } == set()
    assert not any((await rt.read_model.invariants()).values())


async def test_a_sweep_is_repeated_until_nothing_is_due(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    few = rt.settings.model_copy(
        update={"sweeps": rt.settings.sweeps.model_copy(update={"limit": 2})}
    )
    numbers = [await make.scheduled(delay=60) for _ in range(5)]
    await clock.forward(61)
    sweeps = wire(few, rt.db, False).sweeps
    assert await sweeps.run("promote", LeaderTerm()) == 5
    assert await _statuses(rt, numbers) == [Status.QUEUED] * 5


async def test_expired_questions_are_escalated_before_any_is_closed(
    make: Factory, rt: Runtime, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each statement passes the questions of the other: in turn, they would pass them each time."""
    passes: list[tuple[str, int]] = []

    def noted(name: str) -> Callable[..., Awaitable[int]]:
        statement = getattr(questions, name)

        async def run(*values: Any) -> int:
            passes.append((name, await statement(*values)))
            return passes[-1][1]

        return run

    for name in ("escalate", "expire"):
        monkeypatch.setattr(questions, name, noted(name))
    closing = QUESTION.model_copy(update={"expires_in": 60.0})
    escalation = {"on_expire": OnExpire.ESCALATE, "escalate_to": "ben"}
    for question in [closing, closing.model_copy(update=escalation)] * 3:
        await make.asked(question)
    await clock.forward(61)
    few = rt.settings.model_copy(
        update={"sweeps": rt.settings.sweeps.model_copy(update={"limit": 2})}
    )
    assert await wire(few, rt.db, False).sweeps.run("expire", LeaderTerm()) == 6
    assert passes == [("escalate", 2), ("escalate", 1), ("expire", 2), ("expire", 1)]
