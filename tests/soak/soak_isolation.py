"""A thousand runs in threads and in processes, while workers and their processes are killed."""

from __future__ import annotations

import contextlib
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
import pytest

from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman_testing import waits
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.acceptance.conftest import installations
from tests.acceptance.processes import Installation, Process
from tests.support.fork_server import NEW_INTERPRETER
from tests.support.statements import value

__all__ = ["installations"]
pytestmark = pytest.mark.timeout(1800)
RUNS: Final = 1000
STEPS: Final = 3
KILL_EVERY: Final = 40
"""Effects between two kills."""
APP: Final = """
import os
from pathlib import Path
from draftsman import BlockingRunContext, job

FOLDER = Path(os.environ["EFFECTS"])

def effects(ctx, n, steps):
    def effect(key, invocation):
        with open(FOLDER / f"{n}-{key}", "a") as file:
            file.write(f"{invocation}\\n")
        return key
    def lookup(key, invocation):
        path = FOLDER / f"{n}-{key}"
        known = path.exists() and invocation in path.read_text().split()
        return key if known else None
    for key in range(steps):
        ctx.step(f"step-{key}", lambda i: effect(key, i), lambda i: lookup(key, i))
    return n

@job("kill:thread", max_attempts=100, max_retries=100, base_delay=0.1, max_delay=0.2)
def in_thread(ctx: BlockingRunContext, n: int, steps: int) -> int:
    return effects(ctx, n, steps)

@job("kill:process", isolation="process", max_attempts=100, max_retries=100, base_delay=0.1,
     max_delay=0.2)
def in_process(ctx: BlockingRunContext, n: int, steps: int) -> int:
    return effects(ctx, n, steps)
"""


@pytest.mark.parametrize("type", ["kill:thread", "kill:process"])
async def test_killed_runs_have_each_effect_once_and_leave_nothing(
    rt: Runtime,
    make: Factory,
    conn: Connection,
    installations: Callable[[str], Installation],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    type: str,
) -> None:
    monkeypatch.setattr(waits, "DEADLINE", 900.0)
    (folder := tmp_path / "effects").mkdir()
    (tmp_path / "killed_app.py").write_text(APP)
    random_numbers = random.Random(7)
    here = installations("here")
    here.configure(worker__lease=3, worker__heartbeat=0.5, worker__poll=0.2, sweeps__interval=1)
    env = {
        "EFFECTS": str(folder),
        "PYTHONPATH": f"{tmp_path}:{here.environment()['PYTHONPATH']}",
        NEW_INTERPRETER: "1",
    }
    for n in range(RUNS):
        await make.queued(
            type=type,
            queue="default",
            payload={"n": n, "steps": STEPS},
            max_attempts=100,
            max_retries=100,
        )

    def start() -> Process:
        return here.start("worker", "--app", "killed_app", env=env)

    async def done() -> int:
        return int(
            await value(conn, "SELECT count(*) FROM draftsman.jobs WHERE status = 'completed'")
        )

    worker = start()
    kills: Counter[str] = Counter()
    seen: set[psutil.Process] = set()
    while await done() < RUNS:
        before = len(list(folder.iterdir()))

        async def moved(before: int = before) -> bool:
            return len(list(folder.iterdir())) >= before + KILL_EVERY or await done() == RUNS

        await until(moved, "further effects")
        victims = _victims(worker)
        seen |= {victim for victim, _ in victims}
        victim, kind = random_numbers.choice(victims)
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.send_signal(signal.SIGKILL)
            kills[kind] += 1
        if kind == "worker":
            await worker.end()
            worker = start()
    await worker.says(" threads, types ")
    worker.signal(signal.SIGTERM)
    assert await worker.end() == 0, worker.output_text
    assert kills["worker"] > 2, kills
    assert type == "kill:thread" or (kills["spawner"] > 1 and kills["run"] > 1), kills
    counts = {path.name: len(path.read_text().split()) for path in folder.iterdir()}
    assert set(counts.values()) == {1}
    assert len(counts) == RUNS * STEPS
    assert [process for process in seen if _is_alive(process)] == []
    assert (
        await value(conn, "SELECT count(*) FROM draftsman.job_runs WHERE status = 'running'") == 0
    )


def _is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; that of a killed spawner waits for the init of this host."""
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _victims(worker: Process) -> list[tuple[psutil.Process, str]]:
    """Return the processes that may be killed: the worker, its spawner, and those of runs."""
    process = psutil.Process(worker.pid)
    victims = [(process, "worker")]
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in process.children():
            if "spawner" in " ".join(child.cmdline()):
                victims.append((child, "spawner"))
                victims += [(run, "run") for run in child.children()]
    return victims
