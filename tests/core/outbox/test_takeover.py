"""The deliveries of a process that ended, or lost its session, go out at once, and once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Final

import pytest

from draftsman.domain.messages.delivery import (
    ChannelName,
    Deferred,
    DeliveryStatus,
    Receipt,
    Unconfirmed,
)
from draftsman.runtime import Runtime, wire
from draftsman.settings import NotificationSettings, Settings
from draftsman.store.postgres.database import Connection, Database
from tests.core.outbox.chaos import DispatcherProcesses
from tests.core.outbox.chat_harness import CHAT, ChatHarness
from tests.core.outbox.rows import claim, deliveries_of
from tests.factories import Factory
from tests.support.chat import ChatChannel
from tests.support.http_server import Reply, Request
from tests.support.statements import run, value
from tests.support.waits import background, until, wait_blocked

TIMEOUT: Final = 2.0
"""Seconds of a call, which is given up at half of it."""
LEASE: Final = 3600.0
"""Seconds that a killed process would hold its claims."""
GONE: Final = 2**31 - 1
"""The number of a free session lock."""
ENDS: Final = "SELECT call_ends_at FROM draftsman.deliveries"
Start = Callable[[], Awaitable[None]]


@pytest.fixture
async def processes(rt: Runtime, desk: ChatHarness) -> AsyncIterator[DispatcherProcesses]:
    """Give processes that deliver to the chat, as bots do."""
    arguments = [rt.db.url, desk.url, str(TIMEOUT), str(LEASE), "5"]
    started = DispatcherProcesses("tests.core.outbox.dispatch", arguments)
    yield started
    await started.stop()


@pytest.fixture
def told_settings(settings: Settings) -> Settings:
    notifications = NotificationSettings(
        base_delay=0.01, max_delay=0.02, timeout=TIMEOUT, lease=LEASE, poll=0.05
    )
    return settings.model_copy(update={"notifications": notifications})


@pytest.fixture
async def successor(
    rt: Runtime, desk: ChatHarness, told_settings: Settings
) -> AsyncIterator[Start]:
    """Return a function that starts a second process's dispatcher in this process."""
    async with AsyncExitStack() as stack:

        async def start() -> None:
            db = Database(rt.db.url, told_settings.database)
            await db.open()
            stack.push_async_callback(db.close)
            channel = ChatChannel(desk.url, timeout=TIMEOUT)
            mailroom = wire(told_settings, db, False).delivery_process([channel])
            running = await stack.enter_async_context(background(mailroom.run()))

            async def end() -> None:
                mailroom.stop()
                await running

            stack.push_async_callback(end)

        yield start


async def shown_once(rt: Runtime, desk: ChatHarness, number: int) -> None:
    await desk.quiet(number)
    (delivery,) = await deliveries_of(rt, number)
    assert delivery.status is DeliveryStatus.SENT
    assert list(desk.chat.seen().values()) == [1]


async def test_a_delivery_killed_before_its_call_is_sent_without_a_search(
    make: Factory, rt: Runtime, desk: ChatHarness, processes: DispatcherProcesses, successor: Start,
    conn: Connection,
) -> None:  # fmt: skip
    asked: list[str] = []

    async def note(request: Request) -> bool:
        asked.append(request.path)
        return True

    desk.rule = note
    await run(conn, "INSERT INTO draftsman.channel_limits (bucket) VALUES ('slack#post')")
    number = await make.queued(**CHAT)
    async with rt.db.transaction() as holder:
        await holder.execute("SELECT FROM draftsman.channel_limits FOR UPDATE")
        await processes.start()
        await wait_blocked(conn, by=holder.info.backend_pid)
        await processes.kill_one()
        await successor()
        await shown_once(rt, desk, number)
    assert asked == ["/post"]


async def test_a_delivery_killed_during_its_call_is_searched_for_until_the_call_times_out(
    make: Factory, rt: Runtime, desk: ChatHarness, processes: DispatcherProcesses, successor: Start
) -> None:
    """The chat shows the message of the dead process after the first search."""
    asked: list[str] = []
    came, late = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> bool:
        asked.append(request.path)
        if asked == ["/post"]:
            came.set()
            await late.wait()
        return True

    async def searched(request: Request) -> Reply | bool:
        found = await slow(request)
        if request.path == "/find" and not late.is_set():
            reply = await desk.chat.answer(request)
            late.set()
            return reply
        return found

    desk.rule = searched
    number = await make.queued(**CHAT)
    await processes.start()
    await came.wait()
    await processes.kill_one()
    await successor()
    await shown_once(rt, desk, number)
    assert asked == ["/post", "/find", "/find"]


