"""Messages of people to jobs: permissions, limits, duplicates, and retries."""

from __future__ import annotations

from typing import Any, Final

import pytest

from draftsman.database.database import Connection
from draftsman.errors import NotFound, NotPermitted, Refused, UsageError
from draftsman.jobs.control.job_message import MAX_MESSAGES, MAX_TEXT
from draftsman.jobs.job import Source, Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from tests.core.worker.workers import last_event
from tests.support.statements import run

AGENT: Final[dict[str, Any]] = {"type": "run_agent", "title": "Do it"}


async def test_a_message_is_stored_with_its_sender_and_an_event(
    rt: Runtime, make: Factory, people: People
) -> None:
    number = await make.queued(**AGENT)
    ben = people.on("slack", "ben")
    sent = await rt.messages.send(number, ben, " use the v2 API\n")
    assert (sent.message, sent.status, sent.created) == (1, Status.QUEUED, True)
    assert str(sent) == f"message 1 sent to D-{number}: the agent gets it with its next run"
    (stored,) = await rt.messages.of_job(number)
    assert (stored.sender, stored.source, stored.text) == ("ben", "slack", "use the v2 API")
    assert (stored.run, stored.delivered_at) == (None, None)
    event = await last_event(rt, number, "message_sent")
    assert (event.actor, event.payload) == (ben.name, {"message": 1, "text": "use the v2 API"})


async def test_an_event_of_a_channel_is_a_single_message(rt: Runtime, make: Factory) -> None:
    number = await make.queued(**AGENT)
    other = await make.queued(**AGENT)
    send = rt.messages.send
    first = await send(number, make.owner, "one", event="m1")
    again = await send(other, make.owner, "another text", event="m1")
    assert (again.number, again.message, again.created) == (number, first.message, False)
    assert (await send(number, make.owner, "two", event="m2")).message == 2
    assert await rt.messages.of_job(other) == []


async def test_a_job_that_waits_for_an_answer_takes_messages(rt: Runtime, make: Factory) -> None:
    work = await make.asked(QUESTION, **AGENT)
    sent = await rt.messages.send(work.number, make.owner, "use the v2 API")
    assert sent.status is Status.WAITING_FOR_INPUT
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_INPUT


async def test_refusals_say_what_to_do(
    rt: Runtime, make: Factory, people: People, conn: Connection
) -> None:
    send = rt.messages.send
    number = await make.queued(**AGENT)
    with pytest.raises(NotPermitted, match=r"may not send messages to jobs \(needs the role resp"):
        await send(number, people.on(Source.CLI, "carol"), "hello")
    with pytest.raises(UsageError, match="the message is empty"):
        await send(number, make.owner, " \n")
    with pytest.raises(UsageError, match="has 10,001 characters; the maximum is 10,000"):
        await send(number, make.owner, "x" * (MAX_TEXT + 1))
    with pytest.raises(NotFound):
        await send(10**6, make.owner, "hello")
    with pytest.raises(Refused, match="is a job of type noop, which has no agent"):
        await send(await make.queued(), make.owner, "hello")
    await rt.job_control.cancel(number, make.owner)
    with pytest.raises(Refused, match="is canceled, and takes no more messages") as refused:
        await send(number, make.owner, "hello")
    assert str(refused.value.hint) == f"to continue its work: draftsman retry D-{number}"
    full = await make.queued(**AGENT)
    await run(
        conn,
        "INSERT INTO draftsman.job_messages (job, ordinal, source, source_event_id, sender_id,"
        f" sender, text) VALUES ({full}, {MAX_MESSAGES}, 'cli', 'e', 'a', 'a', 'x')",
    )
    with pytest.raises(Refused, match="has 200 messages, the maximum"):
        await send(full, make.owner, "hello")


async def test_a_retry_gets_the_messages_that_were_not_delivered(
    rt: Runtime, make: Factory
) -> None:
    work = await make.running(**AGENT)
    for text in ("one", "two", "three"):
        await rt.messages.send(work.number, make.owner, text)
    await rt.run_messages.deliver_with_checkpoint(work.lease, [2], {}, None)
    await rt.job_control.cancel(work.number, make.owner, force=True)
    retry = await rt.job_control.retry(work.number, make.owner)
    again = await rt.job_control.retry(work.number, make.owner)
    assert again.number == retry.number
    messages = await rt.messages.of_job(retry.number)
    assert [(item.ordinal, item.text) for item in messages] == [(1, "one"), (2, "three")]
    assert {item.delivered_at for item in messages} == {None}
