"""Runs in processes of their own: a spawner that has imported the app forks one for each."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final, Self

from draftsman.errors import Failure
from draftsman.handlers.context import RunContext, worker_run
from draftsman.job_types.run_channel import (
    INTERRUPT,
    Call,
    Effect,
    EffectFailed,
    End,
    Interrupt,
    Output,
    Result,
    Start,
    StepCall,
    dump,
    read,
    write,
)
from draftsman.log import redact

MAIN: Final = (
    "import sys; from draftsman.job_types.spawner import main; sys.exit(main(sys.argv[1:]))"
)
GRACE: Final = 5.0
"""Seconds from the signal to SIGKILL for a process whose run was interrupted."""
START: Final = 60.0
"""Seconds in which the spawner imports the app."""
_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Child:
    """The process of a run, as the spawner reports it."""

    started: asyncio.Future[int] = field(default_factory=asyncio.Future)
    exited: asyncio.Future[int | None] = field(default_factory=asyncio.Future)
    """The exit code, negative for a signal; None if the spawner is gone."""


class ProcessRuns:
    """The processes of a worker's runs; use it as a context manager.

    `modules` declare the types. The spawner starts with the first run, and again if it was killed.
    """

    def __init__(self, modules: Iterable[str], grace: float = GRACE) -> None:
        self._modules = tuple(dict.fromkeys(modules))
        self._grace = grace
        self._ids = count(1)
        self._children: dict[int, _Child] = {}
        self._request = asyncio.Lock()
        self._spawner: asyncio.Task[_Spawner] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the spawner, which kills the processes."""
        if self._spawner is not None:
            with contextlib.suppress(Failure):
                await (await self._spawner).close()

    async def run(
        self, context: RunContext, type: str, arguments: dict[str, Any], memory_mb: int | None
    ) -> Any:
        """Return what the function of a type returns in a process of its own.

        Raises its Failure, and Failure `process_died` if the process ends without a result. A task
        that is canceled interrupts the process, and kills it GRACE seconds later; it is gone when
        this returns.
        """
        ours, theirs = socket.socketpair()
        try:
            child = await self._fork(theirs, memory_mb)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        write(writer, Start(type, context.job, arguments))
        session = _Session(context, writer)
        conversation = asyncio.create_task(session.serve(reader))
        try:
            end = await self._ended(child, writer, conversation)
        finally:
            session.close()
            await _close(writer)
        if end is not None and end.interrupted:
            raise asyncio.CancelledError
        if end is None:
            code = child.exited.result()
            raise Failure(_death(code, memory_mb), code="process_died", declared="TRANSIENT_APP")
        if end.details is not None:
            context.log(redact(end.details))
        if end.failure is not None:
            raise end.failure
        return end.value

    async def _ended(
        self, child: _Child, writer: asyncio.StreamWriter, conversation: asyncio.Task[End | None]
    ) -> End | None:
        """Return the end that the process sent, once it is gone; None if it sent none."""
        loop = asyncio.get_running_loop()
        pid = child.started.result()
        canceled: asyncio.CancelledError | None = None
        timer: asyncio.TimerHandle | None = None
        both = asyncio.gather(conversation, child.exited)
        while not both.done():
            try:
                await asyncio.shield(both)
            except asyncio.CancelledError as error:
                if timer is None:
                    write(writer, Interrupt())
                    _signal(pid, INTERRUPT, child)
                    timer = loop.call_later(
                        self._grace, partial(_signal, pid, signal.SIGKILL, child)
                    )
                canceled = error
        if timer is not None:
            timer.cancel()
        end = conversation.result()
        if canceled is not None and (end is None or end.interrupted):
            raise canceled
        return end

    async def _fork(self, connection: socket.socket, memory_mb: int | None) -> _Child:
        """Let the spawner fork a process that has the other end of the connection."""
        if self._spawner is None:
            self._spawner = asyncio.create_task(self._start())
        try:
            spawner = await asyncio.shield(self._spawner)
        except Failure:
            self._spawner = None
            raise
        memory = None if memory_mb is None else memory_mb << 20
        async with self._request:  # one at a time is read, with its descriptor
            id = next(self._ids)
            child = self._children[id] = _Child()
            try:
                spawner.send({"id": id, "memory": memory}, connection)
                await asyncio.shield(child.started)
            except OSError:
                self._children.pop(id, None)
                text = "the process that starts those of runs has ended"
                raise Failure(text, code="process_died", declared="TRANSIENT_INFRA") from None
        return child

    async def _start(self) -> _Spawner:
        """Start the spawner, and wait until it has imported the app; raises Failure."""
        spawner = await _Spawner.start(self._modules)
        spawner.reports = asyncio.create_task(self._read_reports(spawner))
        return spawner

    async def _read_reports(self, spawner: _Spawner) -> None:
        """Pass on what the spawner reports; at its end no process is left."""
        async for message in spawner.messages():
            child = self._children[message["id"]]
            if "pid" in message:
                child.started.set_result(message["pid"])
            else:
                self._children.pop(message["id"]).exited.set_result(message["exited"])
        self._spawner = None
        for child in self._children.values():
            if child.started.done():
                child.exited.set_result(None)
            else:
                child.started.set_exception(OSError())
        self._children.clear()


