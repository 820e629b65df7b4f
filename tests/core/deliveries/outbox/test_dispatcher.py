"""The dispatcher: attempts, waits for slow targets, and shutdown."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from draftsman.channels import ChannelName
from draftsman.database.database import Connection
from draftsman.deliveries.delivery import ClaimedDelivery, DeliveryStatus, Unconfirmed
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman.errors import Failure
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.http_server import Reply, Request
from draftsman_testing.outbox import FAST, claim, deliveries_of, kinds_and_statuses, running
from draftsman_testing.waits import until
from tests.core.deliveries.outbox.chat_harness import CHAT, ChatHarness
from tests.support.chat import ChatChannel
from tests.support.clock import Clock
from tests.support.statements import rows, run


async def test_the_last_attempt_is_final_and_reported_to_the_fallback_target(
    make: Factory,
    rt: Runtime,
    chat: ChatHarness,
    caplog: pytest.LogCaptureFixture,
    conn: Connection,
) -> None:
    caplog.set_level(logging.ERROR)

    async def refuse(_: Request) -> Reply:
        return Reply(400)

    chat.rule = refuse
    title = "Tidy up, token=hunter2hunter2"
    number = await make.queued(title=title, **CHAT)
    await chat.open(fallback="log")
    await chat.quiet(number)
    dead, fallback_delivery = await deliveries_of(rt, number)
    assert (dead.status, dead.attempts, dead.last_error) == (
        DeliveryStatus.DEAD_LETTER,
        1,
        "HTTP 400",
    )
    assert (fallback_delivery.channel, fallback_delivery.target, fallback_delivery.original) == (
        "log",
        "log",
        dead.seq,
    )

    async def said() -> bool:  # after the commit, which this test may see first
        return bool(caplog.text)

    await until(said, "a line about the dead-letter delivery")
    assert (
        f"delivery {dead.seq} (status) of D-{number} to {dead.channel}:{dead.target}" in caplog.text
    )
    assert f"HTTP 400; replaced by delivery {fallback_delivery.seq}" in caplog.text
    assert "Tidy up" not in caplog.text
    events = [
        e for e in await rt.read_model.job_events(number) if e.kind == "delivery_dead_lettered"
    ]
    assert [event.payload["delivery"] for event in events] == [dead.seq]
    (item,) = await claim(rt)
    await rt.delivery_sender.record(item, Failure("gone", declared="PERMANENT"))
    assert len(await deliveries_of(rt, number)) == 2, "a fallback has no fallback"
    assert await rt.outbox.dead_letter_count() == 2
    assert (await rows(conn, "SELECT count(*) FROM draftsman.job_targets"))[0][0] == 1


async def test_a_temporary_failure_is_retried_up_to_the_limit(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    async def fail(_: Request) -> Reply:
        return Reply(500)

    chat.rule = fail
    number = await make.queued(**CHAT)
    await chat.open()
    await chat.quiet(number)
    (delivery,) = await deliveries_of(rt, number)
    assert (delivery.status, delivery.attempts, delivery.in_doubt) == (
        DeliveryStatus.DEAD_LETTER,
        4,
        True,
    )


async def test_a_dead_letter_delivery_is_searched_for_and_sent_again_on_request(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    paths: list[str] = []

    async def deny(request: Request) -> Reply | bool:
        paths.append(request.path)
        return Reply(403) if len(paths) == 1 else True

    chat.rule = deny
    number = await make.queued(**CHAT)
    await chat.open()
    await chat.quiet(number)
    (dead,) = await deliveries_of(rt, number)
    assert await rt.outbox.redeliver([dead.seq], make.owner) == [dead.seq]
    await chat.quiet(number)
    assert (await kinds_and_statuses(rt, number), paths) == (
        [("status", "sent")],
        ["/post", "/find", "/post"],
    )
    event = (await rt.read_model.job_events(number))[-1]
    assert (event.kind, event.actor) == ("redelivered", "cli:root")


async def test_a_retry_after_delays_every_process_without_using_an_attempt(
    make: Factory, rt: Runtime, chat: ChatHarness, clock: Clock
) -> None:
    paths: list[str] = []

    async def later(request: Request) -> Reply | bool:
        paths.append(request.path)
        return Reply(429, headers=(("retry-after", "3600"),)) if len(paths) == 1 else True

    chat.rule = later
    first = await make.queued(**CHAT)
    dispatcher = chat.dispatcher()
    async with running(dispatcher):

        async def refused() -> bool:
            return (await deliveries_of(rt, first))[0].last_error == "HTTP 429"

        await until(refused, "the refusal")
    second = await make.queued(**CHAT)
    other = await make.queued(notify=("slack:C2",))
    assert [item.job for item in await claim(rt, "slack")] == [other]
    (delivery,) = await deliveries_of(rt, first)
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.PENDING, 0)
    assert paths == ["/post"]
    due = await rt.delivery_sender.next_due("slack")
    assert due is not None
    assert due <= 60, "the lease of the other delivery"
    await clock.forward(3601, while_in_flight=True)
    assert {item.job for item in await claim(rt, "slack")} == {first, second, other}


async def test_a_rate_limited_delivery_is_not_claimed_before_its_time(
    make: Factory, rt: Runtime, chat: ChatHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def later(_: Request) -> Reply:
        return Reply(429, headers=(("retry-after", "20"),))

    async def note(
        deliver: DeliverySender, channel: ChannelName, **details: Any
    ) -> list[ClaimedDelivery]:
        busy.append(details["busy"])
        return await original(deliver, channel, **details)

    chat.rule = later
    original = DeliverySender.claim
    busy: list[list[str]] = []
    monkeypatch.setattr(DeliverySender, "claim", note)
    number = await make.queued(**CHAT)
    async with running(chat.dispatcher()):

        async def refused() -> bool:
            return (await deliveries_of(rt, number))[0].last_error == "HTTP 429"

        await until(refused, "the refusal")
        before = len(busy)

        async def looked() -> bool:
            return len(busy) > before + 1

        await until(looked, "further claims")
    assert all(targets == ["C1"] for targets in busy[before + 1 :])


async def test_a_hanging_call_delays_no_other_target(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    hanging = asyncio.Event()

    async def hang(request: Request) -> Reply | bool | None:
        if b'"HANGS' in request.body:
            await hanging.wait()
        return True

    chat.rule = hang
    stuck = [await make.queued(notify=("slack:HANGS",)) for _ in range(30)]
    await chat.open()
    number = await make.queued(**CHAT)
    await chat.quiet(number)
    under_way = [
        delivery
        for job in stuck
        for delivery in await deliveries_of(rt, job)
        if delivery.status == "sending"
    ]
    assert len(under_way) <= FAST.per_target * 2 - 1
    hanging.set()
    for job in stuck:
        await chat.quiet(job)


async def test_a_rate_limit_is_shared_by_all_processes(
    make: Factory, rt: Runtime, chat: ChatHarness, conn: Connection
) -> None:
    """Two at once, then another every 0.2 s: each attempt takes a token, or waits for it."""
    numbers = [await make.queued(notify=(f"slack:C{n}",)) for n in range(8)]
    for _ in range(2):
        await chat.open(rate=5)
    for number in numbers:
        await chat.quiet(number)
    ((ahead, attempts),) = await rows(
        conn,
        "SELECT extract(epoch FROM max(l.free_at) - max(d.sent_at))::float8, max(d.attempts)"
        " FROM draftsman.deliveries d CROSS JOIN draftsman.channel_limits l",
    )
    assert ahead <= 0.4, "the last token was taken too early"
    assert attempts == 1, "waiting uses no attempt"


async def test_a_stop_finishes_calls_in_flight_and_claims_no_more(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    arrived = asyncio.Event()
    go = asyncio.Event()

    async def slow(_: Request) -> bool:
        arrived.set()
        await go.wait()
        return True

    chat.rule = slow
    first = await make.queued(**CHAT)
    dispatcher = chat.dispatcher()
    task = asyncio.create_task(dispatcher.run())
    await arrived.wait()
    dispatcher.stop.set()
    second = await make.queued(**CHAT)
    go.set()
    await asyncio.wait_for(task, 10)
    assert await kinds_and_statuses(rt, first) == [("status", "sent")]
    assert await kinds_and_statuses(rt, second) == [("status", "pending")]


async def test_a_broken_channel_leaves_its_delivery_in_doubt(
    make: Factory, rt: Runtime, chat: ChatHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(ChatChannel, "send", broken)
    number = await make.queued(**CHAT)
    await chat.open()
    await chat.quiet(number)
    (delivery,) = await deliveries_of(rt, number)
    assert (delivery.status, delivery.in_doubt) == (DeliveryStatus.DEAD_LETTER, True)
    assert delivery.last_error == "no reply: ValueError: a bug"


async def test_a_process_continues_after_an_outage_of_the_database(
    make: Factory, rt: Runtime, chat: ChatHarness, conn: Connection
) -> None:
    await chat.open()
    await run(
        conn,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    number = await make.queued(**CHAT)
    await chat.quiet(number)
    assert await kinds_and_statuses(rt, number) == [("status", "sent")]


async def test_a_process_suspended_longer_than_its_lease_sends_nothing(
    make: Factory, rt: Runtime, chat: ChatHarness
) -> None:
    await make.queued(**CHAT)
    (item,) = await claim(rt, "slack")
    channel = ChatChannel(chat.url)
    outcome = await rt.delivery_sender.send(item, channel, time.monotonic() - 1)
    await channel.close()
    assert isinstance(outcome, Unconfirmed)
    assert chat.chat.posts == {}
