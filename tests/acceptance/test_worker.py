"""Worker processes: signals, kills, stops, and their effects on other workers' jobs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from draftsman.jobs.job import OnLost, Status
from draftsman.runtime import Runtime
from draftsman.worker.watchdog import EXIT_CODE
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.acceptance.processes import COMMAND, Installation, lines
from tests.core.worker.agent_jobs import (
    git,
    is_gone,
    make_repository,
    submit_agent_job,
    wait_for_agent,
    wait_for_exit,
    wait_for_file,
)
from tests.core.worker.cuttable_proxy import open_proxied
from tests.core.worker.workers import event_kinds, last_event, run_of, wait_for_end, wait_for_status
from tests.support.statements import value

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
"""An agent that hangs after its checkpoint, and continues from it in a later run."""


async def hanging(installation: Installation, make: Factory, tmp_path: Path) -> int:
    """Submit a job for that agent."""
    installation.configure(SAVES_AND_WAITS)
    repo = make_repository(tmp_path / "repo")
    return await submit_agent_job(make, repo)


async def gone_from(rt: Runtime, count: int) -> None:
    """Wait until `left` workers are registered."""

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
async def dies(ctx):
    await asyncio.sleep(0.3)
    os.kill(os.getpid(), 9)
async def slow(ctx):
    await asyncio.sleep(4)
    return Done({"run": ctx.job.run})
async def saves(ctx):
    seen = await ctx.saved()
    if ctx.job.run == 1 and ctx.job.retry_of is None:
        await ctx.checkpoint({"at": 7})
        (HERE / f"{ctx.job.number}.1").write_text("runs\\n")
        await file("never")
    return Done({"run": ctx.job.run, "seen": seen})
"""


def handlers(installation: Installation, **settings: object) -> None:
    """Configure an installation with handlers of its user."""
    (installation.folder / "user_handlers.py").write_text(HANDLERS)
    names = ("held", "stuck", "naps", "pays", "saves", "dies", "slow")
    paths = {f"handlers.{name}": f"user_handlers:{name}" for name in names}
    installation.configure(None, **paths, **settings)


async def test_a_worker_whose_handler_goes_on_exits_before_its_lease_ends(
    rt: Runtime, make: Factory, database_url: str, tmp_path: Path
) -> None:
    """Behind a network that drops packets; another worker may run the job from then on."""
    lease = 3.0
    number = await make.queued(queue="default", type="stuck")
    async with open_proxied(database_url) as (proxy, _):
        installation = Installation(tmp_path / "here", proxy.url)
        handlers(installation, worker__lease=lease, worker__heartbeat=0.5)
        try:
            worker = installation.start("worker")
            await wait_for_file(tmp_path / "here" / f"{number}.1")
            proxy.drop_packets()
            assert await worker.end() == EXIT_CODE
            now = await rt.db.run_transaction(lambda conn: value(conn, "SELECT draftsman.now()"))
            run = await run_of(rt, number)
            assert now < run.heartbeat_at + timedelta(seconds=lease)
            assert f"D-{number} run 1 did not stop when its lease ended" in worker.output_text
        finally:
            installation.close()


async def test_sigterm_lets_runs_finish_and_ends_with_0(
    rt: Runtime, make: Factory, installation: Installation
) -> None:
    handlers(installation)
    number = await make.queued(type="held", queue="default")
    worker = installation.start("worker")
    await wait_for_file(installation.folder / f"{number}.1")
    worker.signal(signal.SIGTERM)
    await worker.says("draining 1 runs")
    later = await make.queued(type="held", queue="default")
    (installation.folder / "go").touch()
    assert await worker.end() == 0
    assert (await rt.read_model.job(number)).result == {"run": 1}
    assert (await rt.read_model.job(later)).status is S.QUEUED
    assert await rt.read_model.workers() == []
    assert "Traceback" not in worker.output_text


@pytest.mark.slow(
    fast="tests/core/agent_runs/test_failed_runs.py::test_a_shutdown_lets_the_agent_save_and_releases_the_job"
)
async def test_sigterm_releases_an_agents_job_and_another_worker_resumes_it(
    rt: Runtime, make: Factory, installations: Callable[[str], Installation], tmp_path: Path
) -> None:
    here = installations("here")
    there = installations("there")
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


