"""Events of a pager that arrive twice, or in the wrong order, at the same time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_bots.pagers.records.pager_event import PagerEvent
from draftsman_bots.pagers.records.service import PagerEvents
from draftsman_testing.factories import Factory
from tests.core.races.conftest import _check_invariants, first
from tests.support.races import FirstSession

__all__ = ["_check_invariants", "first"]
OWNER = Actor("pager", "ops:p1", "Owner", owner=True)


def _events(rt: Runtime) -> PagerEvents:
    return PagerEvents(rt.db, rt.acknowledgments)


async def _event(rt: Runtime, job: int) -> PagerEvent:
    id = (await rt.read_model.job(job)).id
    return PagerEvent("ops", "e1", id, 1, "acknowledged", datetime.now(UTC))


async def _acknowledged(rt: Runtime, job: int) -> int:
    events = await rt.read_model.job_events(job)
    return [event.kind for event in events].count("question_acknowledged")


async def test_an_event_that_is_delivered_twice_at_once_acknowledges_once(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked()
    event = await _event(rt, work.number)
    async with first.doing(_events(first.rt).record(event, OWNER)):
        second = await first.then(_events(rt).record(event, OWNER), conn)
    assert second.startswith("ignored: known")
    assert await _acknowledged(rt, work.number) == 1


async def test_an_older_event_that_waits_for_a_newer_changes_nothing(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked()
    older = await _event(rt, work.number)
    newer = replace(
        older, id="e2", kind="reopened", occurred_at=older.occurred_at + timedelta(seconds=1)
    )
    async with first.doing(_events(first.rt).record(newer, OWNER)):
        late = await first.then(_events(rt).record(older, OWNER), conn)
    assert late.startswith("ignored: known, or older")
    assert await _acknowledged(rt, work.number) == 0


async def test_an_acknowledgment_that_waits_for_the_answer_has_no_effect(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked()
    event = await _event(rt, work.number)
    answering = Factory(first.rt, make.owner).answer(work.number, "red")
    async with first.doing(answering):
        outcome = await first.then(_events(rt).record(event, OWNER), conn)
    assert "already answered" in outcome
