"""A worker under a steady load: its memory is constant after a warm-up.

Three minutes by default; an hour: `make soak ARGS='-k memory --memory-minutes 60'`.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psutil
import pytest

from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from tests.support.server import Server

BATCH = 10
PAUSE = 0.5
"""Number of concurrent jobs, and seconds until the next: twenty a second."""
GROWTH = 1024**2
"""Maximum growth in bytes in the second half, in addition to 2 % of the size.

In three minutes a leak of 600 bytes per job exceeds it.
"""
NOISE = 0.02
CONFIG = """
database_url = "{url}"
data_dir = "{folder}"
[worker]
slots = 10
[handlers]
steady = "tests.soak.steady_load:handle"
"""


@contextmanager
def worker(folder: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the shipped worker in its own process, and shut it down."""
    (folder / "draftsman.toml").write_text(CONFIG.format(url=url, folder=folder / "data"))
    command = [sys.executable, "-m", "draftsman_tui"]
    command += ["--config", str(folder / "draftsman.toml"), "worker"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


async def load(rt: Runtime, owner: Actor) -> None:
    """Submit a few jobs continuously, and answer all open questions."""
    numbers = count()
    while True:
        requests = [invocation(type="steady", payload={"n": next(numbers)}) for _ in range(BATCH)]
        await rt.submissions.submit_many(requests, owner)
        for question in await rt.questions.open():
            event = f"answer-{question.job}-{question.ordinal}"
            response = Response(source_event_id=event, text="yes")
            await rt.questions.answer(question.job, question.ordinal, response, owner)
        await asyncio.sleep(PAUSE)


async def sample(process: psutil.Process, seconds: float) -> list[tuple[float, int]]:
    """Return (seconds, resident bytes) once a second."""
    began = time.monotonic()
    samples = list[tuple[float, int]]()
    while (passed := time.monotonic() - began) < seconds:
        samples.append((passed, process.memory_info().rss))
        await asyncio.sleep(1)
    return samples


@pytest.mark.timeout(0)  # the duration is configured
async def test_memory_of_a_worker_is_constant(
    rt: Runtime,
    owner: Actor,
    server: Server,
    database: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = 60 * float(request.config.getoption("--memory-minutes"))
    with worker(tmp_path, server.url(database)) as process:
        loading = asyncio.create_task(load(rt, owner))
        try:
            samples = await sample(psutil.Process(process.pid), seconds)
        finally:
            loading.cancel()
            (end,) = await asyncio.gather(loading, return_exceptions=True)
        assert isinstance(end, asyncio.CancelledError), end
    half = samples[len(samples) // 2 :]
    slope, _ = statistics.linear_regression([at for at, _ in half], [size for _, size in half])
    gained = slope * (half[-1][0] - half[0][0])
    done = (await rt.read_model.jobs(statuses=[Status.COMPLETED], limit=1))[0].number
    text = f"{seconds / 60:.0f} minutes, {done} jobs: "
    text += f"from {samples[0][1] / 1e6:.1f} to {samples[-1][1] / 1e6:.1f} MB, in the second half"
    text += f" {gained / 1e6:+.2f} MB, {slope * 3600 / 1e6:+.2f} MB an hour"
    with capsys.disabled():
        sys.stderr.write(f"\n{text}\n")
    assert done > seconds * BATCH, "too few jobs for a measurement"
    assert gained < GROWTH + NOISE * half[0][1], text
