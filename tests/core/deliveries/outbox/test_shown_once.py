"""Deliveries are shown once and in order despite faults. Ten thousand of them: tests/soak."""

from __future__ import annotations

from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.deliveries.outbox.chaos import ChaosRun, ChatBackend


async def test_each_message_is_visible_once_and_in_order_despite_faults(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    backend = ChatBackend(seed=1)
    chaos = ChaosRun(backend, jobs=8, notices=8, processes=2, kills=1, deadline=240)
    await chaos.run(make, conn)
    await chaos.check(rt, conn)
    assert set(backend.fault_counts) == backend.known, "not every fault was injected"
    assert chaos.killed == 1