async def test_a_delivery_killed_in_a_lost_call_is_sent_after_its_timeout(
    make: Factory, rt: Runtime, desk: ChatHarness, processes: DispatcherProcesses, successor: Start
) -> None:
    asked: list[str] = []
    came = asyncio.Event()

    async def lost(request: Request) -> bool | None:
        asked.append(request.path)
        came.set()
        if asked == ["/post"]:
            await asyncio.Event().wait()
        return True

    desk.rule = lost
    number = await make.queued(**CHAT)
    await processes.start()
    await came.wait()
    await processes.kill_one()
    await successor()
    await shown_once(rt, desk, number)
    assert asked == ["/post", "/find", "/find", "/post"]


async def test_a_sender_without_a_session_starts_no_call_for_a_rescued_delivery(
    make: Factory, rt: Runtime, desk: ChatHarness, conn: Connection
) -> None:
    number = await make.queued(**CHAT)
    (mine,) = await claim(rt, ChannelName.SLACK, sender=GONE)
    assert await rt.delivery_sender.rescue([ChannelName.LOG]) == 0, "another channel"
    assert await rt.delivery_sender.rescue([ChannelName.SLACK]) == 1
    (theirs,) = await claim(rt, ChannelName.SLACK, sender=GONE)
    assert (theirs.seq, theirs.in_doubt, theirs.call_left) == (mine.seq, False, 0)
    channel = ChatChannel(desk.url)
    try:
        assert await rt.delivery_sender.send(mine, channel) == Deferred(0.0, limited=False)
        assert await rt.delivery_sender.record(mine, Deferred(0.0, limited=False)) is None
        assert desk.chat.posts == {}
        sent = await rt.delivery_sender.send(theirs, channel)
        assert await rt.delivery_sender.record(theirs, sent) is DeliveryStatus.SENT
    finally:
        await channel.close()
    assert (await deliveries_of(rt, number))[0].attempts == 2


async def test_a_sender_without_a_session_ends_the_call_that_its_successor_waits_for(
    make: Factory, rt: Runtime, desk: ChatHarness, told_settings: Settings, conn: Connection
) -> None:
    """A partition: its session is gone, the process lives, and its call hangs."""
    came = asyncio.Event()

    async def hang(request: Request) -> bool:
        came.set()
        await asyncio.Event().wait()
        return True

    desk.rule = hang
    await make.queued(**CHAT)
    deliver = wire(told_settings, rt.db, False).delivery_sender
    channel = ChatChannel(desk.url, timeout=60)
    (mine,) = await deliver.claim(ChannelName.SLACK, free=1, share=1, sender=GONE)
    try:
        async with background(deliver.send(mine, channel)) as sending:
            await came.wait()
            assert await deliver.rescue([ChannelName.SLACK]) == 1
            (theirs,) = await deliver.claim(ChannelName.SLACK, free=1, share=1, sender=GONE)
            assert theirs.in_doubt
            assert TIMEOUT / 2 < theirs.call_left <= TIMEOUT
            ended = await sending
        assert ended == Unconfirmed("the lease could not be renewed")
        remaining = await value(
            conn,
            "SELECT extract(epoch FROM call_ends_at - now())::float8 FROM draftsman.deliveries",
        )
        assert remaining > 0, "what it sent last has time to arrive"
    finally:
        await channel.close()


async def test_the_lease_of_a_call_is_renewed_while_it_lasts(
    make: Factory, rt: Runtime, desk: ChatHarness, told_settings: Settings, conn: Connection
) -> None:
    came, go = asyncio.Event(), asyncio.Event()

    async def slow(_: Request) -> bool:
        came.set()
        await go.wait()
        return True

    desk.rule = slow
    await make.queued(**CHAT)
    deliver = wire(told_settings, rt.db, False).delivery_sender
    channel = ChatChannel(desk.url, timeout=60)
    (item,) = await deliver.claim(ChannelName.SLACK, free=1, share=1)
    try:
        async with background(deliver.send(item, channel)) as sending:
            await came.wait()
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
    await claim(rt, ChannelName.SLACK, sender=77)
    assert await rt.delivery_sender.rescue([ChannelName.SLACK]) == 0
    await run(conn, "SELECT pg_advisory_unlock(1146242644, 77)")
    assert await rt.delivery_sender.rescue([ChannelName.SLACK]) == 1


async def test_a_delivery_claimed_without_a_session_is_rescued_after_its_lease(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    await make.queued(**CHAT)
    await claim(rt, ChannelName.SLACK)
    assert await rt.delivery_sender.rescue([ChannelName.SLACK]) == 0
    await run(conn, "UPDATE draftsman.deliveries SET next_attempt_at = now()")
    (item,) = await claim(rt, ChannelName.SLACK)
    assert item.in_doubt, "whether it began a call is not known"
