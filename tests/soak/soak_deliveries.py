"""Ten thousand failing deliveries to a chat, Slack and Trello, with kills of dispatchers.

Needs only the embedded server; takes a few minutes.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.bots.slack.chaos import SlackBackend
from tests.bots.trello.chaos import TrelloBackend
from tests.core.deliveries.outbox.chaos import ChaosBackend, ChaosRun, ChatBackend

JOBS = 500
NOTICES = 20
KILLS = 20


@pytest.mark.timeout(3600)
async def test_ten_thousand_are_each_visible_once_and_in_order(
    make: Factory, rt: Runtime, conn: Connection, record_property: Callable[[str, object], None]
) -> None:
    await run_chaos(ChatBackend(seed=2, channels=50), make, rt, conn, record_property)


@pytest.mark.timeout(3600)
async def test_ten_thousand_are_each_visible_once_and_in_order_in_slack(
    make: Factory, rt: Runtime, conn: Connection, record_property: Callable[[str, object], None]
) -> None:
    await run_chaos(SlackBackend(seed=2, channels=200), make, rt, conn, record_property)


@pytest.mark.timeout(3600)
async def test_ten_thousand_are_each_visible_once_and_in_order_in_trello(
    make: Factory, rt: Runtime, conn: Connection, record_property: Callable[[str, object], None]
) -> None:
    await run_chaos(TrelloBackend(seed=2), make, rt, conn, record_property)


async def run_chaos(
    backend: ChaosBackend,
    make: Factory,
    rt: Runtime,
    conn: Connection,
    record_property: Callable[[str, object], None],
) -> None:
    chaos = ChaosRun(
        backend, jobs=JOBS, notices=NOTICES, processes=2, kills=KILLS, deadline=3000, timeout=5
    )
    await chaos.run(make, conn)
    kinds = await chaos.check(rt, conn)
    assert set(backend.fault_counts) == backend.known, "not every fault was injected"
    assert chaos.killed == KILLS
    record_property("faults", dict(backend.fault_counts))
    record_property("deliveries", {str(kind): count for kind, count in kinds.items()})
