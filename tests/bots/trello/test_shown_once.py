"""Messages are visible once and in order despite faults; see also tests/soak."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.bots.trello.chaos import TrelloBackend
from tests.core.deliveries.outbox.chaos import ChaosRun


@pytest.mark.slow(
    fast="tests/bots/trello/test_outbox.py::test_comment_without_a_response_is_reconciled"
)
async def test_each_message_is_visible_once_and_in_order_despite_faults(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    backend = TrelloBackend(seed=1)
    chaos = ChaosRun(backend, jobs=12, notices=4, processes=2, kills=1, deadline=90)
    await chaos.run(make, conn)
    await chaos.check(rt, conn)
    assert set(backend.fault_counts) == backend.known, "not every fault was injected"
    assert chaos.killed == 1
