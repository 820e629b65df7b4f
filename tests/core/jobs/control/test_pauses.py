"""Pauses of jobs: nothing claims a paused job, and it continues from its checkpoint."""

from __future__ import annotations

from typing import Any, Final

import pytest

from draftsman.database.database import Connection
from draftsman.database.sentences import sentence
from draftsman.deliveries.store import deliveries
from draftsman.errors import NotPermitted, Refused, UsageError
from draftsman.jobs.job import Source, Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.worker.workers import (
    BlockingHandler,
    event_kinds,
    running_worker,
    wait_for_end,
    wait_for_status,
)
from tests.support.limits import check_places, placed, set_limits, waiting
from tests.support.statements import rows, run

S: Final = Status


async def claimed(rt: Runtime, make: Factory, queue: str) -> list[int]:
    claim = rt.claim(make.worker, (queue,))
    found = await claim.exchange([], types=["noop"], free=5, ahead=0)
    return [job.number for job in found]


@pytest.mark.parametrize("fields", [{}, {"concurrency_key": "k"}], ids=["plain", "key"])
async def test_a_paused_job_is_not_claimed_until_it_is_resumed(
    rt: Runtime, make: Factory, fields: dict[str, Any]
) -> None:
    number = await make.queued(queue="q", **fields)
    other = await make.queued(queue="q")
    assert (await rt.job_control.pause(number, make.owner, "wait")).status is S.QUEUED
    assert await claimed(rt, make, "q") == [other]
    why = await rt.read_model.why(number)
    assert why.reason == "paused"
    assert why.text.endswith("by root: wait")
    assert why.next_step == f"to resume it: draftsman resume D-{number}"
    (row,) = [job for job in await rt.read_model.jobs() if job.number == number]
    assert row.hold == "paused"
    await rt.job_control.resume(number, make.owner)
    assert await claimed(rt, make, "q") == [number]
    assert "job_paused" in await event_kinds(rt, number)
    assert "job_unpaused" in await event_kinds(rt, number)


async def test_the_targets_of_a_job_are_notified_of_its_pause(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    number = await make.queued(notify=["log"])
    for _ in range(2):
        await rt.job_control.pause(number, make.owner, "wait")
        await rt.job_control.resume(number, make.owner)
    notices = await rows(
        conn,
        "SELECT payload ->> 'sentence', payload -> 'values' FROM draftsman.deliveries"
        " WHERE kind = 'notice' ORDER BY seq",
    )
    assert [sentence(name, values) for name, values in notices] == [
        f"D-{number} was paused by root: wait",
        f"D-{number} was resumed by root",
    ] * 2


async def test_the_status_message_of_a_chat_is_edited_with_a_pause_and_its_end(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.asked(notify=["slack:C1"])
    await run(
        conn,
        "UPDATE draftsman.deliveries SET status = 'sent', external_ref = 'C1:1', sent_at ="
        " draftsman.now(), next_attempt_at = NULL WHERE kind = 'status'",
    )
    query = "SELECT seq FROM draftsman.deliveries WHERE kind = 'status' AND status = 'pending'"
    await rt.job_control.pause(work.number, make.owner, "the API\nis down")
    ((seq,),) = await rows(conn, query)
    facts = await deliveries.message_facts(conn, seq)
    assert (facts.paused_by, facts.pause_reason) == ("cli:root", "the API\nis down")
    await rt.job_control.resume(work.number, make.owner)
    assert await rows(conn, query) == [(seq,)]
    assert (await deliveries.message_facts(conn, seq)).pause_reason is None


async def test_an_answer_to_a_paused_job_is_accepted_and_starts_nothing(
    rt: Runtime, make: Factory
) -> None:
    work = await make.asked(queue="q")
    await rt.job_control.pause(work.number, make.owner, "wait")
    assert f"{work.name}/1 needs an answer" in (await rt.read_model.why(work.number)).text
    assert (await make.answer(work.number, "red")).accepted
    assert (await rt.read_model.job(work.number)).status is S.RESUMED
    assert await claimed(rt, make, "q") == []
    await rt.job_control.resume(work.number, make.owner)
    assert await claimed(rt, make, "q") == [work.number]


async def test_a_paused_job_that_becomes_due_is_not_claimed(rt: Runtime, make: Factory) -> None:
    number = await make.retrying(queue="q")
    await rt.job_control.pause(number, make.owner, "wait")
    await make.due(number)
    assert await claimed(rt, make, "q") == []
    await rt.job_control.resume(number, make.owner)
    assert await claimed(rt, make, "q") == [number]


async def test_a_running_job_is_parked_and_continues_after_its_pause(
    rt: Runtime, make: Factory
) -> None:
    handler = BlockingHandler()
    number = await make.queued(queue="q")
    async with running_worker(rt, {"noop": handler}, queues=("q",)):
        first = await handler.next()
        await first.checkpoint({"at": 1})
        await rt.job_control.pause(number, make.owner, "wait")
        await wait_for_status(rt, number, S.RESUMED)
        assert (await rt.read_model.job(number)).attempts == 0
        assert (await rt.read_model.why(number)).reason == "paused"
        await rt.job_control.resume(number, make.owner)
        second = await handler.next()
        assert (second.job.run, await second.saved()) == (2, {"at": 1})
        handler.go.set()
        assert (await wait_for_end(rt, number)).status is S.COMPLETED


async def test_a_paused_job_can_be_canceled_and_leaves_no_pause(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    number = await make.queued(queue="q")
    await rt.job_control.pause(number, make.owner, "wait")
    result = await rt.job_control.cancel(number, make.owner)
    assert result.status is S.CANCELED
    await rt.queues.hold()
    assert await rows(conn, "SELECT job FROM draftsman.job_pauses") == []


async def test_refusals_of_a_pause(rt: Runtime, make: Factory, people: People) -> None:
    number = await make.queued()
    with pytest.raises(NotPermitted, match="may not pause or resume jobs"):
        await rt.job_control.pause(number, people.on(Source.CLI, "ben"), "wait")
    with pytest.raises(UsageError, match="a pause needs a reason"):
        await rt.job_control.pause(number, make.owner, " ")
    with pytest.raises(Refused, match="is not paused"):
        await rt.job_control.resume(number, make.owner)
    await rt.job_control.pause(number, make.owner, "wait")
    with pytest.raises(Refused, match="is already paused"):
        await rt.job_control.pause(number, make.owner, "again")
    ended = await make.canceled()
    with pytest.raises(Refused, match="is already canceled; nothing to pause"):
        await rt.job_control.pause(ended, make.owner, "wait")


async def test_a_paused_job_gives_its_place_to_others_and_asks_for_it_again(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, type={"noop": {"running": 1}})
    first = await make.queued(queue="q")
    second = await make.queued(queue="q")
    assert await placed(conn) == [first]
    await rt.job_control.pause(first, make.owner, "wait")
    assert (await placed(conn), await waiting(conn)) == ([second], {first: "pause"})
    assert await claimed(rt, make, "q") == [second]
    await rt.job_control.resume(first, make.owner)
    assert await waiting(conn) == {first: "type:noop"}
    await rt.job_control.cancel(second, make.owner, force=True)
    assert await placed(conn) == [first]
    assert await claimed(rt, make, "q") == [first]
    await check_places(rt)
