"""Hundreds of events with duplicate deliveries during a database stall. Thousands: tests/soak."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from draftsman.database.database import Database
from draftsman_testing.slack import Ack
from tests.bots.slack.transport.conftest import JobTexts
from tests.bots.slack.transport.service_harness import ANNA, ServiceHarness

WAYS: Final[tuple[dict[str, Any], ...]] = (
    {"copies": 3, "new_event_id": True},
    {"copies": 2, "new_event_id": True, "reordered": True},
    {"copies": 2, "same_envelope": True},
    {"copies": 1, "attempt": 2},
)
"""Forms of a message's delivery; each is a mention, which Slack delivers twice."""
MESSAGES: Final = 36
AT_ONCE: Final = 6
STALL: Final = 2.0
"""Seconds, of Slack's deadline of three."""


async def test_144_events_while_the_database_stalls(
    either: ServiceHarness, jobs: JobTexts, db: Database
) -> None:
    await deliver_during_stall(either, jobs, db, MESSAGES)


async def deliver_during_stall(
    either: ServiceHarness, jobs: JobTexts, db: Database, messages: int
) -> None:
    """Deliver messages in all forms while the table of jobs is locked; each makes a job once."""
    either.slack.event_delivery.patience = 3.0
    turns = asyncio.Semaphore(AT_ONCE)
    text = list[Ack]()
    started = asyncio.Event()
    stalled = asyncio.Event()

    async def say(number: int) -> None:
        if number >= messages // 3:
            await stalled.wait()
        async with turns:
            options = {"retries": 3} | WAYS[number % len(WAYS)]
            text.append(
                await either.slack.mention(ANNA, either.general, f"fix {number}", **options)
            )
        if len(text) == messages // 3:
            started.set()

    async def stall() -> None:
        await started.wait()
        holder = await db.dedicated_connection()
        try:
            async with holder.transaction():
                await holder.execute("LOCK TABLE draftsman.job_states IN ACCESS EXCLUSIVE MODE")
                stalled.set()
                await holder.execute("SELECT pg_sleep(%s)", (STALL,))
        finally:
            await holder.close()

    await asyncio.gather(stall(), *(say(number) for number in range(messages)))
    copies = [copy for ack in text for copy in ack.copies]
    assert len(copies) == messages * 4
    assert [copy for copy in copies if not copy.acked] == []
    assert max(copy.seconds for copy in copies) > STALL - 0.5, "nothing waited for the database"
    assert len(await jobs.texts()) == messages
