"""The movable clock of a database: it moves while nothing is in flight."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager

from draftsman.database.database import Database
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import LOG, RECEIPT, claim
from draftsman_testing.waits import background
from tests.support.clock import Clock
from tests.support.statements import value

DAY = 86_400.0
UNTIL_IT_WOULD_HAVE_MOVED = 0.1
OFFSET = "SELECT extract(epoch FROM draftsman.clock_offset())::float8"


@asynccontextmanager
async def kept(move: Awaitable[None], db: Database) -> AsyncIterator[None]:
    """Assert that the clock does not move until the end of the block, and then moves."""
    async with background(move) as moved:
        assert not (await asyncio.wait([moved], timeout=UNTIL_IT_WOULD_HAVE_MOVED))[0]
        yield
        await moved
    async with db.connection() as conn:
        assert await value(conn, OFFSET) == DAY


async def test_a_delivery_that_is_being_sent_keeps_the_clock(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    await make.queued(**LOG)
    (item,) = await claim(rt)
    async with kept(clock.forward(DAY), rt.db):
        await rt.delivery_sender.record(item, RECEIPT)


async def test_a_lent_connection_keeps_the_clock(db: Database, clock: Clock) -> None:
    async with AsyncExitStack() as lent:
        await lent.enter_async_context(db.connection())
        async with kept(clock.forward(DAY), db):
            await lent.aclose()


async def test_an_exchange_keeps_the_clock(db: Database, clock: Clock) -> None:
    session = db.dedicated_session()
    async with AsyncExitStack() as lent:
        await lent.enter_async_context(session.connection(5))
        async with kept(clock.forward(DAY), db):
            await lent.aclose()