async def test_second_signal_kills_the_worker_and_its_agent(
    rt: Runtime, make: Factory, installation: Installation, tmp_path: Path
) -> None:
    number = await hanging(installation, make, tmp_path)
    worker = installation.start("worker")
    agent = await wait_for_agent(tmp_path, "1.pid")
    worker.signal(signal.SIGINT)
    await worker.says("SIGINT: stopping")
    worker.signal(signal.SIGTERM)
    assert await worker.end() == 1
    assert lines(worker.output_text, "SIGTERM again: exiting now")
    await wait_for_exit(agent)
    assert (await rt.read_model.job(number)).status is S.RUNNING


async def test_handler_that_never_returns_does_not_block_the_exit(
    rt: Runtime, make: Factory, installation: Installation
) -> None:
    handlers(installation, worker__drain=0, worker__abort=0.1)
    number = await make.queued(type="stuck", queue="default")
    worker = installation.start("worker")
    await wait_for_file(installation.folder / f"{number}.1")
    worker.signal(signal.SIGTERM)
    assert await worker.end() == 1
    job = await rt.read_model.job(number)
    assert (job.status, job.attempts) == (S.RESUMED, 0)
    assert "Traceback" not in worker.output_text


async def test_agent_of_a_killed_worker_ends_and_another_host_resumes(
    rt: Runtime, make: Factory, installations: Callable[[str], Installation], tmp_path: Path
) -> None:
    here = installations("here")
    there = installations("there")
    number = await hanging(here, make, tmp_path)
    there.configure(SAVES_AND_WAITS)
    worker = here.start("worker")
    agent = await wait_for_agent(tmp_path, "1.pid")
    worker.signal(signal.SIGKILL)
    await worker.end()
    await wait_for_exit(agent)
    there.start("worker")
    job = await wait_for_end(rt, number)  # long before the end of the lease of 300 s
    assert (job.attempts, job.last_error) == (1, "the worker was lost")
    assert (job.result or {})["data"] == {"half": "half\n", "at": {"at": 7}}
    assert (job.result or {})["files_changed"] == 2
    assert (await run_of(rt, number)).status == "interrupted"
    assert git("show", f"draftsman/{job.name}:whole.txt", cwd=tmp_path / "repo") == "whole"


@pytest.mark.slow(
    fast="tests/core/jobs/runs/test_rescue.py::test_a_lost_run_uses_an_attempt_and_follows_on_lost"
)
async def test_on_lost_of_each_job_applies_after_a_kill(
    rt: Runtime, installation: Installation
) -> None:
    handlers(installation)
    numbers = {}
    for on_lost in OnLost:
        done = await installation.run("submit", "--type", "saves", "--on-lost", on_lost, "--json")
        numbers[on_lost] = json.loads(done.stdout)["number"]
    worker = installation.start("worker")
    for number in numbers.values():
        await wait_for_file(installation.folder / f"{number}.1")
    worker.signal(signal.SIGKILL)
    await worker.end()
    installation.start("worker")
    jobs = {on_lost: await wait_for_end(rt, number) for on_lost, number in numbers.items()}
    for on_lost in (OnLost.RETRY, OnLost.RESUME):
        assert jobs[on_lost].result == {"run": 2, "seen": {"at": 7}}
    for on_lost in (OnLost.FAIL, OnLost.NEW_JOB):
        assert (jobs[on_lost].status, jobs[on_lost].run_count) == (S.FAILED, 1)
    for job in jobs.values():
        assert (job.attempts, job.last_error) == (1, "the worker was lost")
    lost = numbers[OnLost.NEW_JOB]
    retried = await event_kinds(rt, numbers[OnLost.RETRY])
    assert "job_retrying" in retried
    [new] = [
        listed.number
        for listed in await rt.read_model.jobs()
        if listed.number not in numbers.values()
    ]
    new_job = await wait_for_end(rt, new)
    assert (new_job.retry_of, new_job.chain_length, new_job.attempts) == (lost, 1, 0)
    assert new_job.result == {"run": 1, "seen": None}


