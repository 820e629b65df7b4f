"""One queue as the bench sees it: who it is, and its processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.server import DEADLINE, BenchError

ROOT = Path(__file__).parents[1]
DRAFTSMAN = "draftsman"
LINE = 2**24
"""Bytes: a producer tells the time of each call in one line."""


class Child:
    """A process that is told what to do, and tells what happens, a line each."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def hear(self, event: str) -> dict[str, Any]:
        """Return the next thing it tells, which has to be this event. Raises Broken."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(DEADLINE):
                while line := await self._process.stdout.readline():
                    if line.startswith(b'{"event"'):  # libraries print what they like
                        break
        except TimeoutError:
            raise BenchError(f"no {event} within {DEADLINE:.0f} s") from None
        told: dict[str, Any] = json.loads(line) if line else {"event": "the end"}
        if told["event"] != event:
            raise BenchError(f"{event} had to come, {told['event']} came")
        return told

    def say(self, order: Mapping[str, object] | str) -> None:
        """Tell it what to do."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def submit(self, first: int, jobs: int, *, many: bool) -> dict[str, Any]:
        """Let a producer submit so many jobs; return when it began and what it took, in ns."""
        self.say({"first": first, "jobs": jobs, "many": many})
        return await self.hear("done")


@dataclass(frozen=True, slots=True)
class Contestant:
    """A queue, with what it told about itself."""

    name: str
    program: tuple[str, ...]
    environment: Mapping[str, str]
    about: Mapping[str, Any]

    @property
    def ours(self) -> bool:
        """Is it draftsman?"""
        return self.name == DRAFTSMAN

    @property
    def version(self) -> str:
        """Its name and version."""
        return f"{self.about['distribution']} {self.about['version']}"

    def settings(self, preset: str) -> dict[str, Any]:
        """Return its settings; fast ones are set beyond the default."""
        chosen: dict[str, Any] = dict(self.about["default"])
        return chosen | self.about["fast"] if preset == "fast" else chosen

    def jobs(self, preset: str, wanted: int) -> int:
        """Return how many jobs it gets where another gets so many."""
        share: float = self.about["share"][preset == "fast"]
        return max(50, round(wanted * share))

    @asynccontextmanager
    async def child(
        self, role: str, url: str = "", preset: str = "default", target: int = 0
    ) -> AsyncIterator[Child]:
        """Start a process in a role; it has ended when this ends. Raises Broken."""
        settings = json.dumps(self.settings(preset)) if url else "{}"
        program = (*self.program, self.name, role, url, settings, str(target))
        async with start_process(program, self.environment) as child:
            yield child


@asynccontextmanager
async def start_process(
    program: tuple[str, ...], environment: Mapping[str, str]
) -> AsyncIterator[Child]:
    """Start a program; what went wrong with it is said with the last words it had."""
    with tempfile.TemporaryFile() as words:
        process = await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=words,
            cwd=ROOT,
            env={**os.environ, **environment},
            limit=LINE,
        )
        try:
            yield Child(process)
            assert process.stdin is not None
            process.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(10):
                    await process.wait()
        except BenchError as error:
            raise BenchError(f"{error}{await _last(process, words)}") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _last(process: asyncio.subprocess.Process, words: Any) -> str:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            await process.wait()
    words.seek(0)
    lines = [line.strip() for line in words.read().decode(errors="replace").splitlines()]
    said = [line for line in lines if line and not line.startswith(("at ", "File "))]
    return f": {said[-1][:200]}" if said else ""


async def load_contestant(
    name: str, program: tuple[str, ...], environment: Mapping[str, str]
) -> Contestant:
    """Return a queue that can run here. Raises Broken."""
    async with start_process((*program, name, "about"), environment) as child:
        about = await child.hear("about")
    return Contestant(name, program, environment, about)
