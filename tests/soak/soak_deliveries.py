"""Ten thousand deliveries to a chat, to Slack, to Trello, that fail; dispatchers are killed too.

Needs nothing but the embedded server; takes a few minutes.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from draftsman.runtime import Runtime
from draftsman.store.db import Connection
from tests.bots.slack.storm import SlackSky
from tests.bots.trello.storm import TrelloSky
from tests.core.outbox.storm import ChatSky, Sky, Storm
from tests.factories import Factory

JOBS, NOTICES, KILLS = 500, 20, 20


@pytest.mark.timeout(3600)
async def test_ten_thousand_are_each_visible_once_and_in_order(
    make: Factory, rt: Runtime, conn: Connection, record_property: Callable[[str, object], None]
) -> None:
    await endure(ChatSky(seed=2, channels=50), make, rt, conn, record_property)


@pytest.mark.timeout(3600)
async def test_ten_thousand_are_each_visible_once_and_in_order_in_slack(
    make: Factory, rt: Runtime, conn: Connection, record_property: Callable[[str, object], None]
) -> None:
    await endure(SlackSky(seed=2, channels=200), make, rt, conn, record_property)


@pytest.mark.timeout(3600)
async def test_ten_thousand_are_each_visible_once_and_in_order_in_trello(
    make: Factory, rt: Runtime, conn: Connection, record_property: Callable[[str, object], None]
) -> None:
    await endure(TrelloSky(seed=2), make, rt, conn, record_property)


async def endure(
    sky: Sky,
    make: Factory,
    rt: Runtime,
    conn: Connection,
    record_property: Callable[[str, object], None],
) -> None:
    storm = Storm(
        sky, jobs=JOBS, notices=NOTICES, processes=2, kills=KILLS, deadline=3000, timeout=5
    )
    await storm.rage(make, conn)
    kinds = await storm.check(rt, conn)
    assert set(sky.fates) == sky.known, "not every fault struck"
    assert storm.killed == KILLS
    record_property("faults", dict(sky.fates))
    record_property("deliveries", {str(kind): count for kind, count in kinds.items()})