@pytest.mark.slow(
    fast="tests/core/handlers/test_context.py::test_a_sleep_ends_at_the_time_of_its_first_run"
)
async def test_sleeping_job_loses_no_attempt_when_its_worker_is_killed(
    rt: Runtime, make: Factory, installation: Installation
) -> None:
    handlers(installation)
    number = await make.queued(type="naps", queue="default")
    worker = installation.start("worker")
    slept = await wait_for_status(rt, number, S.SCHEDULED)
    worker.signal(signal.SIGKILL)
    await worker.end()
    installation.start("worker")
    job = await wait_for_end(rt, number)
    assert (job.status, job.result) == (S.COMPLETED, {"run": 2})
    assert (job.attempts, job.retry_count, job.run_at) == (0, 0, slept.run_at)
    woken = await last_event(rt, number, "job_woken")
    assert slept.run_at is not None
    assert woken.created_at >= slept.run_at
    assert [run.status for run in await rt.read_model.runs(number)] == ["parked", "completed"]


@pytest.mark.slow(
    fast="tests/core/handlers/test_context.py::test_an_unrecorded_effect_is_looked_up_and_not_repeated"
)
async def test_effect_is_made_once_although_its_worker_is_killed(
    rt: Runtime, make: Factory, installation: Installation
) -> None:
    handlers(installation)
    number = await make.queued(type="pays", queue="default", on_lost="resume")
    worker = installation.start("worker")
    paid = await wait_for_file(installation.folder / "paid")
    worker.signal(signal.SIGKILL)
    await worker.end()
    installation.start("worker")
    assert (await wait_for_end(rt, number)).result == {"how": "paid before"}
    assert (installation.folder / "paid").read_text() == paid
    [step] = await rt.checkpoints.steps(number)
    assert (step.status, step.invocation_id) == ("done", paid.strip())


@pytest.mark.slow(
    fast="tests/core/sandbox/processes/test_guard.py::test_an_agent_and_its_daemon_die_when_their_worker_is_suspended"
)
async def test_suspended_worker_loses_its_jobs_and_writes_nothing_later(
    rt: Runtime, make: Factory, installations: Callable[[str], Installation], tmp_path: Path
) -> None:
    """The lease is 1.5 s here: the guard kills the agent while its worker is suspended."""
    here = installations("here")
    there = installations("there")
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
    await worker.says("its lease")  # lost, or its agent was seen to fail after losing it
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


@pytest.mark.slow(
    fast="tests/tui/cli/processes/test_serve.py::test_a_closed_terminal_shuts_down_all_processes"
)
async def test_worker_shuts_down_when_its_terminal_closes(
    rt: Runtime, make: Factory, installation: Installation, tmp_path: Path
) -> None:
    number = await hanging(installation, make, tmp_path)
    quick = {"DRAFTSMAN_WORKER__DRAIN": "0", "DRAFTSMAN_WORKER__ABORT": "0.3"}
    worker, screen = installation.on_terminal("worker", env=quick)
    agent = await wait_for_agent(tmp_path, "1.pid")
    os.close(screen)
    assert await worker.end() == 0
    job = await rt.read_model.job(number)
    assert (job.status, job.attempts, await rt.read_model.workers()) == (S.RESUMED, 0, [])
    await wait_for_exit(agent)


async def test_full_disk_of_the_log_is_reported_once_and_jobs_continue(
    rt: Runtime, make: Factory, installation: Installation
) -> None:
    handlers(installation)
    (installation.folder / "go").touch()
    worker = installation.start("worker", env={"DRAFTSMAN_LOG__FILE": "/dev/full"})
    for _ in range(2):
        number = await make.queued(type="held", queue="default")
        assert (await wait_for_end(rt, number)).status is S.COMPLETED
    worker.signal(signal.SIGTERM)
    assert await worker.end() == 0
    [line] = lines(worker.output_text, "/dev/full")
    assert "No space left on device; logging to stderr only" in line
    assert "Traceback" not in worker.output_text


