"""Deliveries to Slack with faults are shown once, in order. Ten thousand: tests/soak."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.bots.slack.chaos import SlackBackend
from tests.core.deliveries.outbox.chaos import ChaosRun


@pytest.mark.slow(
    fast="tests/core/deliveries/outbox/test_shown_once.py::test_each_message_is_visible_once_and_in_order_despite_faults"
)
async def test_each_message_is_visible_once_and_in_order_despite_faults(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    backend = SlackBackend(seed=1, channels=12)
    chaos = ChaosRun(backend, jobs=12, notices=5, processes=2, kills=1, deadline=90)
    await chaos.run(make, conn)
    await chaos.check(rt, conn)
    assert set(backend.fault_counts) == backend.known, "not every fault was injected"
    assert chaos.killed == 1
