"""Deliveries of a process that ended or lost its session are sent at once, and once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Final

import pytest

from draftsman.database.database import Connection, Database
from draftsman.deliveries.delivery import Deferred, DeliveryStatus, Receipt, Unconfirmed
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.settings import Settings
from draftsman.settings.notifications import NotificationSettings
from draftsman_testing.factories import Factory
from draftsman_testing.http_server import Reply, Request
from draftsman_testing.outbox import claim, deliveries_of
from draftsman_testing.waits import background, until, wait_blocked
from tests.core.deliveries.outbox.chaos import DispatcherProcesses
from tests.core.deliveries.outbox.chat_harness import CHAT, ChatHarness
from tests.support.chat import ChatChannel
from tests.support.statements import run, value

TIMEOUT: Final = 2.0
"""Seconds of a call; its sender abandons it at half of them."""
LEASE: Final = 3600.0
"""Seconds that a killed process would hold its claims."""
GONE: Final = 2**31 - 1
"""The id of a free session lock."""
ENDS: Final = "SELECT call_ends_at FROM draftsman.deliveries"
Start = Callable[[], Awaitable[None]]


@pytest.fixture
async def processes(rt: Runtime, chat: ChatHarness) -> AsyncIterator[DispatcherProcesses]:
    """Give processes that deliver to the chat, as bots do."""
    arguments = [rt.db.url, chat.url, str(TIMEOUT), str(LEASE), "5"]
    started = DispatcherProcesses("tests.core.deliveries.outbox.dispatch", arguments)
    yield started
    await started.stop()


@pytest.fixture
def short_lease_settings(settings: Settings) -> Settings:
    notifications = NotificationSettings(
        base_delay=0.01, max_delay=0.02, timeout=TIMEOUT, lease=LEASE, poll=0.05
    )
    return settings.model_copy(update={"notifications": notifications})


@pytest.fixture
async def successor(
    rt: Runtime, chat: ChatHarness, short_lease_settings: Settings
) -> AsyncIterator[Start]:
    """Return a function that starts a second process's dispatcher in this process."""
    async with AsyncExitStack() as stack:

        async def start() -> None:
            db = Database(rt.db.url, short_lease_settings.database, enums=ENUMS)
            await db.open()
            stack.push_async_callback(db.close)
            channel = ChatChannel(chat.url, timeout=TIMEOUT)
            process = wire(short_lease_settings, db, False).delivery_process([channel])
            running = await stack.enter_async_context(background(process.run()))

            async def end() -> None:
                process.stop.set()
                await running

            stack.push_async_callback(end)

        yield start


async def shown_once(rt: Runtime, chat: ChatHarness, number: int) -> None:
    await chat.quiet(number)
    (delivery,) = await deliveries_of(rt, number)
    assert delivery.status is DeliveryStatus.SENT
    assert list(chat.chat.seen().values()) == [1]


async def test_a_delivery_killed_before_its_call_is_sent_without_a_search(
    make: Factory, rt: Runtime, chat: ChatHarness, processes: DispatcherProcesses, successor: Start,
    conn: Connection,
) -> None:  # fmt: skip
    paths: list[str] = []

    async def note(request: Request) -> bool:
        paths.append(request.path)
        return True

    chat.rule = note
    await run(conn, "INSERT INTO draftsman.channel_limits (bucket) VALUES ('slack#post')")
    number = await make.queued(**CHAT)
    async with rt.db.transaction() as holder:
        await holder.execute("SELECT FROM draftsman.channel_limits FOR UPDATE")
        await processes.start()
        await wait_blocked(conn, by=holder.info.backend_pid)
        await processes.kill_one()
        await successor()
        await shown_once(rt, chat, number)
    assert paths == ["/post"]


async def test_a_delivery_killed_during_its_call_is_searched_for_until_the_call_times_out(
    make: Factory, rt: Runtime, chat: ChatHarness, processes: DispatcherProcesses, successor: Start
) -> None:
    """The chat shows the message of the dead process after the first search."""
    paths: list[str] = []
    arrived = asyncio.Event()
    late = asyncio.Event()

    async def slow(request: Request) -> bool:
        paths.append(request.path)
        if paths == ["/post"]:
            arrived.set()
            await late.wait()
        return True

    async def searched(request: Request) -> Reply | bool:
        found = await slow(request)
        if request.path == "/find" and not late.is_set():
            reply = await chat.chat.answer(request)
            late.set()
            return reply
        return found

    chat.rule = searched
    number = await make.queued(**CHAT)
    await processes.start()
    await arrived.wait()
    await processes.kill_one()
    await successor()
    await shown_once(rt, chat, number)
    assert paths == ["/post", "/find", "/find"]


