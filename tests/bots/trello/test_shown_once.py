"""What is delivered to Trello through faults is seen once, in order. Ten thousand: tests/soak."""

from __future__ import annotations

from draftsman.runtime import Runtime
from draftsman.store.db import Connection
from tests.bots.trello.storm import TrelloSky
from tests.core.outbox.storm import Storm
from tests.factories import Factory


async def test_each_is_visible_once_and_in_order_whatever_fails(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    sky = TrelloSky(seed=1)
    storm = Storm(sky, jobs=12, notices=4, processes=2, kills=2, deadline=90)
    await storm.rage(make, conn)
    await storm.check(rt, conn)
    assert set(sky.fates) == sky.known, "not every fault struck"
    assert storm.killed == 2
