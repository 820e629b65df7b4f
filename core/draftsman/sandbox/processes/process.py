"""Agent processes: pipes, sandbox, and the guard that ends them with the worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from draftsman.errors import Failure
from draftsman.resources import module_command
from draftsman.sandbox import confinement, container
from draftsman.sandbox.gateway_access import GatewayAccess
from draftsman.sandbox.network_proxy.access import ProxyAccess
from draftsman.sandbox.processes import guard, process_tree
from draftsman.sandbox.processes.environment import (
    OwnPort,
    agent_command,
    agent_environment,
    find_program,
)
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.sandbox.sandbox_plan import RunSandbox
from draftsman.settings.agents import AgentSettings
from draftsman.settings.sandbox import SandboxSettings

# Splitter of a stream into lines of limited length.


MAX_LINE: Final = 1024 * 1024
"""Maximum bytes of a line from an agent, without its newline."""
BEGINNING: Final = 4096
"""Bytes that are kept of a longer line."""


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """A line that is not a valid message, with its `id`, if any."""

    reason: str
    id: str | None = None
    beginning: bytes = field(default=b"", compare=False, repr=False)
    """The first bytes of a line that is too long, which may have its id."""

    @classmethod
    def too_long(cls, size: int, limit: int, beginning: bytes = b"") -> Self:
        """Return the line of so many bytes, which is longer than the limit."""
        text = f"line of {size:,} bytes is too long; the limit is {limit:,} bytes"
        return cls(text, beginning=beginning)


class LineSplitter:
    """Splits a stream into lines; buffers at most `limit` bytes, and the beginning of a line."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._beginning = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | MalformedLine]:
        """Yield the lines that the chunk completes."""
        *complete, beginning = chunk.split(b"\n")
        for piece in complete:
            self._add(piece)
            yield self._take()
        self._add(beginning)

    def end(self) -> Iterator[bytes | MalformedLine]:
        """Yield the last line if it has no newline."""
        if self._size:
            yield self._take()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            if self._pieces or not self._beginning:
                self._beginning = b"".join((*self._pieces, piece))[:BEGINNING]
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    def _take(self) -> bytes | MalformedLine:
        line = b"".join(self._pieces)
        size = self._size
        beginning = self._beginning
        self._pieces = []
        self._size = 0
        self._beginning = b""
        if size > self._limit:
            return MalformedLine.too_long(size, self._limit, beginning)
        return line


CHUNK: Final = 64 * 1024
"""Bytes of a read."""
SEND_AHEAD: Final = 4 * 1024 * 1024
"""Bytes buffered for an agent that does not read, before `send` waits."""
LAST_OUTPUT_TIMEOUT: Final = 2.0
"""Seconds for a guard to exit once the program's output has ended."""

OnStderr = Callable[[bytes], Awaitable[None]]


