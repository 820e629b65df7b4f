"""Thousands of Slack events with duplicate deliveries during a database stall.

Needs nothing but the embedded server; takes half a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import pytest

from draftsman.database.database import Connection, Database
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman_testing.slack import Ack
from tests.bots.slack.transport.conftest import JobTexts
from tests.bots.slack.transport.service_harness import (
    ANNA,
    ServiceHarness,
    over_http,
    over_sockets,
    patient_runtime,
)

WAYS: Final[tuple[dict[str, Any], ...]] = (
    {"copies": 3, "new_event_id": True},
    {"copies": 2, "new_event_id": True, "reordered": True},
    {"copies": 2, "same_envelope": True},
    {"copies": 1, "attempt": 2},
)
"""Forms of a message's delivery; each is a mention, which Slack delivers twice."""
MESSAGES: Final = 1008
AT_ONCE: Final = 6
STALL: Final = 2.0
"""Seconds, of Slack's deadline of three."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("transport", [over_http, over_sockets])
async def test_4032_events_while_the_database_stalls(
    transport: Callable[[Runtime], AbstractAsyncContextManager[ServiceHarness]],
    settings: Settings,
    database_url: str,
    conn: Connection,
    db: Database,
) -> None:
    async with patient_runtime(settings, database_url) as rt, transport(rt) as rig:
        await _deliver_during_stall(rig, JobTexts(conn), db)


async def _deliver_during_stall(rig: ServiceHarness, jobs: JobTexts, db: Database) -> None:
    """Deliver messages in all forms while the table of jobs is locked; each makes a job once."""
    rig.slack.event_delivery.patience = 3.0
    turns = asyncio.Semaphore(AT_ONCE)
    text = list[Ack]()
    started = asyncio.Event()
    stalled = asyncio.Event()

    async def say(number: int) -> None:
        if number >= MESSAGES // 3:
            await stalled.wait()
        async with turns:
            options = {"retries": 3} | WAYS[number % len(WAYS)]
            text.append(await rig.slack.mention(ANNA, rig.general, f"fix {number}", **options))
        if len(text) == MESSAGES // 3:
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

    await asyncio.gather(stall(), *(say(number) for number in range(MESSAGES)))
    copies = [copy for ack in text for copy in ack.copies]
    assert len(copies) == MESSAGES * 4
    assert [copy for copy in copies if not copy.acked] == []
    assert max(copy.seconds for copy in copies) > STALL - 0.5, "nothing waited for the database"
    assert len(await jobs.texts()) == MESSAGES
