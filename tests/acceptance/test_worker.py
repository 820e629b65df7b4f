"""The worker as a process: signals, kills, stops, and what it owes to the work of others."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

from draftsman.domain.job import OnLost, Status
from draftsman.runtime import Runtime
from tests.acceptance.processes import COMMAND, Installation, lines
from tests.core.loops.agent_jobs import (
    git,
    is_gone,
    make_repository,
    submit_agent_job,
    wait_for_agent,
    wait_for_exit,
    wait_for_file,
)
from tests.core.loops.workers import event_kinds, last_event, run_of, wait_for_end, wait_for_status
from tests.factories import Factory
from tests.support.waits import until

S = Status
SAVES_AND_WAITS = """
import time
if start["checkpoint"] is None:
    open("half.txt", "w").write("half\\n")
    say("checkpoint", id="c", data={"at": 7}); hear()
    open(f"{start['run']}.pid", "w").write("runs\\n")
    while True: time.sleep(60)
open("whole.txt", "w").write("whole\\n")
say("result", summary="", data={"half": open("half.txt").read(), "at": start["checkpoint"]})
"""
"""An agent that hangs after its checkpoint, and goes on from it in a later run."""


async def hanging(place: Installation, make: Factory, tmp_path: Path) -> int:
    """Submit a job for that agent."""
    place.configure(SAVES_AND_WAITS)
    repo = make_repository(tmp_path / "repo")
    return await submit_agent_job(make, repo)


async def gone_from(rt: Runtime, count: int) -> None:
    """Return once so many workers are registered."""

    async def look() -> bool:
        return len(await rt.read_model.workers()) == count

    await until(look, f"{count} workers")


HANDLERS = """
import asyncio, os
from pathlib import Path
from draftsman import Done
HERE = Path(os.environ["DRAFTSMAN_DATA_DIR"]).parent
async def file(name):
    while not (HERE / name).exists():
        await asyncio.sleep(0.01)
async def held(ctx):
    (HERE / f"{ctx.job.number}.{ctx.job.run}").write_text("runs\\n")
    await file("go")
    return Done({"run": ctx.job.run})
async def stuck(ctx):
    (HERE / f"{ctx.job.number}.{ctx.job.run}").write_text("runs\\n")
    while True:
        try: await asyncio.sleep(60)
        except asyncio.CancelledError: pass
async def naps(ctx):
    (HERE / f"{ctx.job.number}.{ctx.job.run}").write_text("runs\\n")
    await ctx.sleep("nap", 2.0)
    return Done({"run": ctx.job.run})
async def pays(ctx):
    async def pay(invocation):
        with open(HERE / "paid", "a") as ledger:
            ledger.write(invocation + "\\n")
        await file("never")
    async def look(invocation):
        ledger = HERE / "paid"
        return "paid before" if ledger.exists() and invocation in ledger.read_text() else None
    return Done({"how": await ctx.step("pay", pay, look)})
async def saves(ctx):
    seen = await ctx.saved()
    if ctx.job.run == 1 and ctx.job.retry_of is None:
        await ctx.checkpoint({"at": 7})
        (HERE / f"{ctx.job.number}.1").write_text("runs\\n")
        await file("never")
    return Done({"run": ctx.job.run, "seen": seen})
"""


def handlers(place: Installation, **settings: object) -> None:
    """Give a place handlers of its user's own."""
    (place.folder / "user_handlers.py").write_text(HANDLERS)
    names = ("held", "stuck", "naps", "pays", "saves")
    paths = {f"handlers.{name}": f"user_handlers:{name}" for name in names}
    place.configure(None, **paths, **settings)


async def test_sigterm_lets_runs_finish_and_ends_with_0(
    rt: Runtime, make: Factory, place: Installation
) -> None:
    handlers(place)
    number = await make.queued(type="held", queue="default")
    worker = place.start("worker")
    await wait_for_file(place.folder / f"{number}.1")
    worker.signal(signal.SIGTERM)
    await worker.says("draining 1 runs")
    later = await make.queued(type="held", queue="default")
    (place.folder / "go").touch()
    assert await worker.end() == 0
    assert (await rt.read_model.job(number)).result == {"run": 1}
    assert (await rt.read_model.job(later)).status is S.QUEUED
    assert await rt.read_model.workers() == []
    assert "Traceback" not in worker.output_text


