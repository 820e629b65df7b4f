"""Any transaction, in any order, from two processes: model and database stay equal.

A failure is printed with its steps and a blob; `@reproduce_failure` with it repeats it.
"""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.core.stateful.machine import on
from tests.support.server import Server

QUICK = settings(
    max_examples=2,
    stateful_step_count=30,
    print_blob=True,
    deadline=None,
    database=None,
)


SEEDS: Final = (23, 25)
"""Those of 29 whose examples pass most transitions and rules; soak_stateful.py draws others."""


@pytest.mark.timeout(900)  # shrinking a failure takes minutes
def test_the_model_agrees_after_every_transition(server: Server) -> None:
    for number in SEEDS:
        run_state_machine_as_test(seed(number)(on(server)), settings=QUICK)
