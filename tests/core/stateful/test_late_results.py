"""Results and usage that arrive after their run lost the job: model and database stay equal."""

from __future__ import annotations

from itertools import product

from tests.core.stateful.machine import on
from tests.core.stateful.model.people import EVERYBODY
from tests.core.stateful.model.state import JobRequest, Question
from tests.support.cases import cases
from tests.support.server import Server

QUESTION = Question("pick", "input", text="Which?")


@cases("lost, both, late", product([True, False], [True, False], [0, 1, 2]))
def test_the_result_of_an_older_run_is_never_that_of_its_job(
    server: Server, lost: bool, both: bool, late: int
) -> None:
    machine = on(server)()  # type: ignore[call-arg]
    try:
        machine.return_late(0, lost, QUESTION, late, both)
    finally:
        machine.teardown()


@cases("how", ["snooze", "infra", "hand_back"])
def test_usage_is_recorded_after_a_run_has_parked_only(server: Server, how: str) -> None:
    machine = on(server)()  # type: ignore[call-arg]
    try:
        machine.submit([JobRequest()], EVERYBODY[0], 0)
        machine.claim(0, free=1, ahead=0)
        machine.settle(0, False, how, 1, 0)
        machine.write(0, True, "usage", 0)
    finally:
        machine.teardown()