async def test_sigterm_hands_an_agents_job_back_and_another_worker_goes_on(
    rt: Runtime, make: Factory, places: Callable[[str], Installation], tmp_path: Path
) -> None:
    here, there = places("here"), places("there")
    number = await hanging(here, make, tmp_path)
    there.configure(SAVES_AND_WAITS)
    quick = {"DRAFTSMAN_WORKER__DRAIN": "0", "DRAFTSMAN_WORKER__ABORT": "0.3"}
    worker = here.start("worker", env=quick)
    agent = await wait_for_agent(tmp_path, "1.pid")
    worker.signal(signal.SIGTERM)
    job = await wait_for_status(rt, number, S.RESUMED)
    assert (job.attempts, job.retry_count) == (0, 0)
    assert await worker.end() == 0
    assert await is_gone(agent)
    there.start("worker")
    assert (await wait_for_end(rt, number)).result is not None


async def test_a_second_signal_ends_it_at_once_and_its_agent_too(
    rt: Runtime, make: Factory, place: Installation, tmp_path: Path
) -> None:
    number = await hanging(place, make, tmp_path)
    worker = place.start("worker")
    agent = await wait_for_agent(tmp_path, "1.pid")
    worker.signal(signal.SIGINT)
    await worker.says("SIGINT: stopping")
    worker.signal(signal.SIGTERM)
    assert await worker.end() == 1
    assert lines(worker.output_text, "SIGTERM again: exiting now")
    await wait_for_exit(agent)
    assert (await rt.read_model.job(number)).status is S.RUNNING


async def test_a_handler_that_never_ends_does_not_keep_the_process(
    rt: Runtime, make: Factory, place: Installation
) -> None:
    handlers(place, worker__drain=0, worker__abort=0.1)
    number = await make.queued(type="stuck", queue="default")
    worker = place.start("worker")
    await wait_for_file(place.folder / f"{number}.1")
    worker.signal(signal.SIGTERM)
    assert await worker.end() == 1
    job = await rt.read_model.job(number)
    assert (job.status, job.attempts) == (S.RESUMED, 0)
    assert "Traceback" not in worker.output_text


async def test_a_killed_worker_takes_its_agent_along_and_another_host_goes_on(
    rt: Runtime, make: Factory, places: Callable[[str], Installation], tmp_path: Path
) -> None:
    here, there = places("here"), places("there")
    number = await hanging(here, make, tmp_path)
    there.configure(SAVES_AND_WAITS)
    worker = here.start("worker")
    agent = await wait_for_agent(tmp_path, "1.pid")
    worker.signal(signal.SIGKILL)
    await worker.end()
    await wait_for_exit(agent)
    there.start("worker")
    job = await wait_for_end(rt, number)  # long before the lease of 300 s is over
    assert (job.attempts, job.last_error) == (1, "the worker was lost")
    assert (job.result or {})["data"] == {"half": "half\n", "at": {"at": 7}}
    assert (job.result or {})["files_changed"] == 2
    assert (await run_of(rt, number)).status == "interrupted"
    assert git("show", f"draftsman/{job.name}:whole.txt", cwd=tmp_path / "repo") == "whole"