async def test_no_secret_of_the_worker_reaches_its_agent(
    rt: Runtime, make: Factory, installation: Installation, tmp_path: Path
) -> None:
    installation.configure(
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
    installation.start(
        "worker", env={"PGPASSWORD": "hush-1", "GITHUB_TOKEN": "hush-2", "X_KEY": "hush-3"}
    )
    secrets = ((await wait_for_end(rt, number)).result or {})["data"]
    text = json.dumps(secrets)
    assert rt.settings.database_url is not None
    assert rt.settings.database_url.get_secret_value() not in text
    assert "hush-" not in text
    own = [name for name in secrets["env"] if name.startswith(("DRAFTSMAN", "PG"))]
    assert own == ["DRAFTSMAN_SOCKET"]
    assert {target.partition(":")[0] for target in secrets["fds"].values()} <= {"pipe", "/dev/null"}


async def test_worker_exits_if_its_parent_died_before_the_first_check(
    rt: Runtime, installation: Installation, tmp_path: Path
) -> None:
    command = " ".join([*COMMAND, "worker", "--parent", "$$"])
    script = f"{command} >{tmp_path}/orphan.log 2>&1 & echo $!"
    shell = await asyncio.create_subprocess_exec(
        "sh", "-c", script, env=installation.environment(), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await shell.communicate()
    await wait_for_exit(int(out))
    log = (tmp_path / "orphan.log").read_text()
    assert re.search("the supervisor is gone(?: during startup)?: stopping", log), log


async def test_unloadable_handler_is_reported_in_one_line(installation: Installation) -> None:
    installation.configure(None, **{"handlers.report": "no_such_module:f"})
    bad = await installation.run("worker")
    assert (bad.returncode, bad.stderr.count("\n")) == (2, 1)
    assert "handlers.report: cannot import no_such_module:f" in bad.stderr


@pytest.mark.slow(
    fast="tests/core/jobs/runs/test_suspects.py"
    "::test_the_job_that_ends_its_workers_is_convicted_and_its_neighbors_complete"
)
async def test_a_job_that_kills_its_worker_takes_no_neighbor_with_it(
    rt: Runtime, make: Factory, installation: Installation
) -> None:
    handlers(installation)
    neighbors = [await make.queued(queue="default", type="slow") for _ in range(4)]
    poison = await make.queued(queue="default", type="dies", max_attempts=1)
    workers = [installation.start("worker")]

    async def over() -> bool:
        if workers[-1].popen.poll() is not None:
            workers.append(installation.start("worker"))
        jobs = [await rt.read_model.job(number) for number in (*neighbors, poison)]
        return all(job.finished_at is not None for job in jobs)

    await until(over, "the end of all jobs", 120)
    for number in neighbors:
        job = await rt.read_model.job(number)
        assert (job.status, job.attempts) == (S.COMPLETED, 0)
    assert (await rt.read_model.job(poison)).status is S.DEAD_LETTER
    assert len(workers) == 4, "twice together, then alone, which is its only attempt"


@pytest.mark.slow(fast="tests/core/test_host.py::test_a_step_of_the_wall_clock_ends_no_process")
async def test_a_step_of_the_wall_clock_ends_no_worker(
    rt: Runtime, make: Factory, installation: Installation, tmp_path: Path
) -> None:
    """The kernel moves the time of its boot in /proc/stat; here a file is mounted over it."""
    stat = tmp_path / "stat"
    stat.write_text(Path("/proc/stat").read_text())
    script = 'mount --bind "$0" /proc/stat && exec "$@"'
    through = ("unshare", "--mount", "sh", "-c", script, str(stat))
    tried = await asyncio.to_thread(subprocess.run, [*through, "true"], capture_output=True)
    if tried.returncode:
        pytest.skip("a file cannot be mounted here: this needs root")
    handlers(installation, worker__heartbeat=0.5)
    number = await make.queued(queue="default", type="held")
    installation.start("worker", through=through)
    await wait_for_file(installation.folder / f"{number}.1")
    stat.write_text(
        re.sub(r"btime (\d+)", lambda found: f"btime {int(found[1]) + 2}", stat.read_text())
    )
    for _ in range(2):  # the leader looks for dead workers before it promotes a job
        due = await make.queued(queue="elsewhere", type="held", delay=1)
        await wait_for_status(rt, due, S.QUEUED)
    assert (await rt.read_model.job(number)).status is S.RUNNING
    (installation.folder / "go").write_text("now")
    assert (await wait_for_end(rt, number)).run_count == 1
