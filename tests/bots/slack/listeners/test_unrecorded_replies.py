"""Replies to a message of the bot that is posted and not recorded yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.deliveries.service.delivery_sender import DeliverySender
from draftsman_testing.outbox import FAST, deliveries_of, running
from draftsman_testing.waits import until, wait_blocked
from tests.bots.slack.channel_fixtures import slack_channel
from tests.bots.slack.listeners.conftest import BEN, SlackBotHarness


@asynccontextmanager
async def _unwritten(bench: SlackBotHarness, conn: Connection, job: int) -> AsyncIterator[str]:
    """Post a job's card and hold back its record; return its ts."""
    deliver = DeliverySender(db=bench.rt.db, policy=bench.rt.policy, settings=FAST, fallback=None)
    holder = await bench.rt.db.dedicated_connection()
    try:
        await holder.execute("BEGIN")
        held = "SELECT FROM draftsman.job_states WHERE number = %s FOR NO KEY UPDATE"
        await holder.execute(held, (job,))
        async with running(DeliveryDispatcher(deliver, [slack_channel(bench.slack)], FAST)):
            await wait_blocked(conn, by=holder.info.backend_pid)
            (card,) = bench.slack.messages(bench.general)
            try:
                yield card["ts"]
            finally:
                await holder.execute("ROLLBACK")

            async def written() -> bool:
                return any(
                    delivery.status is DeliveryStatus.SENT
                    for delivery in await deliveries_of(bench.rt, job)
                )

            await until(written, "a card that is written down")
    finally:
        await holder.close()


async def test_reply_is_redelivered_after_its_question_is_recorded(
    bench: SlackBotHarness, conn: Connection
) -> None:
    work = await bench.make.asked(notify=(f"slack:{bench.general}",))
    question = await bench.rt.questions.get(work.number, 1)
    async with _unwritten(bench, conn, work.number) as card:
        early = await bench.slack.say(BEN, bench.general, "blue", card)
        assert not early.acked, "Slack is to send it again"
        assert await bench.is_open(question)
    assert (await bench.slack.event(early.sent, retries=3)).attempts == 1
    assert await bench.answer(question) == ("blue", ("ben",))
    assert await bench.ephemeral_texts(BEN) == []


async def test_messages_in_other_threads_are_ignored_while_a_post_is_unrecorded(
    bench: SlackBotHarness, conn: Connection
) -> None:
    other = bench.slack.channel("other", [BEN])
    work = await bench.make.asked(notify=(f"slack:{bench.general}",))
    async with _unwritten(bench, conn, work.number):
        lunch = await bench.slack.say(BEN, bench.general, "lunch?")
        assert (await bench.slack.say(BEN, bench.general, "at one", lunch.ts)).acked
        elsewhere = await bench.ctx.client.chat_postMessage(channel=other, text="hello")
        assert (await bench.slack.say(BEN, other, "hello", elsewhere["ts"])).acked


@pytest.mark.parametrize("thread", ["yesterday", "1e9", "9" * 40, "-1.5", "1.5\x00"])
async def test_message_with_an_invalid_thread_is_ignored(
    bench: SlackBotHarness, thread: str
) -> None:
    text = {"thread_ts": thread}
    assert (await bench.slack.say(BEN, bench.general, "hello", more=text)).acked
    assert await bench.ephemeral_texts(BEN) == []
