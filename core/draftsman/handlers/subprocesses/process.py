"""A running agent: its pipes, its box, and the guard that ends it with its worker."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final, Self

from draftsman.errors import Failure
from draftsman.handlers.run_agent.protocol import MalformedLine
from draftsman.handlers.sandbox import bwrap, confinement
from draftsman.handlers.sandbox.mode_detection import START
from draftsman.handlers.sandbox.run_sandbox import RunSandbox, open_run_sandbox
from draftsman.handlers.subprocesses import guard, process_tree
from draftsman.handlers.subprocesses.environment import (
    agent_command,
    agent_environment,
    find_program,
)
from draftsman.handlers.subprocesses.line_splitter import LineSplitter
from draftsman.settings import AgentSettings, SandboxSettings

CHUNK: Final = 64 * 1024
"""Bytes of one read, and of one chunk of the log."""
SEND_AHEAD: Final = 4 * 1024 * 1024
"""Bytes kept for an agent that does not read, before `send` waits for it."""
LAST_OUTPUT_TIMEOUT: Final = 2.0
"""Seconds for a guard to exit once the program's output has ended."""

OnStderr = Callable[[bytes], Awaitable[None]]


class AgentProcess:
    """An agent under guard, as a context manager: leaving it kills whatever is left.

        async with await AgentProcess.start(agent, cwd=…, home=…, lease=300, on_stderr=…) as it:
            await it.send(encode(start))
            async for line in it.lines(): …
            code = await it.wait()

    Without a `heartbeat()` for `lease` seconds the guard kills the agent; a guard that does not
    acknowledge heartbeats for as long is killed, and the agent with it.
    """

    def __init__(
        self,
        process: Process,
        control: int,
        replies: GuardReplies,
        lease: float,
        on_stderr: OnStderr,
        own: RunSandbox | None = None,
    ) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("an agent has three pipes")
        self._process = process
        self._control: int | None = control
        self._replies, self._lease, self._own = replies, lease, own
        self._freezing = asyncio.Lock()
        self._killing: asyncio.Task[None] | None = None
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._stdin.transport.set_write_buffer_limits(high=SEND_AHEAD)
        self._log = asyncio.create_task(self._pass_on(on_stderr))

    @classmethod
    async def start(
        cls,
        agent: AgentSettings,
        *,
        cwd: Path,
        home: Path,
        lease: float,
        on_stderr: OnStderr,
        box: RunSandbox | None = None,
    ) -> Self:
        """Start the agent in `cwd` with the allowlisted environment.

        It is confined to `box`; without one, to its two folders, under the default settings.
        Raises Failure `command_not_found`, `environment` for a forbidden variable, `no_sandbox`.
        """
        environment = agent_environment(agent, home)
        program, *arguments = agent_command(agent)
        program = find_program(program, environment)
        own = None if box else await open_run_sandbox(SandboxSettings(), repo=cwd, home=home)
        box = box or own
        assert box is not None  # noqa: S101 - one of the two
        try:
            command = (box.sandbox_path(Path(program)), *arguments)
            plan = box.plan((program, *arguments), cwd.resolve(), agent.network)
            process, control, replies = await _spawn(
                (str(lease), json.dumps(plan), "--", *command),
                cwd=cwd,
                env=box.environment(environment),
                keep=plan["keep"],
            )
        except BaseException:
            if own is not None:
                own.close()
            raise
        return cls(process, control, replies, lease, on_stderr, own)

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

    async def lines(self) -> AsyncIterator[bytes | MalformedLine]:
        """Yield the agent's lines without their newlines, until it exits or closes its output."""
        splitter = LineSplitter()
        async for chunk in self.chunks():
            for line in splitter.feed(chunk):
                yield line
        for line in splitter.end():
            yield line

    def heartbeat(self) -> None:
        """Renew the lease; kill a guard that has acknowledged nothing for as long as the lease."""
        self._tell(guard.HEARTBEAT)
        if not self._freezing.locked() and self._replies.silent_for() > self._lease:
            self._kill_guard()

    def terminate(self) -> None:
        """Send SIGTERM to the agent's process group."""
        self._tell(guard.TERMINATE)

    def kill(self) -> None:
        """SIGKILL the agent and all its descendants."""
        self._tell(guard.KILL)

    @contextlib.asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """Keep the agent and all its descendants stopped, so that its tree can be read.

        Raises Failure `not_frozen` when that takes too long; at the end, when one of them ran in
        between: what was read then is not to be used.
        """
        async with self._freezing:
            try:
                frozen = await self._order(guard.FREEZE, guard.FROZEN, guard.NOT_FROZEN)
                yield
                if frozen:
                    await self._order(guard.CONTINUE, guard.CONTINUED, guard.MOVED)
            except BaseException:
                self._tell(guard.CONTINUE)
                raise
            finally:
                self._replies.reset_silence()

    async def _order(self, order: bytes, done: bytes, refused: bytes) -> bool:
        """Give the guard an order; return whether it was done: a program that has ended is still.

        Raises Failure `not_frozen` for the reply `refused`, for none, and for an end while frozen.
        """
        self._replies.expect(done, refused)
        self._tell(order)
        reply = await self._replies.next(2 * guard.FREEZE_LIMIT)
        if reply == refused or (not reply and order == guard.CONTINUE):
            raise _not_frozen()
        return bool(reply)

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
        self._release()  # the guard and the keeper both see it, and each kills by itself
        try:
            async with asyncio.timeout(2 * guard.KILL_TIMEOUT):
                await self._ended()
                await self._replies.ended.wait()
        except TimeoutError:
            self._kill_guard()  # stopped, or a process outlasts SIGKILL
        finally:
            if self._killing is not None:
                await self._killing
            self._replies.close()
            self._stdin.close()
            self._log.cancel()
            await asyncio.gather(self._log, return_exceptions=True)
            if self._own is not None:
                self._own.close()

    async def _ended(self) -> int:
        while await self._stdout.read(CHUNK):
            pass
        while True:
            try:
                async with asyncio.timeout(LAST_OUTPUT_TIMEOUT):
                    return await self._process.wait()
            except TimeoutError:
                if self._control is None:
                    self._kill_guard()

    def _kill_guard(self) -> None:
        """Kill all that the guard keeps, and the guard; in a thread, since it looks at /proc."""
        guarded = self._process.returncode is None
        root = self._process.pid if guarded else self._replies.keeper
        if self._killing is None and root is not None and not self._replies.ended.is_set():
            self._killing = asyncio.create_task(
                asyncio.to_thread(process_tree.kill, root, guard.KILL_TIMEOUT)
            )

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


