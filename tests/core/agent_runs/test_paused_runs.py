"""A paused run: its agent saves a checkpoint and exits, and the next run continues from it."""

from __future__ import annotations

from pathlib import Path

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.agent_jobs import (
    agent_worker,
    make_repository,
    submit_agent_job,
    wait_for_agent,
    wait_for_exit,
)
from tests.core.worker.workers import is_free, wait_for_end, wait_for_status

CODE = """
if start["run"] == 1:
    open("work.txt", "w").write("begun")
    assert hear()["type"] == "park"
    say("checkpoint", data={"at": 1})
    sys.exit(0)
got = [start["run"], start["checkpoint"], open("work.txt").read()]
say("result", summary="", data={"got": got})
"""


async def test_a_pause_parks_the_agent_at_a_checkpoint_and_a_resume_continues_from_it(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, make_repository(tmp_path / "repo"))
    async with agent_worker(rt, tmp_path / "data", CODE, abort=60) as process:
        pid = await wait_for_agent(tmp_path / "data", "work.txt")
        await rt.job_control.pause(number, make.owner, "wait")
        await wait_for_status(rt, number, Status.RESUMED)
        await wait_for_exit(pid)
        await until(lambda: is_free(process), "a free slot")
    async with agent_worker(rt, tmp_path / "other", CODE) as process:
        await until(lambda: is_free(process), "a worker that claims nothing")
        assert (await rt.read_model.job(number)).status is Status.RESUMED
        await rt.job_control.resume(number, make.owner)
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    assert (job.result or {})["data"]["got"] == [2, {"at": 1}, "begun"]
