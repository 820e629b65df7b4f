"""The dispatcher: what it sends, in which order, how often it tries, and whom it lets wait."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from draftsman.domain.delivery import ChannelName, DeliveryKind, DeliveryStatus, Unknown
from draftsman.domain.outcome import Done
from draftsman.domain.target import parse
from draftsman.errors import Failure, NotFound
from draftsman.loops.dispatcher import Dispatcher
from draftsman.runtime import Runtime
from draftsman.services.deliver import Deliver
from draftsman.settings import NotificationSettings
from draftsman.store.db import Connection
from tests.core.outbox.rows import claim, shape, told
from tests.factories import GATE, Factory
from tests.support.chat import Chat, ChatChannel
from tests.support.clock import Clock
from tests.support.http import Reply, Request, serving
from tests.support.people import People
from tests.support.statements import rows, run
from tests.support.waits import until

FAST = NotificationSettings(
    base_delay=0.01, max_delay=0.02, timeout=2, lease=30, poll=0.05, max_attempts=4
)
CHAT: dict[str, Any] = {"notify": ("slack:C1",)}
Rule = Callable[[Request], Awaitable[Reply | bool | None]]


class Desk:
    """A chat, the rule that stands before it, and dispatchers that run."""

    def __init__(self, rt: Runtime, url: str, stack: AsyncExitStack, chat: Chat) -> None:
        self.rt = rt
        self.url = url
        self.chat = chat
        self.rule: Rule | None = None
        self._stack = stack

    async def answer(self, request: Request) -> Reply | None:
        """Serve one call as the rule says; True: as usual."""
        if self.rule is not None and (said := await self.rule(request)) is not True:
            return said if isinstance(said, Reply) else None
        return await self.chat.answer(request)

    def dispatcher(self, fallback: str | None = None, **channel: Any) -> Dispatcher:
        """Make one that does not run."""
        deliver = Deliver(self.rt.db, FAST, parse(fallback) if fallback else None)
        return Dispatcher(deliver, [ChatChannel(self.url, **channel)], FAST)

    async def open(self, fallback: str | None = None, **channel: Any) -> Dispatcher:
        """Run one to the end of the test."""
        return await self._stack.enter_async_context(_running(self.dispatcher(fallback, **channel)))

    async def quiet(self, job: int) -> None:
        """Wait until nothing of a job is left to be sent to the chat."""

        async def look() -> bool:
            live = {"pending", "sending", "unknown"}
            found = await told(self.rt, job)
            return not [
                one for one in found if one.status in live and one.channel is ChannelName.SLACK
            ]

        await until(look, f"the deliveries of D-{job}")


@asynccontextmanager
async def _running(dispatcher: Dispatcher) -> AsyncIterator[Dispatcher]:
    task = asyncio.create_task(dispatcher.run())
    try:
        yield dispatcher
    finally:
        dispatcher.stop.set()
        await task


@pytest.fixture
async def desk(rt: Runtime) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        made: list[Desk] = []
        url = await stack.enter_async_context(serving(lambda request: made[0].answer(request)))
        made.append(Desk(rt, url, stack, Chat()))
        yield made[0]


async def test_a_story_is_told_in_order_and_its_question_rewritten(
    make: Factory, rt: Runtime, desk: Desk, people: People
) -> None:
    work = await make.asked(GATE, **CHAT)
    await desk.open()
    await desk.quiet(work.number)
    await make.decide(work.number, True, people.carol)
    await desk.quiet(work.number)
    again = await make.running(work.number)
    await rt.settle.outcome(again, Done({"summary": "all is well", "pr_url": "https://x/1"}))
    await desk.quiet(work.number)
    (thread,) = desk.chat.threads.values()
    assert [post.text.splitlines()[0] for post in thread] == [
        "D-1 'noop' is completed", "D-1/1 was approved by carol", "D-1 'noop' completed",
    ]  # fmt: skip
    assert thread[2].text.splitlines()[1:] == ["all is well", "https://x/1"]
    assert len(thread[0].edited_by) >= 1
    kinds = [event.kind for event in await rt.inspect.trail(work.number)]
    assert kinds.count("delivery_posted") == 2, "the question and the result"


async def test_a_lost_reply_is_looked_for_and_not_posted_again(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    asked: list[str] = []

    async def cut(request: Request) -> Reply | bool | None:
        asked.append(request.path)
        if len(asked) > 1:
            return True
        await desk.chat.answer(request)
        return None

    desk.rule = cut
    number = await make.queued(**CHAT)
    await desk.open()
    await desk.quiet(number)
    assert asked == ["/post", "/find"]
    (one,) = await told(rt, number)
    assert (one.status, one.attempts, one.in_doubt) == (DeliveryStatus.SENT, 2, False)


async def test_one_that_did_not_arrive_is_posted_again_after_a_look(
    make: Factory, desk: Desk
) -> None:
    asked: list[str] = []

    async def drop(request: Request) -> Reply | bool | None:
        asked.append(request.path)
        return None if len(asked) == 1 else True

    desk.rule = drop
    number = await make.queued(**CHAT)
    await desk.open()
    await desk.quiet(number)
    assert asked == ["/post", "/find", "/post"]


async def test_the_last_try_is_the_end_and_the_fallback_says_it(
    make: Factory, rt: Runtime, desk: Desk, caplog: pytest.LogCaptureFixture, conn: Connection
) -> None:
    caplog.set_level(logging.ERROR)

    async def refuse(_: Request) -> Reply:
        return Reply(400)

    desk.rule = refuse
    title = "Tidy up, token=hunter2hunter2"
    number = await make.queued(title=title, **CHAT)
    await desk.open(fallback="log")
    await desk.quiet(number)
    dead, instead = await told(rt, number)
    assert (dead.status, dead.attempts, dead.last_error) == (DeliveryStatus.DEAD, 1, "HTTP 400")
    assert (instead.channel, instead.target, instead.of_delivery) == ("log", "log", dead.seq)
    assert "it said: D-1 'Tidy up, token=***' is queued" in caplog.text
    assert "hunter2" not in caplog.text
    events = [e for e in await rt.inspect.trail(number) if e.kind == "delivery_dead"]
    assert [event.payload["delivery"] for event in events] == [dead.seq]
    (item,) = await claim(rt)
    await rt.deliver.record(item, Failure("gone", declared="PERMANENT"))
    assert len(await told(rt, number)) == 2, "no fallback of a fallback"
    assert await rt.outbox.dead_count() == 2
    assert (await rows(conn, "SELECT count(*) FROM draftsman.job_targets"))[0][0] == 1


async def test_what_passes_is_tried_again_up_to_a_limit(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    async def fail(_: Request) -> Reply:
        return Reply(500)

    desk.rule = fail
    number = await make.queued(**CHAT)
    await desk.open()
    await desk.quiet(number)
    (one,) = await told(rt, number)
    assert (one.status, one.attempts, one.in_doubt) == (DeliveryStatus.DEAD, 4, True)


async def test_one_that_died_is_sent_again_when_told_and_looked_for_first(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    asked: list[str] = []

    async def deny(request: Request) -> Reply | bool:
        asked.append(request.path)
        return Reply(403) if len(asked) == 1 else True

    desk.rule = deny
    number = await make.queued(**CHAT)
    await desk.open()
    await desk.quiet(number)
    (dead,) = await told(rt, number)
    assert await rt.outbox.redeliver([dead.seq], make.owner) == [dead.seq]
    await desk.quiet(number)
    assert (await shape(rt, number), asked) == ([("status", "sent")], ["/post", "/find", "/post"])
    event = (await rt.inspect.trail(number))[-1]
    assert (event.kind, event.actor) == ("redelivered", "cli:root")


async def test_a_retry_after_lets_every_process_wait_and_spends_nothing(
    make: Factory, rt: Runtime, desk: Desk, clock: Clock
) -> None:
    asked: list[str] = []

    async def later(request: Request) -> Reply | bool:
        asked.append(request.path)
        return Reply(429, headers=(("retry-after", "3600"),)) if len(asked) == 1 else True

    desk.rule = later
    first = await make.queued(**CHAT)
    dispatcher = desk.dispatcher()
    async with _running(dispatcher):

        async def refused() -> bool:
            return (await told(rt, first))[0].last_error == "HTTP 429"

        await until(refused, "the refusal")
    second = await make.queued(**CHAT)
    other = await make.queued(notify=("slack:C2",))
    assert [item.job for item in await claim(rt, ChannelName.SLACK)] == [other]
    (one,) = await told(rt, first)
    assert (one.status, one.attempts) == (DeliveryStatus.PENDING, 0)
    assert asked == ["/post"]
    due = await rt.deliver.next_due(ChannelName.SLACK)
    assert due is not None
    assert due <= 60, "the lease of the other"
    await clock.forward(3601)
    assert {item.job for item in await claim(rt, ChannelName.SLACK)} == {first, second, other}


async def test_who_hangs_is_waited_for_by_nobody_else(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    hanging = asyncio.Event()

    async def hang(request: Request) -> Reply | bool | None:
        if b'"HANGS' in request.body:
            await hanging.wait()
        return True

    desk.rule = hang
    stuck = [await make.queued(notify=("slack:HANGS",)) for _ in range(30)]
    await desk.open()
    number = await make.queued(**CHAT)
    await desk.quiet(number)
    under_way = [one for job in stuck for one in await told(rt, job) if one.status == "sending"]
    assert len(under_way) <= FAST.per_target * 2 - 1
    hanging.set()
    for job in stuck:
        await desk.quiet(job)


async def test_a_limit_is_kept_by_all_processes_together(
    make: Factory, rt: Runtime, desk: Desk, conn: Connection
) -> None:
    """Two at once, then one every 0.2 s: the last of eight is free 1.2 s after the first."""
    numbers = [await make.queued(notify=(f"slack:C{n}",)) for n in range(8)]
    for _ in range(2):
        await desk.open(rate=5)
    for number in numbers:
        await desk.quiet(number)
    ((spread, attempts),) = await rows(
        conn,
        "SELECT extract(epoch FROM max(sent_at) - min(sent_at))::float8, max(attempts)"
        " FROM draftsman.deliveries",
    )
    assert spread >= 1.1
    assert attempts == 1, "waiting spends nothing"


async def test_stopping_finishes_what_is_on_its_way_and_takes_no_more(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    came, go = asyncio.Event(), asyncio.Event()

    async def slow(_: Request) -> bool:
        came.set()
        await go.wait()
        return True

    desk.rule = slow
    first = await make.queued(**CHAT)
    dispatcher = desk.dispatcher()
    running = asyncio.create_task(dispatcher.run())
    await came.wait()
    dispatcher.stop.set()
    second = await make.queued(**CHAT)
    go.set()
    await asyncio.wait_for(running, 10)
    assert await shape(rt, first) == [("status", "sent")]
    assert await shape(rt, second) == [("status", "pending")]


async def test_a_status_whose_message_was_deleted_is_posted_anew(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    number = await make.queued(**CHAT)
    await desk.open()
    await desk.quiet(number)
    desk.chat.posts.clear()
    await make.running(number)
    await desk.quiet(number)
    assert [post.text for post in desk.chat.posts.values()] == ["D-1 'noop' is running"]


async def test_a_copy_that_was_deleted_needs_no_rewriting(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    work = await make.asked(**CHAT)
    await desk.open()
    await desk.quiet(work.number)
    desk.chat.posts.clear()
    await make.answer(work.number, "red")
    await desk.quiet(work.number)
    found = await shape(rt, work.number)
    assert ("settle", "sent") in found
    assert "dead" not in {status for _, status in found}


async def test_a_dead_post_that_may_be_visible_is_found_and_rewritten(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    """It arrived, nobody ever heard so, and the question closed when it had been given up."""
    work = await make.asked(**CHAT)

    async def deaf(request: Request) -> Reply | bool | None:
        if b"asks: Which" not in request.body:
            return True
        if request.path == "/post":
            await desk.chat.answer(request)
        return None

    desk.rule = deaf
    await desk.open()
    await desk.quiet(work.number)
    (question,) = [o for o in await told(rt, work.number) if o.kind is DeliveryKind.QUESTION]
    assert (question.status, question.in_doubt) == (DeliveryStatus.DEAD, True)
    desk.rule = None
    await make.answer(work.number, "red")
    await desk.quiet(work.number)
    texts = [post.text.splitlines()[0] for post in desk.chat.posts.values()]
    assert "D-1/1 was answered by root: red" in texts


async def test_a_broken_channel_leaves_its_delivery_in_doubt(
    make: Factory, rt: Runtime, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(ChatChannel, "send", broken)
    number = await make.queued(**CHAT)
    await desk.open()
    await desk.quiet(number)
    (one,) = await told(rt, number)
    assert (one.status, one.in_doubt) == (DeliveryStatus.DEAD, True)
    assert one.last_error == "no reply: ValueError: a bug"


async def test_a_file_is_uploaded_once(make: Factory, rt: Runtime, desk: Desk) -> None:
    work = await make.running(**CHAT)
    await rt.checkpoints.artifact(work.lease, "report.txt", "report", b"12345")
    assert [await rt.outbox.file(work.number, "report.txt") for _ in range(2)] == [1, 0]
    with pytest.raises(NotFound, match="no artifact 'other'"):
        await rt.outbox.file(work.number, "other")
    await desk.open()
    await desk.quiet(work.number)
    texts = [post.text for post in desk.chat.posts.values()]
    assert texts == ["D-1 'noop' is running", "report.txt 5"]
    kinds = [event.kind for event in await rt.inspect.trail(work.number)]
    assert kinds[-1] == "attachment_uploaded"


async def test_a_reminder_is_said_once_and_not_after_its_question(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    work = await make.asked(**CHAT)
    assert await rt.outbox.remind(work.number, 1, "half", "still waiting") == 1
    assert await rt.outbox.remind(work.number, 1, "half", "still waiting") == 0
    await desk.open()
    await desk.quiet(work.number)
    await make.answer(work.number, "red")
    assert await rt.outbox.remind(work.number, 1, "late", "still waiting") == 0
    await desk.quiet(work.number)
    said = [post.text.splitlines()[0] for post in desk.chat.posts.values()]
    assert said[1:] == ["D-1/1 was answered by root: red"] * 2, "the reminder is a copy too"


async def test_a_process_that_lost_the_database_goes_on(
    make: Factory, rt: Runtime, desk: Desk, conn: Connection
) -> None:
    await desk.open()
    await run(
        conn,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    number = await make.queued(**CHAT)
    await desk.quiet(number)
    assert await shape(rt, number) == [("status", "sent")]


async def test_who_was_stopped_for_longer_than_its_lease_sends_nothing(
    make: Factory, rt: Runtime, desk: Desk
) -> None:
    await make.queued(**CHAT)
    (item,) = await claim(rt, ChannelName.SLACK)
    channel = ChatChannel(desk.url)
    ended = await rt.deliver.send(item, channel, time.monotonic() - 1)
    await channel.close()
    assert isinstance(ended, Unknown)
    assert desk.chat.posts == {}
