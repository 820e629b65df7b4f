"""Queues of the plain model and of the database in long random examples.

A failure is printed with its steps and a blob; `@reproduce_failure` with it repeats it.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.core.stateful.queue_machine import on
from tests.support.server import Server

LONG = settings(
    max_examples=200,
    stateful_step_count=50,
    derandomize=False,
    print_blob=True,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
)


@pytest.mark.timeout(7200)  # 8,000 steps take 10 minutes, and 35 on a busy machine
def test_the_queues_agree_with_the_model_for_long(server: Server) -> None:
    run_state_machine_as_test(on(server), settings=LONG)
