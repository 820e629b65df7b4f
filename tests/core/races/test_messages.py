"""Messages to jobs that are claimed, parked, settled or canceled at the same time."""

from __future__ import annotations

from typing import Any, Final

import pytest

from draftsman.database.database import Connection
from draftsman.errors import LeaseLost, Refused
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from tests.support.races import FirstSession

AGENT: Final[dict[str, Any]] = {"type": "run_agent", "title": "Do it"}


async def test_a_message_before_the_end_of_a_run_is_kept(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running(**AGENT)
    async with first.doing(first.rt.messages.send(work.number, make.owner, "x")) as m:
        status = await first.then(rt.settlement.outcome(work, Done()), conn)
    assert (m.result().status, status) == (Status.RUNNING, Status.COMPLETED)
    (message,) = await rt.run_messages.undelivered(work.number)
    assert message.text == "x"


async def test_a_message_after_the_end_of_a_run_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running(**AGENT)
    async with first.doing(first.rt.settlement.outcome(work, Done())):
        with pytest.raises(Refused, match="is completed, and takes no more messages"):
            await first.then(rt.messages.send(work.number, make.owner, "x"), conn)
    assert await rt.messages.of_job(work.number) == []


async def test_a_message_waits_for_the_question_and_is_for_the_next_run(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running(**AGENT)
    async with first.doing(first.rt.asking.ask(work.lease, QUESTION)):
        sent = await first.then(rt.messages.send(work.number, make.owner, "x"), conn)
    assert sent.status is Status.WAITING_FOR_INPUT


async def test_a_message_waits_for_the_claim_and_is_for_its_run(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.queued(queue="q", **AGENT)
    claim = first.rt.claim(make.worker, ("q",))
    async with first.doing(claim.exchange([], types=["run_agent"], free=1, ahead=0)):
        sent = await first.then(rt.messages.send(number, make.owner, "x"), conn)
    assert sent.status is Status.RUNNING


async def test_a_message_after_a_cancel_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running(**AGENT)
    async with first.doing(first.rt.job_control.cancel(work.number, make.owner)):
        with pytest.raises(Refused, match="is being canceled"):
            await first.then(rt.messages.send(work.number, make.owner, "x"), conn)


async def test_the_same_message_at_once_is_a_single_message(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.queued(**AGENT)
    send = first.rt.messages.send(number, make.owner, "x", event="e")
    async with first.doing(send) as sent:
        again = await first.then(rt.messages.send(number, make.owner, "x", event="e"), conn)
    assert (sent.result().message, again.message, again.created) == (1, 1, False)


async def test_a_lost_run_cannot_record_a_delivery(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running(**AGENT)
    await rt.messages.send(work.number, make.owner, "x")
    async with first.doing(first.rt.settlement.release_run(work, "shutdown")):
        with pytest.raises(LeaseLost):
            await first.then(
                rt.run_messages.deliver_with_checkpoint(work.lease, [1], {}, None), conn
            )
    (message,) = await rt.run_messages.undelivered(work.number)
    assert message.run is None
