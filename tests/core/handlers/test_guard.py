"""An agent ends with its worker and leaves nothing behind: real processes, real signals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from draftsman.handlers.process import AgentProcess
from draftsman.settings import AgentSettings

DEADLINE = 20.0

WORKER = """
import asyncio, sys
from pathlib import Path
from draftsman.handlers.process import AgentProcess
from draftsman.settings import AgentSettings

async def main(code, lease):
    agent = AgentSettings(command=("{python}", "-c", code))
    async def log(chunk): sys.stderr.buffer.write(chunk)
    here = Path.cwd()
    async with await AgentProcess.start(
        agent, cwd=here, home=here, lease=lease, on_stderr=log
    ) as process:
        async for line in process.lines():
            process.heartbeat()
            print(line.decode(), flush=True)

asyncio.run(main(sys.argv[1], float(sys.argv[2])))
"""

FAMILY = """
import json, os, signal
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(writer, b"%d" % os.getpid())
        while True: signal.pause()
    os._exit(0)
os.wait()
print(json.dumps([os.getpid(), os.getppid(), int(os.read(reader, 20))]), flush=True)
"""
PAUSE = "\nsignal.pause()\n"
TICK = "\nimport threading\nwhile True: print('tick', flush=True); threading.Event().wait(0.05)\n"


@asynccontextmanager
async def worker(
    code: str, lease: float, folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER, code, str(lease)),
        cwd=folder,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
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


async def family_of(process: asyncio.subprocess.Process) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in json.loads(await line_of(process))]


async def gone(processes: list[psutil.Process]) -> None:
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, DEADLINE)
    assert alive == []


async def test_an_agent_and_its_daemon_die_with_a_killed_worker(tmp_path: Path) -> None:
    async with worker(FAMILY + PAUSE, 300, tmp_path) as process:
        family = await family_of(process)
        assert all(member.is_running() for member in family)
        process.kill()
        await gone(family)


async def test_an_agent_outlives_its_lease_while_its_worker_shows_life(tmp_path: Path) -> None:
    async with worker(FAMILY + TICK, 0.5, tmp_path) as process:
        family = await family_of(process)
        for _ in range(30):
            assert await line_of(process) == b"tick\n"
        assert all(member.is_running() for member in family)


async def test_an_agent_and_its_daemon_die_when_their_worker_stands_still(tmp_path: Path) -> None:
    async with worker(FAMILY + TICK, 0.5, tmp_path) as process:
        agent, _, daemon = await family_of(process)
        process.send_signal(signal.SIGSTOP)
        await gone([agent, daemon])
        process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 0


async def test_an_agent_dies_when_its_worker_never_shows_life(tmp_path: Path) -> None:
    async with await start(FAMILY + PAUSE, tmp_path, lease=0.5) as process:
        line = await anext(process.lines())
        assert isinstance(line, bytes)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 128 + signal.SIGKILL
        assert [pid for pid in json.loads(line) if psutil.pid_exists(pid)] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_to_the_guard_kills_the_agent(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with worker(FAMILY + PAUSE, 300, tmp_path) as process:
        agent, guard, daemon = await family_of(process)
        guard.send_signal(number)
        await gone([agent, guard, daemon])


async def test_an_agent_dies_with_its_killed_guard(tmp_path: Path) -> None:
    async with worker("import signal" + FAMILY + PAUSE, 300, tmp_path) as process:
        agent, guard, daemon = await family_of(process)
        guard.kill()
        await gone([agent, guard])
        daemon.kill()


async def test_what_an_agent_leaves_behind_dies_with_it(tmp_path: Path) -> None:
    async with await start(FAMILY + "raise SystemExit(7)", tmp_path) as process:
        line = await anext(process.lines())
        assert isinstance(line, bytes)
        assert await process.wait() == 7
        assert [pid for pid in json.loads(line) if psutil.pid_exists(pid)] == []


async def start(code: str, folder: Path, lease: float = DEADLINE) -> AgentProcess:
    async def ignore(chunk: bytes) -> None:
        pass

    agent = AgentSettings(command=("{python}", "-c", code))
    return await AgentProcess.start(agent, cwd=folder, home=folder, lease=lease, on_stderr=ignore)