class _Spawner:
    """A spawner that has imported the app."""

    reports: asyncio.Task[None]
    """Reads its messages until it ends."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        control: socket.socket,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._control = control
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, modules: Sequence[str]) -> Self:
        """Start a process, and wait until it has imported these modules; raises Failure."""
        ours, theirs = socket.socketpair()
        told = {"path": sys.path, "modules": modules, "control": theirs.fileno()}
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", MAIN, json.dumps(told)),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        finally:
            theirs.close()
        spawner = cls(process, ours, *await asyncio.open_connection(sock=ours))
        line = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START):
                line = await spawner._reader.readline()
        message = json.loads(line or '{"error": "it ended"}')
        if "error" in message:
            await spawner._end()
            text = "the process that starts those of runs cannot import the app"
            raise Failure(
                f"{text}: {message['error']}", code="process_died", declared="TRANSIENT_INFRA"
            )
        return spawner

    def send(self, request: dict[str, Any], connection: socket.socket) -> None:
        """Send a request with a descriptor; raises OSError if the process is gone."""
        data = json.dumps(request).encode()
        socket.send_fds(self._control, [data], [connection.fileno()])

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the messages of the process until it has ended."""
        with contextlib.suppress(ConnectionError):
            while line := await self._reader.readline():
                yield json.loads(line)
        if not self._writer.is_closing():
            _log.error("the process that starts those of runs ended; the next run starts another")
        await self._end()

    async def close(self) -> None:
        """End the process, which kills those of runs."""
        self._writer.close()
        await self.reports

    async def _end(self) -> None:
        await _close(self._writer)
        await self._process.wait()


class _Session:
    """The calls of a process, on the context of its run."""

    def __init__(self, context: RunContext, writer: asyncio.StreamWriter) -> None:
        self._context = context
        self._writer = writer
        self._calls: set[asyncio.Task[None]] = set()
        self._effects: dict[int, asyncio.Future[Any]] = {}

    async def serve(self, reader: asyncio.StreamReader) -> End | None:
        """Answer the calls; return the end, or None for a process that is gone."""
        while True:
            match await read(reader):
                case End() as end:
                    return end
                case None:
                    return None
                case Output(text):
                    self._context.log(redact(text))
                case Result(id, value, error, of_effect=True):
                    self._settle_effect(id, value, error)
                case Call(id, method, args, kwargs):
                    call: Callable[..., Awaitable[Any]] = getattr(self._context, method)
                    self._start(id, partial(call, *args, **kwargs))
                case StepCall(id, key, content, has_lookup):
                    effect = partial(self._effect, id, False)
                    lookup = partial(self._effect, id, True) if has_lookup else None
                    step = partial(worker_run(self._context).step, content=content)
                    self._start(id, partial(step, key, effect, lookup))

    def close(self) -> None:
        """Cancel the calls that wait."""
        for call in self._calls:
            call.cancel()

    def _start(self, id: int, call: Callable[[], Awaitable[Any]]) -> None:
        task = asyncio.create_task(self._answer(id, call))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _answer(self, id: int, call: Callable[[], Awaitable[Any]]) -> None:
        try:
            reply = dump(Result(id, await call()))
        except Exception as error:
            reply = _dumped_error(id, error)
        if not self._writer.is_closing():
            self._writer.write(reply)

    async def _effect(self, id: int, is_lookup: bool, invocation_id: str) -> Any:
        """Let the process run the effect of a step."""
        future = self._effects[id] = asyncio.get_running_loop().create_future()
        write(self._writer, Effect(id, is_lookup, invocation_id))
        try:
            return await future
        finally:
            del self._effects[id]

    def _settle_effect(self, id: int, value: Any, error: BaseException | None) -> None:
        future = self._effects.get(id)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(EffectFailed())


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _dumped_error(id: int, error: Exception) -> bytes:
    try:
        return dump(Result(id, error=error))
    except Exception:  # it cannot be pickled
        return dump(Result(id, error=Failure(f"{type(error).__name__}: {error}")))


def _signal(pid: int, number: signal.Signals, child: _Child) -> None:
    """Signal a process; its spawner has not reaped it as long as it has reported no exit."""
    if child.exited.done():
        return
    with contextlib.suppress(ProcessLookupError):
        if number is signal.SIGKILL:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def _death(code: int | None, memory_mb: int | None) -> str:
    """Return why a process ended without a result."""
    if code is None:
        return "the process of the run was killed with the one that starts them"
    if code < 0:
        name = signal.Signals(-code).name
        limit = f" (its memory limit is {memory_mb} MB)" if memory_mb else ""
        return f"the process of the run was killed by {name}{limit}"
    return f"the process of the run exited with code {code} before its function returned"
