"""The worker process of a figure, as the bench sees it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.place import DEADLINE, Broken


class Worker:
    """A process that runs `bench.child`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def hear(self, event: str) -> dict[str, Any]:
        """Return the next line, which has to be this event. Raises Broken."""
        assert self._process.stdout is not None
        async with asyncio.timeout(DEADLINE):
            line = await self._process.stdout.readline()
        told: dict[str, Any] = json.loads(line) if line else {"event": "nothing more"}
        if told["event"] != event:
            raise Broken(f"the worker had to tell {event}, and told {told['event']}")
        return told

    def say(self, word: str) -> None:
        """Tell it to go, or to stop."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())


@asynccontextmanager
async def worker(url: str, kind: str, slots: int, target: int = 0) -> AsyncIterator[Worker]:
    """Start a worker process that is ready to go; it has ended when this ends.

    `kind` is `crew` or `alone`. It tells when it started `target` runs, or each start with 0.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.child", url, kind, str(slots), str(target)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    try:
        started = Worker(process)
        await started.hear("ready")
        yield started
        async with asyncio.timeout(DEADLINE):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
