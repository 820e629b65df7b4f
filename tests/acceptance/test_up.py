"""`draftsman up --headless`: start, restart and survival of its processes."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation, Process, lines
from tests.core.worker.agent_jobs import (
    is_gone,
    make_repository,
    submit_agent_job,
    wait_for_agent,
    wait_for_clone,
    wait_for_exit,
)
from tests.core.worker.workers import wait_for_status

S = Status
STEPS = """
import time
if start["checkpoint"] is None:
    open("half.txt", "w").write("half\\n")
    say("checkpoint", id="c", data=1); hear()
open(f"{start['run']}.pid", "w").write("runs\\n")
while not os.path.exists("finish"):
    time.sleep(0.01)
say("result", summary="", data={"half": open("half.txt").read(), "run": start["run"]})
"""
"""An agent that reports each run, and works until it may finish."""


async def child_of(up: Process, other_than: int | None = None) -> int:
    """Return the worker of an `up`."""

    async def look() -> bool:
        return bool([pid for pid in up.children() if pid != other_than and not await is_gone(pid)])

    await until(look, "the worker")
    return next(pid for pid in up.children() if pid != other_than)


async def test_up_restarts_a_dead_worker_and_stops_it(
    rt: Runtime, make: Factory, installation: Installation, tmp_path: Path
) -> None:
    installation.configure(STEPS)
    number = await submit_agent_job(make, make_repository(tmp_path / "repo"), text=str(tmp_path))
    up = installation.start("up", "--headless", env={"DRAFTSMAN_SLOTS": "4"})
    agent = await wait_for_agent(tmp_path, "1.pid")
    first = await child_of(up)
    psutil.Process(first).kill()
    await wait_for_exit(agent)
    clone = await wait_for_clone(tmp_path, "2.pid")
    second = await child_of(up, first)
    assert lines(up.output_text, "worker was killed (SIGKILL)")
    assert lines(up.output_text, "restarting in 0.5 s")
    assert len(lines(up.output_text, "unknown environment variable DRAFTSMAN_SLOTS")) == 1
    up.signal(signal.SIGTERM)
    await up.says("SIGTERM: stopping")
    (clone / "finish").touch()
    assert await up.end() == 0
    assert await is_gone(second)
    job = await rt.read_model.job(number)
    assert (job.status, (job.result or {})["data"]) == (S.COMPLETED, {"half": "half\n", "run": 2})
    assert await rt.read_model.workers() == []


async def test_a_worker_notices_that_its_supervisor_was_killed(
    rt: Runtime, make: Factory, installation: Installation, tmp_path: Path
) -> None:
    installation.configure(STEPS, worker__drain=0, worker__abort=0.2)
    number = await submit_agent_job(make, make_repository(tmp_path / "repo"), text=str(tmp_path))
    up = installation.start("up", "--headless")
    agent = await wait_for_agent(tmp_path, "1.pid")
    worker = await child_of(up)
    up.signal(signal.SIGKILL)
    await up.end()
    job = await wait_for_status(rt, number, S.RESUMED)
    await wait_for_exit(worker, agent)
    assert job.attempts == 0
    assert await rt.read_model.workers() == []


# --- with its own server --------------------------------------------------------------------------


@pytest.fixture
def home(folder: Path) -> Iterator[Installation]:
    """Provide an installation without a database: draftsman starts its own there."""
    installation = Installation(folder / "home", None)
    installation.configure(STEPS)
    yield installation
    installation.close()
    done = asyncio.run(installation.run("db", "stop", "--yes"))
    assert done.returncode == 0, done.stderr


async def json_output(home: Installation, *args: str) -> Any:
    """Return the JSON output of a command."""
    done = await home.run(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def completed(home: Installation, number: int) -> dict[str, Any]:
    done = await home.run("wait", f"D-{number}", "--timeout", "20s", "--json")
    document: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0, (done.stderr, document)
    return document


async def submitted(home: Installation, folder: Path) -> int:
    """Submit a job on a new repository; return its number."""
    folder.mkdir()
    repo = make_repository(folder / "repo")
    args = ("--agent", "test", "--repo", str(repo), str(folder))
    number: int = (await json_output(home, "submit", *args))["number"]
    return number


@pytest.mark.slow(
    fast="tests/acceptance/test_worker.py::test_agent_of_a_killed_worker_ends_and_another_host_resumes"
)
async def test_run_resumes_whichever_process_is_killed(
    home: Installation, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Uses the default settings, so that it also measures the documented recovery time."""
    folder = tmp_path / "job"
    up = home.start("up", "--headless")
    number = await submitted(home, folder)
    agent = await wait_for_agent(home.folder, "1.pid")
    worker = await child_of(up)
    up.signal(signal.SIGKILL)
    psutil.Process(worker).kill()
    await up.end()
    await wait_for_exit(agent, worker)
    began = time.monotonic()
    up = home.start("up", "--headless")
    clone = await wait_for_clone(home.folder, "2.pid")
    record_property("seconds from the new start to the run going on", time.monotonic() - began)

    server = (await json_output(home, "db", "status"))["pid"]
    began = time.monotonic()
    psutil.Process(server).kill()
    await up.says("database available again")  # no later command starts it
    record_property("seconds from the kill of the server to its return", time.monotonic() - began)
    (clone / "finish").touch()
    job = await completed(home, number)
    assert (job["result"]["data"], job["attempts"]) == ({"half": "half\n", "run": 2}, 1)
    assert (await json_output(home, "db", "status"))["pid"] != server
    up.signal(signal.SIGTERM)
    assert await up.end() == 0
