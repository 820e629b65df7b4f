"""Validation of JSON Schemas in child processes, which isolates hostile schemas."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from draftsman.errors import Failure, InvalidParameters
from draftsman.formats.truncation import truncate
from draftsman.json_schemas import checker_process
from draftsman.json_schemas.checker_process import WIDTH
from draftsman.processes.child_processes import start_isolated

CPU: Final = 2.0
"""Seconds of CPU for a check, plus the same for each BYTES of schema and value."""
BYTES: Final = 1024 * 1024
MEMORY: Final = 512 * 1024 * 1024
"""Bytes of address space of a child."""
WALL: Final = 30.0
"""Seconds after which a check is abandoned, even without CPU time."""
CHILDREN: Final = 2
"""Maximum number of concurrent checks."""
_NAME: Final = 60
"""Characters of a key in a problem."""

CAUSES: Final[dict[int, str]] = {
    signal.SIGXCPU: "the check takes more than {cpu:g} s of CPU; simplify the schema's references",
    signal.SIGSEGV: "the schema cannot be evaluated: it is nested too deeply",
    signal.SIGABRT: "the check exceeds its memory limit",
}
"""The problem of a check whose child was killed by a signal."""


class Mismatch(NamedTuple):
    """A value that does not match a schema: `week: must be a whole number, not 'x'`."""

    path: tuple[str, ...]
    """The keys and indexes that lead to it; none for the whole value."""
    problem: str

    def __str__(self) -> str:
        name = ".".join(truncate(part, _NAME) for part in self.path)
        return f"{name}: {self.problem}" if name else self.problem


class SchemaChecker:
    """A pool of child processes that check schemas.

    Use it as a context manager, or `close` it. A killed child is replaced.
    """

    def __init__(self, cpu: float = CPU, wall: float = WALL, memory: int = MEMORY) -> None:
        self._cpu = cpu
        self._wall = wall
        self._memory = memory
        self._idle: list[Process] = []
        self._free = asyncio.Semaphore(CHILDREN)

    async def mismatches(self, schema: Any, value: Any) -> list[Mismatch]:
        """Return why the value does not match the schema; the outermost problem is first.

        A check that exceeds its limits is a problem, too. Raises Failure if no child can be
        started, or the check does not end in time.
        """
        return await self._ask(schema, value, probe=False)

    async def problem(self, schema: Any, value: Any) -> str | None:
        """Return the first mismatch, in a single line, or None; raises Failure."""
        found = await self.mismatches(schema, value)
        return str(found[0]) if found else None

    async def check_parameters(
        self, schema: Mapping[str, Any], values: Mapping[str, Any], subject: str
    ) -> None:
        """Raise InvalidParameters for values that do not match the schema of an object."""
        if found := await self.mismatches({"type": "object", **schema}, values):
            text = truncate("; ".join(map(str, found)), WIDTH)
            problems: dict[str, str] = {}
            for mismatch in found:
                if mismatch.path:
                    inner = Mismatch(mismatch.path[1:], mismatch.problem)
                    problems.setdefault(mismatch.path[0], str(inner))
            raise InvalidParameters(f"{subject}: {text}", problems=problems)

    async def schema_problem(self, schema: Any) -> str | None:
        """Return why a schema is not usable, or None; it is tried with a value of each type."""
        found = await self._ask(schema, None, probe=True)
        return str(found[0]) if found else None

    async def close(self) -> None:
        """Stop the children."""
        while self._idle:
            await _end(self._idle.pop())

    async def __aenter__(self) -> SchemaChecker:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, schema: Any, value: Any, *, probe: bool) -> list[Mismatch]:
        if schema is True or (isinstance(schema, dict) and not schema):
            return []  # every value matches
        try:
            body = json.dumps({"schema": schema, "value": value})
        except RecursionError:
            return [Mismatch((), "the value is nested too deeply")]
        cpu = self._cpu * (1 + len(body) // BYTES)
        line = f'{body[:-1]}, "probe": {json.dumps(probe)}, "cpu": {cpu}}}\n'.encode()
        async with self._free:
            reused = bool(self._idle)
            reply = await self._exchange(line)
            if reply is None and reused:  # the child died while it was idle
                reply = await self._exchange(line)
        if isinstance(reply, int):
            return [Mismatch((), CAUSES[reply].format(cpu=cpu))]
        if reply is None:
            raise _failed("the child process of the check ended unexpectedly")
        return reply

    async def _exchange(self, line: bytes) -> list[Mismatch] | int | None:
        """Return a child's reply, the signal that killed it, or None if it ended otherwise."""
        process = self._idle.pop() if self._idle else await _start(self._memory)
        reusable = False
        try:
            async with asyncio.timeout(self._wall):
                reply = await _talk(process, line)
                if not reply:
                    code = await process.wait()
                    return -code if -code in CAUSES else None
            reusable = True
            return [Mismatch(tuple(path), text) for path, text in json.loads(reply)["mismatches"]]
        except TimeoutError:
            raise _failed(f"the check did not end within {self._wall:g} s") from None
        finally:
            if reusable:
                self._idle.append(process)
            else:
                await _end(process)


async def _start(memory: int) -> Process:
    try:
        return await start_isolated(checker_process.__name__, memory)
    except OSError as error:
        raise _failed(f"cannot start a child process: {error.strerror}") from None


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
