"""Workers killed at random for a minute: every job ends, and each effect was made once."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from draftsman.domain.actor import Actor
from draftsman.domain.answer import Response
from draftsman.domain.job import Status
from draftsman.runtime import Runtime
from draftsman.services.intake import invocation
from tests.support.server import Server

SECONDS = 60.0
"""For how long workers are killed."""
WORKERS = 3
KILLS = (0.5, 2.5)
"""Seconds between two kills: some hit a worker that has not begun to work."""
BATCH = 5
"""Jobs that are submitted at once, four times a second."""
DEADLINE = 90.0
"""Seconds after the last kill until everything has ended."""
CONFIG = """
database_url = "{url}"
data_dir = "{folder}"
[worker]
slots = 4
poll = 0.2
heartbeat = 1
lease = 5
[sweeps]
interval = 1
lease = 2
[handlers]
soak = "tests.soak.work:handle"
[types.soak]
on_lost = "resume"
max_attempts = 100
"""


class Crowd:
    """Worker processes; one that was killed is replaced at once."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.killed = 0
        self._chance = chance
        self._log = (folder / "workers.log").open("wb")
        self._command = [sys.executable, "-m", "draftsman_tui.cli.main"]
        self._command += ["--config", str(folder / "draftsman.toml"), "worker"]
        self._env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._workers = [self._start() for _ in range(WORKERS)]

    async def kill_one(self) -> None:
        """Kill one of them after a while, and start another."""
        await asyncio.sleep(self._chance.uniform(*KILLS))
        place = self._chance.randrange(WORKERS)
        self._workers[place].kill()
        self._workers[place].wait()
        self._workers[place] = self._start()
        self.killed += 1

    async def stop(self) -> list[int]:
        """Stop all in order; return their exit codes."""
        for worker in self._workers:
            worker.terminate()
        return [await asyncio.to_thread(worker.wait, 30) for worker in self._workers]

    def end(self) -> None:
        """Leave no process behind, however the test went."""
        for worker in self._workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
        self._log.close()

    def _start(self) -> subprocess.Popen[bytes]:
        quiet = {"stdin": subprocess.DEVNULL, "stdout": self._log, "stderr": self._log}
        return subprocess.Popen(self._command, env=self._env, **quiet)  # type: ignore[call-overload, no-any-return]


@asynccontextmanager
async def crowd(folder: Path, chance: random.Random) -> AsyncIterator[Crowd]:
    """Start the workers."""
    started = Crowd(folder, chance)
    try:
        yield started
    finally:
        started.end()


@asynccontextmanager
async def meanwhile(*work: object) -> AsyncIterator[None]:
    """Run these beside the block; one that breaks fails the test."""
    tasks = [asyncio.ensure_future(one) for one in work]  # type: ignore[call-overload]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    broken = [end for end in ends if not isinstance(end, asyncio.CancelledError)]
    assert broken == []


@pytest.mark.timeout(SECONDS + DEADLINE + 60)
async def test_killed_workers_lose_no_job_and_repeat_no_effect(
    rt: Runtime, owner: Actor, server: Server, database: str, tmp_path: Path
) -> None:
    seed = random.randrange(10**6)
    chance, jobs = random.Random(seed), list[int]()
    (tmp_path / "effects").mkdir()
    config = CONFIG.format(url=server.url(database), folder=tmp_path / "data")
    (tmp_path / "draftsman.toml").write_text(config)

    async with crowd(tmp_path, chance) as workers:
        async with meanwhile(answer_all(rt, owner, chance)):
            async with meanwhile(submit_all(rt, owner, tmp_path / "effects", jobs)):
                end = time.monotonic() + SECONDS
                while time.monotonic() < end:
                    await workers.kill_one()
            await all_ended(rt, jobs, f"seed {seed}, log {tmp_path}/workers.log")
        codes = await workers.stop()

    assert codes == [0] * WORKERS
    assert workers.killed > SECONDS / KILLS[1] / 2, "too few kills to say anything"
    assert {name: rows for name, rows in (await rt.inspect.invariants()).items() if rows} == {}
    lost = 0
    for number in jobs:
        job = await rt.inspect.job(number)
        lost += job.attempts
        assert job.status is Status.COMPLETED, f"{job.name}: {job.last_error}"
        await each_effect_once(rt, number, job.result or {}, tmp_path / "effects" / str(number))
    assert lost > 0, "no run was lost: the kills hit nothing"


async def submit_all(rt: Runtime, owner: Actor, folder: Path, jobs: list[int]) -> None:
    """Submit a few jobs all the time."""
    while True:
        wanted = [invocation(type="soak", payload={"folder": str(folder)}) for _ in range(BATCH)]
        jobs += [item.number for item in await rt.intake.submit_many(wanted, owner)]
        await asyncio.sleep(0.25)


async def answer_all(rt: Runtime, owner: Actor, chance: random.Random) -> None:
    """Answer whatever is open, some of it twice."""
    while True:
        for question in await rt.questions.open():
            event = f"answer-{question.job}-{question.ordinal}"
            response = Response(source_event_id=event, text=chance.choice(["yes", "no"]))
            for _ in range(chance.choice([1, 1, 2])):
                await rt.questions.answer(question.job, question.ordinal, response, owner)
        await asyncio.sleep(0.05)


async def all_ended(rt: Runtime, jobs: list[int], hint: str) -> None:
    """Wait until no job is left that has not ended."""
    live = {Status.COMPLETED, Status.FAILED, Status.DEAD_LETTER, Status.CANCELED, Status.EXPIRED}
    with suppress(TimeoutError):
        async with asyncio.timeout(DEADLINE):
            while True:
                counts = (await rt.inspect.stats()).jobs
                left = {name: count for name, count in counts.items() if count and name not in live}
                if not left:
                    return
                await asyncio.sleep(0.2)
    pytest.fail(f"after {DEADLINE:.0f} s of {len(jobs)} jobs there are still {left}; {hint}")


async def each_effect_once(rt: Runtime, number: int, result: dict[str, str], log: Path) -> None:
    """Hold what was done outside against what is recorded, and against what the handler got."""
    made = [line.split() for line in log.read_text().splitlines()]
    steps = await rt.checkpoints.steps(number)
    recorded = [[step.key, step.invocation_id, step.result] for step in steps]
    assert recorded == made, f"D-{number}: an effect was made twice, or recorded wrongly"
    assert [value for _, _, value in made] == [result["first"], result["second"]]
