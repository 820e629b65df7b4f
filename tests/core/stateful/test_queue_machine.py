"""Order, limits, workflows and crashes: a plain model and the database agree after each step."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.core.stateful.queue_calls import SHORT_BEGINNINGS
from tests.core.stateful.queue_machine import on
from tests.support.server import Server

QUICK = settings(
    max_examples=2,  # the first has hardly any calls
    stateful_step_count=10,
    derandomize=True,  # soak_queue_machine.py draws others
    print_blob=True,
    deadline=None,
    database=None,
)


@pytest.mark.timeout(900)  # shrinking a failure takes minutes
def test_the_queues_agree_with_the_model(server: Server) -> None:
    for beginnings in SHORT_BEGINNINGS.values():
        run_state_machine_as_test(on(server, beginnings), settings=QUICK)
