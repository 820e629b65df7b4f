"""The results of parents in the first message to an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from draftsman.agent_runs.protocol.start_message import (
    MAX_PARENTS,
    PARENTS_LIMIT,
    parent_bodies,
)
from draftsman.errors import Failure
from draftsman.jobs.job import Condition, Status
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman.workflows.dependencies import Parent
from draftsman_testing.factories import Factory
from tests.core.agent_runs.test_run_agent import data as data
from tests.core.agent_runs.test_run_agent import done
from tests.core.agent_runs.test_run_agent import repo as repo

ECHO = """
say("result", summary="read", data={"parents": start["parents"]})
"""


async def test_an_agent_gets_the_results_of_the_parents_of_its_job(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    good = await make.running(title="Build")
    bad = await make.running()
    await rt.settlement.outcome(good, Done({"commit": "4f1c"}))
    await rt.settlement.failure(bad, Failure("broken", declared="PERMANENT"))
    job = await done(rt, make, data, repo, ECHO, after=(bad.number, good.number), on="any")
    assert job.status is Status.COMPLETED, job.last_error
    assert job.result is not None
    first, second = job.result["data"]["parents"]
    assert (first["job"], first["status"], first["result"]) == (bad.name, "failed", None)
    assert "broken" in first["error"]
    assert second["job"] == good.name
    assert second["result"] == {"commit": "4f1c"}
    assert not second["truncated"]


async def test_a_job_without_parents_gets_an_empty_list(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    job = await done(rt, make, data, repo, ECHO)
    assert job.result is not None
    assert job.result["data"]["parents"] == []


def parent(number: int, result: dict[str, Any]) -> Parent:
    """Return a completed parent."""
    status = Status.COMPLETED
    return Parent(number, Condition.SUCCESS, True, status, "noop", None, result, None)


def test_results_beyond_the_limit_are_left_out() -> None:
    large = {"x": "x" * (PARENTS_LIMIT - 100)}
    small = {"x": "x" * 200}
    bodies = parent_bodies([parent(1, large), parent(2, small), parent(3, {})])
    assert [body.truncated for body in bodies] == [False, True, False]
    assert bodies[1].result is None
    assert len(parent_bodies([parent(1, {})] * (MAX_PARENTS + 1))) == MAX_PARENTS
