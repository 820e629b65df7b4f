"""The guard: an agent ends with its worker and leaves no process behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from draftsman.sandbox.processes.process import AgentProcess
from draftsman.settings.agents import AgentSettings
from draftsman_testing.waits import until

DEADLINE = 20.0
LEASE = 2.0
"""Seconds that an agent lives without heartbeats: enough for a look at it on a busy machine."""

FAMILY = """
import os, signal
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(writer, b"x")
        while True: signal.pause()
    os._exit(0)
os.wait()
os.read(reader, 1)
print("ready", flush=True)
"""
PAUSE = "\nsignal.pause()\n"
TICK = "\nimport threading\nwhile True: print('tick', flush=True); threading.Event().wait(0.05)\n"


@asynccontextmanager
async def worker(
    code: str, lease: float, folder: Path, mode: str = "auto"
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.core.sandbox.processes.worker", code, str(lease), mode),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def line_of(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE):
        return await process.stdout.readline()


@dataclass(frozen=True)
class Family:
    """Host process ids of a run."""

    guard: psutil.Process
    keeper: psutil.Process
    programs: list[psutil.Process]

    @classmethod
    def below(cls, pid: int) -> Family:
        guard = psutil.Process(pid)
        [keeper] = guard.children()
        programs = keeper.children(recursive=True)
        assert len(programs) >= 1
        return cls(guard, keeper, programs)


async def family_of(process: asyncio.subprocess.Process) -> Family:
    word, pid = (await line_of(process)).split()
    assert word == b"ready"
    return Family.below(int(pid))


async def is_gone(processes: list[psutil.Process]) -> None:
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, DEADLINE)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


HITS = (
    "kill guard",
    "kill keeper",
    "kill worker",
    "stop guard",
    "stop keeper",
    "stop worker",
    "kill worker, kill guard",
    "kill guard, kill worker",
    "stop guard, kill worker",
    "stop keeper, kill worker",
    "stop worker, kill guard",
    "stop worker, stop guard",
    "stop guard, stop worker",
    "stop guard, stop keeper",
)


SANDBOXED = (HITS[0], *HITS[-3:])
AT_ONCE = 6
"""Workers with a fault at the same time: most of the time passes until their leases expire."""


async def test_an_agent_and_its_daemon_die_if_any_process_is_killed_or_stopped(
    tmp_path: Path,
) -> None:
    turns = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        for number, hits in enumerate((*HITS, *SANDBOXED)):
            (folder := tmp_path / str(number)).mkdir()
            mode = "off" if number < len(HITS) else "bwrap"
            tasks.create_task(agent_dies(mode, hits, folder, turns), name=f"{mode}, {hits}")


async def test_the_keeper_is_killed_last(tmp_path: Path) -> None:
    """It adopts what the program leaves behind, also if the guard is killed in the middle."""
    async with worker(FAMILY + PAUSE, 60.0, tmp_path, "off") as process:
        family = await family_of(process)
        family.keeper.suspend()
        process.kill()
        with contextlib.suppress(psutil.NoSuchProcess):  # each may be reaped at any moment
            while family.keeper.is_running() and family.keeper.status() != psutil.STATUS_ZOMBIE:
                pass
        with contextlib.suppress(psutil.NoSuchProcess):
            family.guard.kill()
        await is_gone(family.programs)


async def agent_dies(mode: str, hits: str, folder: Path, turns: asyncio.Semaphore) -> None:
    """Kill or stop the processes around an agent; it must die with its daemon."""
    async with turns, worker(FAMILY + PAUSE, 4.0, folder, mode) as process:
        family = await family_of(process)
        targets = {"guard": family.guard, "keeper": family.keeper}
        targets["worker"] = psutil.Process(process.pid)
        assert all(target.is_running() for target in family.programs)
        try:
            for hit in hits.split(", "):
                kind, name = hit.split()
                with contextlib.suppress(psutil.NoSuchProcess):
                    targets[name].send_signal(signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
            await is_gone(family.programs)
            if "worker" not in hits:
                async with asyncio.timeout(DEADLINE):
                    await process.wait()
                await is_gone([family.guard, family.keeper])
        except BaseException as error:
            error.add_note(f"{mode}, {hits}")
            raise
        finally:
            for target in targets.values():
                with contextlib.suppress(psutil.NoSuchProcess):
                    target.kill()


async def test_an_agent_lives_while_its_worker_sends_heartbeats(tmp_path: Path) -> None:
    async with worker(FAMILY + TICK, LEASE, tmp_path) as process:
        family = await family_of(process)
        for _ in range(60):
            assert await line_of(process) == b"tick\n"
        assert all(member.is_running() for member in family.programs)


async def test_an_agent_and_its_daemon_die_when_their_worker_is_suspended(tmp_path: Path) -> None:
    async with worker(FAMILY + TICK, LEASE, tmp_path) as process:
        family = await family_of(process)
        process.send_signal(signal.SIGSTOP)
        await is_gone(family.programs)
        process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 0


async def test_an_agent_dies_without_a_heartbeat_of_its_worker(tmp_path: Path) -> None:
    async with await start(FAMILY + PAUSE, tmp_path, lease=LEASE) as process:
        assert await anext(process.lines()) == b"ready"
        family = Family.below(process.pid)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 128 + signal.SIGKILL
        await is_gone(family.programs)


async def test_orders_that_confirm_no_lease_do_not_renew_it(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    async with await start(code + FAMILY + PAUSE, tmp_path, lease=LEASE) as process:
        assert await anext(process.lines()) == b"ready"

        async def terminated() -> bool:
            process.terminate()
            return await process.ends_within(0.05)

        await until(terminated, "the end of the lease")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_to_the_guard_kills_the_agent(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with worker(FAMILY + PAUSE, 300, tmp_path) as process:
        family = await family_of(process)
        family.guard.send_signal(number)
        await is_gone([family.guard, family.keeper, *family.programs])


async def test_processes_of_an_agent_die_with_it(tmp_path: Path) -> None:
    async with await start(FAMILY + "input(); raise SystemExit(7)", tmp_path) as process:
        assert await anext(process.lines()) == b"ready"
        family = Family.below(process.pid)
        await process.send(b"go\n")
        assert await process.wait() == 7
        await is_gone([family.keeper, *family.programs])


async def start(code: str, folder: Path, lease: float = DEADLINE) -> AgentProcess:
    async def ignore(chunk: bytes) -> None:
        pass

    agent = AgentSettings(command=("{python}", "-c", code))
    return await AgentProcess.start(agent, cwd=folder, home=folder, lease=lease, on_stderr=ignore)
