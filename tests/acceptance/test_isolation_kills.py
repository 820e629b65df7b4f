"""Runs in threads and in processes that are killed at five points: each effect happens once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
import pytest

from draftsman.jobs.job import Job, Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation, Process
from tests.core.worker.workers import wait_for_end, wait_for_question
from tests.support.fork_server import NEW_INTERPRETER
from tests.support.slow import slow_except

POINTS: Final = ("before the handler", "in the handler", "effect", "question", "settlement")
APP: Final = """
import os, time
from pathlib import Path
from draftsman import BlockingRunContext, job, middleware

FOLDER = Path(os.environ["POINTS"])
LIMITS = {"max_attempts": 9, "max_retries": 9, "base_delay": 0.1, "max_delay": 0.2}

def reach(job, point):
    if job.payload["at"] == point and job.run == 1:
        (FOLDER / f"{point}.reached").write_text(str(os.getpid()))
        time.sleep(3600)

@middleware
def outside(job):
    reach(job, "before the handler")
    yield
    reach(job, "settlement")

def work(ctx, at):
    file = FOLDER / f"{at}.effects"
    def effect(key, invocation):
        with open(file, "a") as effects:
            effects.write(f"{key} {invocation}\\n")
        if key == "second":
            reach(ctx.job, "effect")
        return key
    def lookup(key, invocation):
        return key if file.exists() and f"{key} {invocation}" in file.read_text() else None
    for key in ("first", "second"):
        ctx.step(key, lambda i: effect(key, i), lambda i: lookup(key, i))
        reach(ctx.job, "in the handler")
    if at == "question":
        return ctx.ask("go", "Go?", choices=["yes"]).value
    return "done"

@job("kill:thread", **LIMITS)
def in_thread(ctx: BlockingRunContext, at: str) -> str:
    return work(ctx, at)

@job("kill:process", isolation="process", **LIMITS)
def in_process(ctx: BlockingRunContext, at: str) -> str:
    return work(ctx, at)
"""


def kill_worker(worker: Process, folder: Path) -> None:
    """Kill the worker, with which its threads and processes end."""
    worker.signal(signal.SIGKILL)


def kill_runs(worker: Process, folder: Path) -> None:
    """Kill the processes of the runs alone."""
    for file in folder.glob("*.reached"):
        os.kill(int(file.read_text()), signal.SIGKILL)


@pytest.mark.parametrize(
    ("type", "kill"),
    slow_except(
        [("kill:process", kill_worker)],
        [("kill:thread", kill_worker), ("kill:process", kill_worker), ("kill:process", kill_runs)],
    ),
)
async def test_a_run_that_is_killed_at_a_point_goes_on_and_repeats_no_effect(
    rt: Runtime,
    make: Factory,
    installation: Installation,
    tmp_path: Path,
    type: str,
    kill: Callable[[Process, Path], None],
) -> None:
    folder = tmp_path / "points"
    folder.mkdir()
    (installation.folder / "killed_app.py").write_text(APP)
    installation.configure(worker__lease=10, worker__heartbeat=1, worker__poll=0.2)
    env = {"POINTS": str(folder), NEW_INTERPRETER: "1"}
    jobs = {
        point: await make.queued(
            type=type, queue="default", payload={"at": point}, max_attempts=9, max_retries=9
        )
        for point in POINTS
    }

    def start() -> Process:
        return installation.start("worker", "--app", "killed_app", "--slots", "5", env=env)

    async def reached() -> bool:
        return len(list(folder.glob("*.reached"))) == len(POINTS) - 1

    worker = start()
    await wait_for_question(rt, jobs["question"])
    await until(reached, "the points")
    pids = {int(file.read_text()) for file in folder.glob("*.reached")}
    kill(worker, folder)
    if kill is kill_worker:
        await worker.end()
        worker = start()
    await make.answer(jobs["question"], "yes")
    ended: dict[str, Job] = {point: await wait_for_end(rt, jobs[point]) for point in POINTS}
    assert {point: job.status for point, job in ended.items()} == dict.fromkeys(
        POINTS, Status.COMPLETED
    )
    assert {point: job.run_count for point, job in ended.items()} == dict.fromkeys(POINTS, 2)
    for point in POINTS:
        effects = (folder / f"{point}.effects").read_text().splitlines()
        assert [line.split()[0] for line in effects] == ["first", "second"], point
    assert not any(_is_alive(pid) for pid in pids - {worker.pid})
    worker.signal(signal.SIGTERM)
    assert await worker.end() == 0, worker.output_text


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