async def test_what_follows_a_kill_is_what_each_job_said_when_it_was_submitted(
    rt: Runtime, place: Installation
) -> None:
    handlers(place)
    numbers = {}
    for on_lost in OnLost:
        done = await place.run("submit", "--type", "saves", "--on-lost", on_lost, "--json")
        numbers[on_lost] = json.loads(done.stdout)["number"]
    worker = place.start("worker")
    for number in numbers.values():
        await wait_for_file(place.folder / f"{number}.1")
    worker.signal(signal.SIGKILL)
    await worker.end()
    place.start("worker")
    jobs = {on_lost: await wait_for_end(rt, number) for on_lost, number in numbers.items()}
    for on_lost in (OnLost.RETRY, OnLost.RESUME):
        assert jobs[on_lost].result == {"run": 2, "seen": {"at": 7}}
    for on_lost in (OnLost.FAIL, OnLost.NEW_JOB):
        assert (jobs[on_lost].status, jobs[on_lost].run_count) == (S.FAILED, 1)
    for job in jobs.values():
        assert (job.attempts, job.last_error) == (1, "the worker was lost")
    lost, retried = numbers[OnLost.NEW_JOB], await event_kinds(rt, numbers[OnLost.RETRY])
    assert "job_retrying" in retried
    [new] = [one.number for one in await rt.read_model.jobs() if one.number not in numbers.values()]
    made = await wait_for_end(rt, new)
    assert (made.retry_of, made.chain_length, made.attempts) == (lost, 1, 0)
    assert made.result == {"run": 1, "seen": None}


async def test_a_sleep_across_the_kill_of_its_worker_spends_nothing(
    rt: Runtime, make: Factory, place: Installation
) -> None:
    handlers(place)
    number = await make.queued(type="naps", queue="default")
    worker = place.start("worker")
    slept = await wait_for_status(rt, number, S.SCHEDULED)
    worker.signal(signal.SIGKILL)
    await worker.end()
    place.start("worker")
    job = await wait_for_end(rt, number)
    assert (job.status, job.result) == (S.COMPLETED, {"run": 2})
    assert (job.attempts, job.retry_count, job.run_at) == (0, 0, slept.run_at)
    woken = await last_event(rt, number, "job_woken")
    assert slept.run_at is not None
    assert woken.created_at >= slept.run_at
    assert [run.status for run in await rt.read_model.runs(number)] == ["paused", "completed"]


async def test_an_effect_is_made_once_across_the_kill_of_its_worker(
    rt: Runtime, make: Factory, place: Installation
) -> None:
    handlers(place)
    number = await make.queued(type="pays", queue="default", on_lost="resume")
    worker = place.start("worker")
    paid = await wait_for_file(place.folder / "paid")
    worker.signal(signal.SIGKILL)
    await worker.end()
    place.start("worker")
    assert (await wait_for_end(rt, number)).result == {"how": "paid before"}
    assert (place.folder / "paid").read_text() == paid
    [step] = await rt.checkpoints.steps(number)
    assert (step.status, step.invocation_id) == ("done", paid.strip())


async def test_a_stopped_worker_loses_its_jobs_and_writes_nothing_when_it_wakes(
    rt: Runtime, make: Factory, places: Callable[[str], Installation], tmp_path: Path
) -> None:
    """The lease is 1.5 s here: the guard kills the agent while its worker sleeps."""
    here, there = places("here"), places("there")
    number = await hanging(here, make, tmp_path)
    there.configure(SAVES_AND_WAITS)
    quick = {
        "DRAFTSMAN_WORKER__LEASE": "1.5",
        "DRAFTSMAN_WORKER__HEARTBEAT": "0.3",
        "DRAFTSMAN_SWEEPS__INTERVAL": "0.3",
        "DRAFTSMAN_SWEEPS__LEASE": "1",
    }
    worker = here.start("worker", env=quick)
    agent = await wait_for_agent(tmp_path, "1.pid")
    worker.signal(signal.SIGSTOP)
    there.start("worker", env=quick)
    job = await wait_for_end(rt, number)
    await wait_for_exit(agent)
    assert (job.status, job.run_count, job.attempts) == (S.COMPLETED, 2, 1)
    before = await trace(rt, number)
    worker.signal(signal.SIGCONT)
    await worker.says("stopping all runs")
    await worker.says("lost its lease; the run was stopped without a result")
    await gone_from(rt, 2)
    assert await trace(rt, number) == before
    worker.signal(signal.SIGTERM)
    assert await worker.end() == 0
    assert await trace(rt, number) == before
    assert list((here.data / "runs").iterdir()) == []
    assert "Traceback" not in worker.output_text


