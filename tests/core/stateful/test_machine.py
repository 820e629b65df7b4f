"""Any transaction, in any order, from two processes: model and database stay equal.

A failure is printed with its steps and a blob; `@reproduce_failure` with it repeats it.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.core.stateful.machine import on
from tests.support.server import Server

QUICK = settings(
    max_examples=2,
    stateful_step_count=30,
    derandomize=False,
    print_blob=True,
    deadline=None,
    database=None,
)


@pytest.mark.timeout(900)  # shrinking a failure takes minutes
def test_the_model_agrees_after_every_transition(server: Server) -> None:
    run_state_machine_as_test(on(server), settings=QUICK)
