"""A leader whose cancellation meets a broken connection."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import psycopg

from draftsman.database.database import translate_errors
from draftsman.runtime import Runtime
from draftsman.worker.leader import Leader
from draftsman.worker.service.sweeps import Sweeps
from draftsman_testing.waits import background
from tests.core.worker.workers import (
    before_deadline,
)


class CutSweeps(Sweeps):
    """Its connection breaks while a statement is being canceled, and raises that error."""

    inside: asyncio.Event

    async def next_due(self) -> float | None:
        """Break when cancelled, once."""
        if self.inside.is_set():
            return None
        self.inside.set()
        with translate_errors():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise psycopg.OperationalError("the connection is gone") from None
        return None


async def test_a_cancellation_lost_in_a_broken_connection_does_not_block_the_leader(
    rt: Runtime,
) -> None:
    sweeps = CutSweeps(
        rt.db,
        rt.policy,
        sweeps=rt.sweeps.all,
        dead_workers=rt.dead_workers,
        lease=rt.settings.sweeps.lease,
    )
    sweeps.inside = asyncio.Event()
    leader = Leader(sweeps, rt.settings.sweeps, uuid4())
    async with background(leader.run()) as running:
        await before_deadline(sweeps.inside.wait())
        leader.stop.set()
        await before_deadline(asyncio.shield(running))
