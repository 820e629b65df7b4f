"""Runs in processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from draftsman import Client, Draftsman
from draftsman.job_types import declaration
from draftsman.job_types.app import handlers_of, with_limits
from draftsman.job_types.declaration import JobType
from draftsman.job_types.process_runs import ProcessRuns
from draftsman.jobs.job import Status
from draftsman.processes.host import login
from draftsman.runtime import Runtime, wire
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.waits import until
from tests.core.job_types import process_jobs
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)

TYPES: dict[str, JobType[Any, Any]] = {
    declared.name: declared
    for declared in (
        process_jobs.story,
        process_jobs.ends,
        process_jobs.computes,
        process_jobs.threads,
        process_jobs.plans,
        process_jobs.reads_secret,
    )
}

for _name in TYPES:  # a worker of another test in this process would find them
    declaration.declared_types.pop(_name, None)


@pytest.fixture
async def client(tmp_path: Path, database_url: str) -> AsyncIterator[Client]:
    config = tmp_path / "draftsman.toml"
    roles = '["invoker", "responder", "operator"]'
    config.write_text(f'[people.me]\nlogin = "{login()}"\nroles = {roles}\n')
    async with Draftsman(database_url, config=config) as client:
        yield client


@pytest.fixture
async def processes() -> AsyncIterator[ProcessRuns]:
    async with ProcessRuns([process_jobs.__name__], grace=0.5) as processes:
        yield processes


@pytest.fixture
async def worker(
    rt: Runtime, processes: ProcessRuns, tmp_path: Path
) -> AsyncIterator[WorkerProcess]:
    secret = tmp_path / "zoo"
    secret.write_text("tiger-in-a-box\n")
    settings = runtime_with(rt, secrets={"zoo": {"file": str(secret)}}).settings
    services = wire(with_limits(settings, TYPES), rt.db, False)
    handlers = handlers_of(TYPES, {}, processes)
    async with running_worker(services, handlers, slots=8, leader=True) as process:
        yield process


async def test_runs_in_processes(
    rt: Runtime, client: Client, worker: WorkerProcess, tmp_path: Path
) -> None:
    """All at once: the import of the app costs more than any of them."""
    await asyncio.gather(
        _asks_steps_and_prints(rt, client, tmp_path),
        _each_end_is_that_of_the_run(rt, client),
        _threads_use_the_context(client),
        _reads_a_secret(rt, client),
        _types_and_constants_cross_the_pipe(rt, client),
    )
    await asyncio.gather(
        _computing_ends_at_the_time_limit(rt, client, tmp_path / "pids"),
        _computing_ends_at_the_time_limit(rt, client, tmp_path / "stubborn", stubborn=True),
    )


async def _asks_steps_and_prints(rt: Runtime, client: Client, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    story = process_jobs.story.with_options(client=client)
    submitted = await story.submit_async(name="anna", effects=str(effects))
    await wait_for_question(rt, submitted.number)
    await client.answer(f"{submitted.name}/1", "blue")
    result = await submitted.result_async(30)
    assert result["pid"] != os.getpid()
    assert result | {"pid": 0} == {
        "name": "ANNA",
        "color": "blue",
        "saved": {"color": "blue"},
        "pid": 0,
    }
    assert len(effects.read_text().splitlines()) == 1
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(submitted.number))
    assert "step ANNA\n" in log
    assert "half a line\n" in log
    assert "logged\n" in log
    assert not psutil.pid_exists(result["pid"])


async def _each_end_is_that_of_the_run(rt: Runtime, client: Client) -> None:
    ends = process_jobs.ends.with_options(client=client, max_attempts=1, max_retries=0)
    ways = {
        "killed": "the process of the run was killed by SIGKILL (its memory limit is 256 MB)",
        "exit": "the process of the run exited with code 3 before its function returned",
        "system exit": "SystemExit: 3",
        "failure": "the bank said no",
        "mistake": "TypeError: object of type 'int' has no len() (process_jobs.py:",
        "step": "KeyError: 'key'",
        "usage": "question 'x': text: must not be empty",
        "memory": "MemoryError",
        "unpicklable": "TypeError: the result cannot be sent",
    }
    dead = dict.fromkeys(
        ("killed", "exit", "system exit", "step", "memory", "unpicklable"), Status.DEAD_LETTER
    )
    jobs = {way: await ends.submit_async(way) for way in ways}
    ended = {way: await wait_for_end(rt, job.number) for way, job in jobs.items()}
    assert {way: job.status for way, job in ended.items()} == dict.fromkeys(
        ways, Status.FAILED
    ) | dead
    for way, error in ways.items():
        assert (ended[way].last_error or "").startswith(error), (way, ended[way].last_error)
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(jobs["mistake"].number))
    assert "return len(3)" in log, "the traceback of the process"
    snoozed = await ends.submit_async("snooze")
    assert await snoozed.result_async(30) == 2


async def _computing_ends_at_the_time_limit(
    rt: Runtime, client: Client, pids: Path, *, stubborn: bool = False
) -> None:
    """All that the process started ends with it."""
    computes = process_jobs.computes.with_options(client=client)
    submitted = await computes.submit_async(str(pids), stubborn)
    ended = await wait_for_end(rt, submitted.number)
    assert ended.status is Status.FAILED
    assert (ended.last_error or "").startswith("ran for 0.5 s")
    for pid in map(int, pids.read_text().split()):
        await until(partial(_is_gone, pid), f"the end of {pid}")


async def _types_and_constants_cross_the_pipe(rt: Runtime, client: Client) -> None:
    job = await process_jobs.plans.with_options(client=client).submit_async()
    await wait_for_status(rt, job.number, Status.WAITING_FOR_INPUT)
    (first, second, _), _ = await rt.questions.of_job(job.number)
    await client.answer(first.name, "blue")
    await client.answer(second.name, "anna")
    result = await job.result_async()
    assert result["answers"] == [True, "anna", 31]
    assert str(result["before"]) in first.text
    assert result["is_spanned"], "the middleware runs in the process of the run"
    events = [event.kind for event in await rt.read_model.job_events(job.number)]
    assert events.count("content_changed") == 2  # once in each run


async def _reads_a_secret(rt: Runtime, client: Client) -> None:
    job = await client.submit(type="process:secret", payload={"key": "zoo"})
    ended = await client.wait(job)
    assert ended.result == {"value": len("tiger-in-a-box")}
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(job.number))
    assert log == "the value of zoo is ***\n"


async def _threads_use_the_context(client: Client) -> None:
    submitted = await process_jobs.threads.with_options(client=client).submit_async()
    assert await submitted.result_async(30) == [str(n) for n in range(8)]


async def test_a_killed_spawner_costs_its_runs_and_no_later_one(
    rt: Runtime, client: Client, processes: ProcessRuns, worker: WorkerProcess, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    computes = process_jobs.computes.with_options(
        client=client, overrides={"timeout": 60}, max_attempts=1, max_retries=0
    )
    submitted = await computes.submit_async(str(pids))
    await until(lambda: _exists(pids), "the start of the run")
    (spawner,) = spawners()
    spawner.send_signal(signal.SIGKILL)
    ended = await wait_for_end(rt, submitted.number)
    assert ended.last_error == "the process of the run was killed with the one that starts them"
    await until(lambda: _is_gone(int(pids.read_text().split()[0])), "the end of the process")
    later = await process_jobs.threads.with_options(client=client).submit_async()
    assert await later.result_async(30) == [str(n) for n in range(8)]
    (spawner,) = spawners()
    await processes.__aexit__()
    assert not spawner.is_running()


async def test_an_app_that_cannot_be_imported_again_fails_the_run() -> None:
    async with ProcessRuns(["nowhere"]) as processes:
        with pytest.raises(Exception, match="cannot import the app: cannot import nowhere"):
            await processes._start()


def spawners() -> list[psutil.Process]:
    """Return the spawners of this process."""
    children = psutil.Process().children()
    return [child for child in children if "job_types.spawner" in " ".join(child.cmdline())]


async def _exists(path: Path) -> bool:
    return path.exists() and len(path.read_text().split()) == 2


async def _is_gone(pid: int) -> bool:
    await asyncio.sleep(0)
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
