"""A result that arrives after its run lost the job: model and database stay equal."""

from __future__ import annotations

from itertools import product

from tests.core.stateful.machine import on
from tests.core.stateful.model.state import Question
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
