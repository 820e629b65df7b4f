"""Checks of JSON Schema in child processes, so that a hostile schema harms nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from typing import Any, Final

from draftsman.errors import Failure
from draftsman.schemas import checker_process

CPU: Final = 2.0
"""Seconds of CPU for a check, and as much again for each BYTES of schema and value."""
BYTES: Final = 1024 * 1024
MEMORY: Final = 512 * 1024 * 1024
"""Bytes of address space of a child."""
WALL: Final = 30.0
"""Seconds after which a check that gets no CPU is given up."""
CHILDREN: Final = 2
"""Checks at the same time; others wait."""

CAUSES: Final[dict[int, str]] = {
    signal.SIGXCPU: "the check takes more than {cpu:g} s of CPU; simplify the schema's references",
    signal.SIGSEGV: "the schema cannot be followed: it is nested too deeply",
    signal.SIGABRT: "the check needs more memory than it may have",
}
"""What a check did that ended its child by a signal."""


class SchemaChecker:
    """Child processes that check schemas, started when needed and kept for the next check.

    Use it as a context manager, or `close` it. A child that a check kills is replaced.
    """

    def __init__(self, cpu: float = CPU, wall: float = WALL, memory: int = MEMORY) -> None:
        self._cpu = cpu
        self._wall = wall
        self._memory = memory
        self._idle: list[Process] = []
        self._free = asyncio.Semaphore(CHILDREN)

    async def problem(self, schema: Any, value: Any) -> str | None:
        """Return in one line why the value does not fit the schema; None when it does.

        A schema that cannot be checked within the limits is a reason, too. Raises Failure where
        no child can be started, or none got its time.
        """
        return await self._ask(schema, value, probe=False)

    async def schema_problem(self, schema: Any) -> str | None:
        """Return why this is no usable schema; it is tried on a value of each type."""
        return await self._ask(schema, None, probe=True)

    async def close(self) -> None:
        """End the children."""
        while self._idle:
            await _end(self._idle.pop())

    async def __aenter__(self) -> SchemaChecker:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, schema: Any, value: Any, *, probe: bool) -> str | None:
        if schema is True or (isinstance(schema, dict) and not schema):
            return None  # it fits everything
        try:
            body = json.dumps({"schema": schema, "value": value})
        except RecursionError:
            return "it is nested too deeply"
        cpu = self._cpu * (1 + len(body) // BYTES)
        line = f'{body[:-1]}, "probe": {json.dumps(probe)}, "cpu": {cpu}}}\n'.encode()
        async with self._free:
            known = bool(self._idle)
            reply = await self._exchange(line)
            if reply is None and known:  # it had died while it was idle
                reply = await self._exchange(line)
        if isinstance(reply, int):
            return CAUSES[reply].format(cpu=cpu)
        if reply is None:
            raise _failed("the child that checks it ended at once")
        return None if reply == "" else reply

    async def _exchange(self, line: bytes) -> str | int | None:
        """Return a child's reply, the signal that ended it, or None if it just ended."""
        process = self._idle.pop() if self._idle else await _start(self._memory)
        kept = False
        try:
            async with asyncio.timeout(self._wall):
                reply = await _talk(process, line)
                if not reply:
                    code = await process.wait()
                    return -code if -code in CAUSES else None
            kept = True
            return str(json.loads(reply)["why"] or "")
        except TimeoutError:
            raise _failed(f"the check did not end within {self._wall:g} s") from None
        finally:
            if kept:
                self._idle.append(process)
            else:
                await _end(process)


async def _start(memory: int) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-I",
                "-S",
                checker_process.__file__,
                json.dumps(sys.path),
                str(memory),
            ),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={},
            start_new_session=True,
        )
    except OSError as error:
        raise _failed(f"no child process can be started: {error.strerror}") from None


async def _talk(process: Process, line: bytes) -> bytes:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
    with contextlib.suppress(ConnectionError):
        process.stdin.write(line)
        await process.stdin.drain()
    return await process.stdout.readline()


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.communicate()


def _failed(text: str) -> Failure:
    return Failure(f"JSON Schema: {text}", declared="TRANSIENT_INFRA")