class GuardReplies:
    """What guard and keeper report; `ended` is set once both are gone."""

    def __init__(self, descriptor: int) -> None:
        self.keeper: int | None = None
        self.ended = asyncio.Event()
        self._descriptor, self._head = descriptor, b""
        self._heard = dict.fromkeys((guard.GUARD_BEATS, guard.KEEPER_BEATS), time.monotonic())
        self._wanted: asyncio.Future[bytes] | None = None
        self._expected: tuple[bytes, ...] = ()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def silent_for(self) -> float:
        """Return the seconds since one of the two acknowledged a heartbeat for the last time."""
        return 0.0 if self.ended.is_set() else time.monotonic() - min(self._heard.values())

    def reset_silence(self) -> None:
        """Count the silence from now on: a keeper is silent while it is frozen."""
        self._heard = dict.fromkeys(self._heard, time.monotonic())

    def expect(self, *replies: bytes) -> None:
        """Take note of the next of these replies."""
        self._expected = replies
        self._wanted = self._loop.create_future()
        if self.ended.is_set():
            self._wanted.set_result(b"")

    async def next(self, timeout: float) -> bytes:
        """Return that reply; empty when the program has ended. Raises Failure `not_frozen`."""
        assert self._wanted is not None  # noqa: S101 - `expect` made it
        try:
            async with asyncio.timeout(timeout):
                return await self._wanted
        except TimeoutError:
            raise _not_frozen() from None

    def close(self) -> None:
        """Stop reading."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            self.ended.set()

    def _read(self) -> None:
        try:
            received = os.read(self._descriptor, 4096)
        except BlockingIOError:
            return
        if not received:
            self.close()
        if self.keeper is None:
            number, newline, received = (self._head + received).partition(b"\n")
            if not newline:
                self._head = number
            elif number.isdigit():
                self.keeper = int(number)
        for reply in (received[at : at + 1] for at in range(len(received))):
            if reply in self._heard:
                self._heard[reply] = time.monotonic()
            elif reply in self._expected:
                self._answer(reply)
        if self.ended.is_set():
            self._answer(b"")

    def _answer(self, reply: bytes) -> None:
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(reply)


async def _spawn(
    arguments: tuple[str, ...], *, cwd: Path, env: dict[str, str], keep: list[int]
) -> tuple[Process, int, GuardReplies]:
    """Start a guard; return it with the write end of its orders, and its replies."""
    start = START.format(
        root=str(bwrap.PACKAGE_ROOT), module="draftsman.handlers.subprocesses.guard"
    )
    orders, control = os.pipe()
    replied, replies = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", f"{start}sys.exit(main(sys.argv[1:]))"),
            *(str(orders), str(replies), *arguments),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=cwd,
            env={confinement.ENVIRONMENT: json.dumps(env)},
            pass_fds=(orders, replies, *keep),
            start_new_session=True,  # Ctrl-C is for the worker: it drains first
        )
    except BaseException:
        os.close(control)
        os.close(replied)
        raise
    finally:
        os.close(orders)
        os.close(replies)
    os.set_blocking(control, False)
    return process, control, GuardReplies(replied)


def _not_frozen() -> Failure:
    text = "the agent's processes could not be stopped to read its tree; it was not read"
    return Failure(text, origin="agent", code="not_frozen", declared="TRANSIENT_APP")
