"""Messages are visible once and in order despite faults; see also tests/soak."""

from __future__ import annotations

from draftsman.runtime import Runtime
from draftsman.store.postgres.database import Connection
from tests.bots.trello.chaos import TrelloBackend
from tests.core.outbox.chaos import ChaosRun
from tests.factories import Factory


async def test_each_message_is_visible_once_and_in_order_despite_faults(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    sky = TrelloBackend(seed=1)
    storm = ChaosRun(sky, jobs=12, notices=4, processes=2, kills=1, deadline=90)
    await storm.run(make, conn)
    await storm.check(rt, conn)
    assert set(sky.fault_counts) == sky.known, "not every fault struck"
    assert storm.killed == 1