async def trace(rt: Runtime, number: int) -> list[object]:
    return [
        await rt.read_model.job(number),
        await rt.read_model.job_events(number),
        await rt.read_model.runs(number),
        await rt.checkpoints.logs(number),
        await rt.checkpoints.artifacts(number),
    ]


async def test_a_closed_terminal_ends_it_in_order(
    rt: Runtime, make: Factory, place: Installation, tmp_path: Path
) -> None:
    number = await hanging(place, make, tmp_path)
    quick = {"DRAFTSMAN_WORKER__DRAIN": "0", "DRAFTSMAN_WORKER__ABORT": "0.3"}
    worker, screen = place.on_terminal("worker", env=quick)
    agent = await wait_for_agent(tmp_path, "1.pid")
    os.close(screen)
    assert await worker.end() == 0
    job = await rt.read_model.job(number)
    assert (job.status, job.attempts, await rt.read_model.workers()) == (S.RESUMED, 0, [])
    await wait_for_exit(agent)


async def test_a_full_disk_for_the_log_is_told_once_and_work_goes_on(
    rt: Runtime, make: Factory, place: Installation
) -> None:
    handlers(place)
    (place.folder / "go").touch()
    worker = place.start("worker", env={"DRAFTSMAN_LOG__FILE": "/dev/full"})
    for _ in range(2):
        number = await make.queued(type="held", queue="default")
        assert (await wait_for_end(rt, number)).status is S.COMPLETED
    worker.signal(signal.SIGTERM)
    assert await worker.end() == 0
    [line] = lines(worker.output_text, "/dev/full")
    assert "No space left on device; logging to stderr only" in line
    assert "Traceback" not in worker.output_text


async def test_no_secret_of_the_worker_reaches_its_agent(
    rt: Runtime, make: Factory, place: Installation, tmp_path: Path
) -> None:
    place.configure(
        """
def read(path):
    try: return open(path, "rb").read().decode("latin-1")
    except OSError: return ""
fds = {n: os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
       if os.path.exists(f"/proc/self/fd/{n}")}
above = [read(f"/proc/{os.getppid()}/{name}") for name in ("environ", "cmdline")]
say("result", summary="", data={"env": dict(os.environ), "fds": fds, "above": above})
"""
    )
    number = await submit_agent_job(make, make_repository(tmp_path / "repo"))
    place.start("worker", env={"PGPASSWORD": "hush-1", "GITHUB_TOKEN": "hush-2", "X_KEY": "hush-3"})
    found = ((await wait_for_end(rt, number)).result or {})["data"]
    text = json.dumps(found)
    assert rt.settings.database_url is not None
    assert rt.settings.database_url.get_secret_value() not in text
    assert "hush-" not in text
    assert not [name for name in found["env"] if name.startswith(("DRAFTSMAN", "PG"))]
    assert {target.partition(":")[0] for target in found["fds"].values()} <= {"pipe", "/dev/null"}


async def test_a_worker_whose_parent_died_before_it_looked_ends_too(
    rt: Runtime, place: Installation, tmp_path: Path
) -> None:
    command = " ".join([*COMMAND, "worker", "--parent", "$$"])
    script = f"{command} >{tmp_path}/orphan.log 2>&1 & echo $!"
    shell = await asyncio.create_subprocess_exec(
        "sh", "-c", script, env=place.environment(), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await shell.communicate()
    await wait_for_exit(int(out))
    log = (tmp_path / "orphan.log").read_text()
    assert re.search("the supervisor is gone(?: during startup)?: stopping", log), log


async def test_a_handler_that_cannot_be_loaded_is_told_in_one_line(place: Installation) -> None:
    place.configure(None, **{"handlers.report": "no_such_module:f"})
    bad = await place.run("worker")
    assert (bad.returncode, bad.stderr.count("\n")) == (2, 1)
    assert "handlers.report: cannot import no_such_module:f" in bad.stderr
