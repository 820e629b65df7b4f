"""Processes of a measured queue."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bench.server import DEADLINE, BenchError

ROOT = Path(__file__).parents[1]
DRAFTSMAN = "draftsman"
LINE = 2**24
"""Limit of a line in bytes: a producer reports the times of all calls in a line."""


class Child:
    """A process that reads commands and writes events, a line each."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def hear(
        self, event: str, within: float = DEADLINE, *, passing: str = ""
    ) -> dict[str, Any]:
        """Return the next event, which must be of this kind; raises BenchError.

        `within` is in seconds. Events of the kind `passing` are passed over.
        """
        try:
            async with asyncio.timeout(within):
                while (received := await self._next())["event"] == passing:
                    pass
        except TimeoutError:
            raise BenchError(f"no {event} within {within:.0f} s") from None
        if received["event"] != event:
            raise BenchError(f"{event} had to come, {received['event']} came")
        return received

    async def _next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            if line.startswith(b'{"event"'):  # libraries print lines of their own
                received: dict[str, Any] = json.loads(line)
                return received
        return {"event": "the end"}

    def say(self, order: Mapping[str, object] | str) -> None:
        """Send a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def submit(self, first: int, jobs: int, *, many: bool, tasks: int = 1) -> dict[str, Any]:
        """Submit `jobs` jobs with a producer; return the start time and the duration in ns.

        Single calls are made by so many tasks, each of which awaits its own.
        """
        self.say({"first": first, "jobs": jobs, "many": many, "tasks": tasks})
        return await self.hear("done")


@dataclass(frozen=True, slots=True)
class Contestant:
    """A queue with its description."""

    name: str
    program: tuple[str, ...]
    """With the name of its module, before the role."""
    environment: Mapping[str, str]
    about: Mapping[str, Any]
    folder: Path = ROOT

    @property
    def ours(self) -> bool:
        """Whether it is draftsman."""
        return self.name == DRAFTSMAN

    @property
    def version(self) -> str:
        """Its name and version, and its Python if that is another than the bench's."""
        own = ".".join(map(str, sys.version_info[:2]))
        python = self.about.get("python", own)
        suffix = "" if python == own else f" (Python {python})"
        return f"{self.about['distribution']} {self.about['version']}{suffix}"

    def settings(self, preset: str) -> dict[str, Any]:
        """Return the settings; the fast settings are additions to the default."""
        chosen: dict[str, Any] = dict(self.about["default"])
        return chosen | self.about["fast"] if preset == "fast" else chosen

    def jobs(self, preset: str, count: int) -> int:
        """Return its number of jobs in a measurement of so many jobs of others."""
        share: float = self.about["share"][preset == "fast"]
        return max(50, round(count * share))

    @asynccontextmanager
    async def child(
        self,
        role: str,
        url: str = "",
        preset: str = "default",
        target: int = 0,
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> AsyncIterator[Child]:
        """Start a process in a role, and stop it on exit; raises BenchError."""
        chosen = self.settings(preset) | dict(extra)
        settings = json.dumps(chosen) if url else "{}"
        program = (*self.program, role, url, settings, str(target))
        async with start_process(program, self.environment, self.folder) as child:
            yield child


@asynccontextmanager
async def start_process(
    program: tuple[str, ...], environment: Mapping[str, str], folder: Path = ROOT
) -> AsyncIterator[Child]:
    """Start a program in a folder; an error is reported with the last lines of its stderr."""
    with tempfile.TemporaryFile() as words:
        process = await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=words,
            cwd=folder,
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
    lines_left = [line for line in lines if line and not line.startswith(("at ", "File "))]
    return f": {lines_left[-1][:200]}" if lines_left else ""


async def load_contestant(
    name: str, program: tuple[str, ...], environment: Mapping[str, str], folder: Path = ROOT
) -> Contestant:
    """Return a queue that can run here; raises BenchError."""
    async with start_process((*program, "about"), environment, folder) as child:
        about = await child.hear("about")
    return Contestant(name, program, environment, about, folder)