class AgentProcess:
    """An agent under guard. It is a context manager that kills all processes at its end.

        async with await AgentProcess.start(agent, cwd=…, home=…, lease=300, …) as process:
            process.post(encode(start))
            async for line in process.lines(): …
            code = await process.wait()

    Without a `heartbeat()` for `lease` seconds the guard kills the agent. A guard that does not
    acknowledge heartbeats for that time is killed, and the agent with it.
    """

    def __init__(
        self,
        process: Process,
        control: int,
        replies: GuardReplies,
        lease: float,
        on_stderr: OnStderr,
        own_sandbox: RunSandbox | None = None,
        plan: Mapping[str, Any] | None = None,
    ) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("an agent process needs pipes for stdin, stdout and stderr")
        self._process = process
        self._control: int | None = control
        self._replies = replies
        self._lease = lease
        self._own_sandbox = own_sandbox
        self._container = plan if plan is not None and plan["mode"] == "container" else None
        self._freezing = asyncio.Lock()
        self._killing: asyncio.Task[None] | None = None
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._stderr = process.stderr
        self._stdin.transport.set_write_buffer_limits(high=SEND_AHEAD)
        self._stderr_task = asyncio.create_task(self._forward_stderr(on_stderr))

    @classmethod
    async def start(
        cls,
        agent: AgentSettings,
        *,
        cwd: Path,
        home: Path,
        lease: float,
        on_stderr: OnStderr,
        sandbox: RunSandbox | None = None,
        gateway: GatewayAccess | None = None,
        proxy: ProxyAccess | None = None,
    ) -> Self:
        """Start the agent in `cwd` with the allowlisted environment.

        It runs in `sandbox`; by default in a sandbox of its two folders, with default settings, and
        reaches its model through `gateway`, and named hosts through `proxy`.
        Raises Failure `command_not_found`, `environment` for a forbidden variable, `no_sandbox`.
        """
        own_sandbox = (
            None if sandbox else await open_run_sandbox(SandboxSettings(), repo=cwd, home=home)
        )
        sandbox = sandbox or own_sandbox
        assert sandbox is not None  # noqa: S101 - set above
        try:
            mode = sandbox.sandbox
            own_port = OwnPort.of(agent)
            environment = agent_environment(
                agent, home, gateway=gateway, proxy=proxy, sandbox=mode, own_port=own_port
            )
            program, *arguments = agent_command(agent, mode, own_port)
            program = find_program(program, environment, mode)
            command = (sandbox.sandbox_path(Path(program)), *arguments)
            ports = [access.port for access in (gateway, proxy) if access is not None]
            plan = sandbox.plan(
                (program, *arguments),
                cwd.resolve(),
                agent.network,
                ports,
                environment.get("PATH", ""),
                None if own_port is None else own_port.number,
            )
            process, control, replies = await _spawn(
                (str(lease), confinement.encode(plan), "--", *command),
                cwd=cwd,
                env=sandbox.environment(environment),
                keep=plan["keep"],
            )
            for port in ports:
                port.release_descriptor()
        except BaseException:
            if own_sandbox is not None:
                own_sandbox.close()
            raise
        return cls(process, control, replies, lease, on_stderr, own_sandbox, plan)

    @property
    def pid(self) -> int:
        """The guard's process id."""
        return self._process.pid

    def post(self, line: bytes) -> None:
        """Write a line to the agent without a wait; dropped if it has exited or closed its input.

        Who reads the agent's output must not wait until it reads, too: `unread` is the limit.
        """
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._stdin.write(line)

    async def send(self, line: bytes) -> None:
        """Write a line as `post`; wait while the agent has to read more than SEND_AHEAD bytes."""
        self.post(line)
        with contextlib.suppress(ConnectionError, RuntimeError):
            await self._stdin.drain()

    @property
    def unread(self) -> int:
        """Bytes that wait for the agent to read them, besides those in its pipe."""
        return self._stdin.transport.get_write_buffer_size()

    def close_input(self) -> None:
        """Close the program's standard input."""
        self._stdin.close()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the program's output until it exits or closes it."""
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
        """Renew the lease; kill the guard if it has not replied for the duration of the lease."""
        self._send_order(guard.HEARTBEAT)
        if not self._freezing.locked() and self._replies.silent_for() > self._lease:
            self._kill_guard()

    def is_alive(self) -> bool:
        """Renew the lease; return whether the agent has not exited."""
        self.heartbeat()
        return not self._stdout.at_eof()

    def terminate(self) -> None:
        """Send SIGTERM to the agent's process group."""
        self._send_order(guard.TERMINATE)

    def kill(self) -> None:
        """Kill the agent and all its descendants."""
        self._send_order(guard.KILL)

    @contextlib.asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """Stop the agent and all its descendants for the block, so that its tree can be read.

        Raises Failure `not_frozen` when that takes too long, and at the end of the block when a
        process ran meanwhile: then data read in the block is not consistent.
        """
        async with self._freezing:
            try:
                frozen = await self._order(guard.FREEZE, guard.FROZEN, guard.NOT_FROZEN)
                yield
                if frozen:
                    await self._order(guard.CONTINUE, guard.CONTINUED, guard.CHANGED)
            except BaseException:
                self._send_order(guard.CONTINUE)
                raise
            finally:
                self._replies.reset_silence()

    async def ends_within(self, seconds: float) -> bool:
        """Wait for the end of the agent and all its descendants; return whether they ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._replies.ended.wait()
        return self._replies.ended.is_set()

    async def _order(self, order: bytes, confirmed: bytes, rejected: bytes) -> bool:
        """Send the guard an order; return False if the program has ended.

        Raises Failure `not_frozen` for the reply `rejected`, for no reply, and for a program that
        ended while frozen.
        """
        self._replies.expect(confirmed, rejected)
        self._send_order(order)
        reply = await self._replies.next(2 * guard.FREEZE_LIMIT)
        if reply == rejected or (not reply and order == guard.CONTINUE):
            raise _not_frozen()
        return bool(reply)

    async def wait(self) -> int:
        """Return the exit code, 128 + n after a signal, once all output was read.

        An exception of the `on_stderr` callback, which killed the agent, is raised here.
        """
        code = await self._wait_for_end()
        await self._stderr_task
        return code

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._release()  # guard and keeper both detect it and kill
        try:
            async with asyncio.timeout(2 * guard.KILL_TIMEOUT):
                await self._wait_for_end()
                await self._replies.ended.wait()
        except TimeoutError:
            self._kill_guard()  # stopped, or a process outlasts SIGKILL
        finally:
            if self._killing is not None:
                await self._killing
            self._replies.close()
            self._stdin.close()
            self._stderr_task.cancel()
            await asyncio.gather(self._stderr_task, return_exceptions=True)
            if self._container is not None:
                await asyncio.to_thread(container.remove, self._container)
            if self._own_sandbox is not None:
                self._own_sandbox.close()

    async def _wait_for_end(self) -> int:
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
        """Kill the guard and all its descendants, in a thread since it reads /proc."""
        guarded = self._process.returncode is None
        root = self._process.pid if guarded else self._replies.keeper
        if self._killing is None and root is not None and not self._replies.ended.is_set():
            self._killing = asyncio.create_task(
                asyncio.to_thread(process_tree.kill, root, guard.KILL_TIMEOUT)
            )

    def _send_order(self, order: bytes) -> None:
        if self._control is None:  # the descriptor may be reused by now
            return
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._control, order)

    def _release(self) -> None:
        if self._control is not None:
            os.close(self._control)
            self._control = None

    async def _forward_stderr(self, on_stderr: OnStderr) -> None:
        try:
            while chunk := await self._stderr.read(CHUNK):
                await on_stderr(chunk)
        except Exception:
            self.kill()
            while await self._stderr.read(CHUNK):
                pass
            raise


class GuardReplies:
    """Replies of guard and keeper; `ended` is set once both have exited."""

    def __init__(self, descriptor: int) -> None:
        self.keeper: int | None = None
        self.ended = asyncio.Event()
        self._descriptor = descriptor
        self._head = b""
        self._last_replies = dict.fromkeys(
            (guard.GUARD_ALIVE, guard.KEEPER_ALIVE), time.monotonic()
        )
        self._awaited_reply: asyncio.Future[bytes] | None = None
        self._expected: tuple[bytes, ...] = ()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def silent_for(self) -> float:
        """Return the seconds since the older of the last replies of guard and keeper."""
        return 0.0 if self.ended.is_set() else time.monotonic() - min(self._last_replies.values())

    def reset_silence(self) -> None:
        """Restart the count of silence: a keeper does not reply while it is frozen."""
        self._last_replies = dict.fromkeys(self._last_replies, time.monotonic())

    def expect(self, *replies: bytes) -> None:
        """Record the next of these replies, for `next`."""
        self._expected = replies
        self._awaited_reply = self._loop.create_future()
        if self.ended.is_set():
            self._awaited_reply.set_result(b"")

    async def next(self, timeout: float) -> bytes:
        """Return the expected reply; empty if the program ended. Raises Failure `not_frozen`."""
        assert self._awaited_reply is not None  # noqa: S101 - `expect` made it
        try:
            async with asyncio.timeout(timeout):
                return await self._awaited_reply
        except TimeoutError:
            raise _not_frozen() from None

    def close(self) -> None:
        """Stop reading replies."""
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
            if reply in self._last_replies:
                self._last_replies[reply] = time.monotonic()
            elif reply in self._expected:
                self._resolve(reply)
        if self.ended.is_set():
            self._resolve(b"")

    def _resolve(self, reply: bytes) -> None:
        if self._awaited_reply is not None and not self._awaited_reply.done():
            self._awaited_reply.set_result(reply)


async def _spawn(
    arguments: tuple[str, ...], *, cwd: Path, env: dict[str, str], keep: list[int]
) -> tuple[Process, int, GuardReplies]:
    """Start a guard; return it with the descriptor for orders, and its replies."""
    orders, control = os.pipe()
    replies_read, replies = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *module_command("draftsman.sandbox.processes.guard"),
            str(orders),
            str(replies),
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=cwd,
            env={confinement.ENVIRONMENT: confinement.encode(env)},
            pass_fds=(orders, replies, *keep),
            start_new_session=True,  # Ctrl-C reaches the worker only, which drains first
        )
    except BaseException:
        os.close(control)
        os.close(replies_read)
        raise
    finally:
        os.close(orders)
        os.close(replies)
    os.set_blocking(control, False)
    return process, control, GuardReplies(replies_read)


def _not_frozen() -> Failure:
    text = "could not stop the agent's processes to read its workspace; nothing was read"
    return Failure(text, origin="agent", code="not_frozen", declared="TRANSIENT_APP")
