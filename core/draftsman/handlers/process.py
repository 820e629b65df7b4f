"""A running agent: its pipes, and the guard that ends it with its worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final, Self

from draftsman.handlers import guard
from draftsman.handlers.environment import agent_command, agent_environment, find_program
from draftsman.handlers.lines import LineSplitter
from draftsman.handlers.protocol import Malformed
from draftsman.settings import AgentSettings

CHUNK: Final = 64 * 1024
"""Bytes of one read, and of one chunk of the log."""
SEND_AHEAD: Final = 4 * 1024 * 1024
"""Bytes kept for an agent that does not read, before `send` waits for it."""
HEARTBEAT: Final = b"h"

OnStderr = Callable[[bytes], Awaitable[None]]


class AgentProcess:
    """An agent under guard, as a context manager: leaving it kills whatever is left.

        async with await AgentProcess.start(agent, cwd=…, home=…, lease=300, on_stderr=…) as it:
            await it.send(encode(start))
            async for line in it.lines(): …
            code = await it.wait()

    Without a `heartbeat()` for `lease` seconds the guard kills the agent.
    """

    def __init__(self, process: Process, control: int, on_stderr: OnStderr) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("an agent has three pipes")
        self._process = process
        self._control: int | None = control
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._stdin.transport.set_write_buffer_limits(high=SEND_AHEAD)
        self._log = asyncio.create_task(self._pass_on(on_stderr))

    @classmethod
    async def start(
        cls, agent: AgentSettings, *, cwd: Path, home: Path, lease: float, on_stderr: OnStderr
    ) -> Self:
        """Start the agent in `cwd` with the allowlisted environment.

        Raises Failure `command_not_found`, or `environment` for a forbidden variable.
        """
        environment = agent_environment(agent, home)
        program, *arguments = agent_command(agent)
        program = find_program(program, environment)
        reader, control = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", guard.__file__, str(reader), str(lease), "--"),
                *(program, *arguments),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=cwd,
                env=environment,
                pass_fds=(reader,),
                start_new_session=True,  # Ctrl-C is for the worker: it drains first
            )
        except BaseException:
            os.close(control)
            raise
        finally:
            os.close(reader)
        os.set_blocking(control, False)
        return cls(process, control, on_stderr)

    @property
    def pid(self) -> int:
        """The guard's process id."""
        return self._process.pid

    async def send(self, line: bytes) -> None:
        """Write a line to the agent; one that has gone, or closed its input, misses it."""
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._stdin.write(line)
            await self._stdin.drain()

    def close_input(self) -> None:
        """Let the program read the end of its input."""
        self._stdin.close()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the program's output as it comes, until it exits or closes it."""
        while chunk := await self._stdout.read(CHUNK):
            yield chunk

    async def lines(self) -> AsyncIterator[bytes | Malformed]:
        """Yield the agent's lines without their newlines, until it exits or closes its output."""
        splitter = LineSplitter()
        async for chunk in self.chunks():
            for line in splitter.feed(chunk):
                yield line
        for line in splitter.end():
            yield line

    def heartbeat(self) -> None:
        """Renew the lease."""
        self._tell(HEARTBEAT)

    def terminate(self) -> None:
        """Send SIGTERM to the agent's process group."""
        self._tell(guard.TERMINATE)

    def kill(self) -> None:
        """SIGKILL the agent and all its descendants."""
        self._tell(guard.KILL)

    async def wait(self) -> int:
        """Return the exit code, 128 + n after a signal, once the output was read to its end.

        What the `on_stderr` callback raised is raised here; it killed the agent then.
        """
        code = await self._ended()
        await self._log
        return code

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kill()
        try:
            async with asyncio.timeout(2 * guard.GIVE_UP):
                await self._ended()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()  # the guard is stopped; the agent dies with it
        finally:
            self._release()
            self._stdin.close()
            self._log.cancel()
            await asyncio.gather(self._log, return_exceptions=True)

    async def _ended(self) -> int:
        while await self._stdout.read(CHUNK):
            pass
        return await self._process.wait()

    def _tell(self, order: bytes) -> None:
        if self._control is None:  # its number may be another file's by now
            return
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._control, order)

    def _release(self) -> None:
        if self._control is not None:
            os.close(self._control)
            self._control = None

    async def _pass_on(self, on_stderr: OnStderr) -> None:
        try:
            while chunk := await self._stderr.read(CHUNK):
                await on_stderr(chunk)
        except Exception:
            self.kill()
            while await self._stderr.read(CHUNK):
                pass
            raise
