"""A worker that runs a single agent in its folder, and does nothing else.

python -m tests.core.sandbox.processes.worker CODE LEASE MODE[,IMAGE,ENGINE]
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from draftsman.sandbox.processes.process import AgentProcess
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.settings.agents import AgentSettings
from draftsman.settings.sandbox import SandboxSettings


async def main(code: str, lease: float, mode: str) -> None:
    """Print the agent's first line with the guard's process ID, then its other lines."""
    agent = AgentSettings(command=("{python}", "-I", "-S", "-c", code))
    table = dict(zip(("mode", "image", "engine"), mode.split(","), strict=False))
    settings = SandboxSettings.model_validate(table)
    folder = Path.cwd()
    sandbox = await open_run_sandbox(settings, repo=folder / "repo", home=folder / "home")
    async with await AgentProcess.start(
        agent,
        cwd=folder / "repo",
        home=folder / "home",
        lease=lease,
        on_stderr=forward,
        sandbox=sandbox,
    ) as process:
        lines = process.lines()
        task = asyncio.create_task(beat(process))  # a container may start for longer than a lease
        print(as_text(await anext(lines)), process.pid, flush=True)  # noqa: T201
        async for line in lines:
            print(as_text(line), flush=True)  # noqa: T201
        task.cancel()


async def beat(process: AgentProcess) -> None:
    """Send heartbeats until canceled."""
    while True:
        process.heartbeat()
        await asyncio.sleep(0.05)


async def forward(chunk: bytes) -> None:
    """Pass on the standard error of the agent."""
    sys.stderr.buffer.write(chunk)


def as_text(line: object) -> str:
    """Return a line of the agent; fail if it is malformed."""
    assert isinstance(line, bytes), line
    return line.decode()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), sys.argv[3]))