async def test_a_delivery_killed_in_a_lost_call_is_sent_after_its_timeout(
    make: Factory, rt: Runtime, chat: ChatHarness, processes: DispatcherProcesses, successor: Start
) -> None:
    paths: list[str] = []
    arrived = asyncio.Event()

    async def lost(request: Request) -> bool | None:
        paths.append(request.path)
        arrived.set()
        if paths == ["/post"]:
            await asyncio.Event().wait()
        return True

    chat.rule = lost
    number = await make.queued(**CHAT)
    await processes.start()
    await arrived.wait()
    await processes.kill_one()
    await successor()
    await shown_once(rt, chat, number)
    assert paths == ["/post", "/find", "/find", "/post"]


async def test_a_sender_without_a_session_starts_no_call_for_a_rescued_delivery(
    make: Factory, rt: Runtime, chat: ChatHarness, conn: Connection
) -> None:
    number = await make.queued(**CHAT)
    (first_claim,) = await claim(rt, "slack", sender=GONE)
    assert await rt.delivery_sender.rescue(["log"]) == 0, "another channel"
    assert await rt.delivery_sender.rescue(["slack"]) == 1
    (second_claim,) = await claim(rt, "slack", sender=GONE)
    assert (second_claim.seq, second_claim.in_doubt, second_claim.call_left) == (
        first_claim.seq,
        False,
        0,
    )
    channel = ChatChannel(chat.url)
    try:
        assert await rt.delivery_sender.send(first_claim, channel) == Deferred(0.0, limited=False)
        assert await rt.delivery_sender.record(first_claim, Deferred(0.0, limited=False)) is None
        assert chat.chat.posts == {}
        sent = await rt.delivery_sender.send(second_claim, channel)
        assert await rt.delivery_sender.record(second_claim, sent) is DeliveryStatus.SENT
    finally:
        await channel.close()
    assert (await deliveries_of(rt, number))[0].attempts == 2


async def test_a_sender_without_a_session_ends_the_call_that_its_successor_waits_for(
    make: Factory, rt: Runtime, chat: ChatHarness, short_lease_settings: Settings, conn: Connection
) -> None:
    """A partition: its session is gone, the process lives, and its call hangs."""
    arrived = asyncio.Event()

    async def hang(request: Request) -> bool:
        arrived.set()
        await asyncio.Event().wait()
        return True

    chat.rule = hang
    await make.queued(**CHAT)
    deliver = wire(short_lease_settings, rt.db, False).delivery_sender
    channel = ChatChannel(chat.url, timeout=60)
    (first_claim,) = await deliver.claim("slack", free=1, share=1, sender=GONE)
    try:
        async with background(deliver.send(first_claim, channel)) as sending:
            await arrived.wait()
            assert await deliver.rescue(["slack"]) == 1
            (second_claim,) = await deliver.claim("slack", free=1, share=1, sender=GONE)
            assert second_claim.in_doubt
            assert TIMEOUT / 2 < second_claim.call_left <= TIMEOUT
            outcome = await sending
        assert outcome == Unconfirmed("the lease could not be renewed")
        remaining = await value(
            conn,
            "SELECT extract(epoch FROM call_ends_at - draftsman.now())::float8"
            " FROM draftsman.deliveries",
        )
        assert remaining > 0, "its last call has time to arrive"
    finally:
        await channel.close()


async def test_the_lease_of_a_call_is_renewed_while_it_lasts(
    make: Factory, rt: Runtime, chat: ChatHarness, short_lease_settings: Settings, conn: Connection
) -> None:
    arrived = asyncio.Event()
    go = asyncio.Event()

    async def slow(_: Request) -> bool:
        arrived.set()
        await go.wait()
        return True

    chat.rule = slow
    await make.queued(**CHAT)
    deliver = wire(short_lease_settings, rt.db, False).delivery_sender
    channel = ChatChannel(chat.url, timeout=60)
    (item,) = await deliver.claim("slack", free=1, share=1)
    try:
        async with background(deliver.send(item, channel)) as sending:
            await arrived.wait()
            first = await value(conn, ENDS)

            async def renewed() -> bool:
                return bool(await value(conn, ENDS) - first > timedelta(seconds=TIMEOUT))

            await until(renewed, "a call that outlasts its first lease")
            go.set()
            assert isinstance(await sending, Receipt)
    finally:
        await channel.close()


async def test_a_delivery_of_a_live_session_is_not_rescued(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    await make.queued(**CHAT)
    await run(conn, "SELECT pg_advisory_lock(1146242644, 77)")
    await claim(rt, "slack", sender=77)
    assert await rt.delivery_sender.rescue(["slack"]) == 0
    await run(conn, "SELECT pg_advisory_unlock(1146242644, 77)")
    assert await rt.delivery_sender.rescue(["slack"]) == 1


async def test_a_delivery_claimed_without_a_session_is_rescued_after_its_lease(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    await make.queued(**CHAT)
    await claim(rt, "slack")
    assert await rt.delivery_sender.rescue(["slack"]) == 0
    await run(conn, "UPDATE draftsman.deliveries SET next_attempt_at = draftsman.now()")
    (item,) = await claim(rt, "slack")
    assert item.in_doubt, "it is unknown whether it began a call"
