"""The process of a run: the function, and its context, whose calls the worker answers."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from itertools import count
from queue import SimpleQueue
from typing import Any, Concatenate, Final, ParamSpec, TextIO, TypeVar, cast

from draftsman.handlers.blocking_context import BlockingRunContext, RunInterrupted
from draftsman.handlers.changed_content import effect_text
from draftsman.handlers.context import RunContext
from draftsman.handlers.handler_errors import failure_details, handler_failure
from draftsman.job_types import declaration
from draftsman.job_types.declaration import JobType
from draftsman.job_types.run_channel import (
    INTERRUPT,
    Call,
    Channel,
    Effect,
    EffectFailed,
    End,
    Interrupt,
    Output,
    Result,
    Start,
    StepCall,
)
from draftsman.jobs.runs.run import ClaimedJob

P = ParamSpec("P")
T = TypeVar("T")
WORKER_GONE: Final = 75
"""Exit code: the worker ended, and its run with it."""


def run(connection: socket.socket) -> None:
    """Run the function that the first message names, and send its end."""
    channel = Channel(connection)
    start: Start = channel.receive()
    calls = ProcessCalls(channel, start.job)
    threading.Thread(target=calls.receive, name="draftsman-calls", daemon=True).start()
    signal.signal(INTERRUPT, calls.interrupt_main)
    sys.stdout = cast(TextIO, _Lines(channel))
    sys.stderr = cast(TextIO, _Lines(channel))
    declared = declaration.declared_types[start.type]
    end = _end(declared, calls, start.arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        channel.send(end)
    except OSError:
        os._exit(WORKER_GONE)
    except Exception as error:  # a value that cannot be pickled
        failure = handler_failure(TypeError(f"the result cannot be sent: {error}"), "")
        channel.send(End(failure=failure))


def _end(type: JobType[Any, Any], calls: ProcessCalls, arguments: dict[str, Any]) -> End:
    try:
        return End(value=type.run_blocking(BlockingRunContext(calls), **arguments))
    except RunInterrupted:
        return End(interrupted=True)
    except BaseException as error:
        failure = handler_failure(error, type.function.__module__)
        return End(failure=failure, details=failure_details(error, failure))


class ProcessCalls:
    """Calls of the context from the threads of another process."""

    def __init__(self, channel: Channel, job: ClaimedJob) -> None:
        self._channel = channel
        self._job = job
        self._ids = count(1)
        self._replies: dict[int, SimpleQueue[Any]] = {}
        self._interrupted = False

    @property
    def job(self) -> ClaimedJob:
        """The claimed job."""
        return self._job

    @property
    def canceled(self) -> bool:
        """Whether the run should end soon."""
        return self._interrupted

    def call(
        self,
        method: Callable[Concatenate[RunContext, P], Coroutine[Any, Any, T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a method, which the worker calls."""
        id = next(self._ids)
        return cast(T, self._exchange(id, Call(id, method.__name__, args, dict(kwargs)), {}))

    def step(
        self, key: str, effect: Callable[[str], T], lookup: Callable[[str], T | None] | None
    ) -> T:
        """Return the result of a step, whose functions run here."""
        id = next(self._ids)
        functions = {False: effect, True: lookup}
        call = StepCall(id, key, effect_text(effect), lookup is not None)
        return cast(T, self._exchange(id, call, functions))

    def log(self, text: str) -> None:
        """Append a line to the log."""
        self._channel.send(Output(text if text.endswith("\n") else f"{text}\n"))

    def receive(self) -> None:
        """Pass the messages of the worker to the threads that wait, until it is gone."""
        while (message := self._channel.receive()) is not None:
            if isinstance(message, Interrupt):
                self._interrupt()
            elif (waiting := self._replies.get(message.id)) is not None:
                waiting.put(message)
        os._exit(WORKER_GONE)

    def interrupt_main(self, *_: object) -> None:
        """Interrupt the main thread wherever it is, once."""
        signal.signal(INTERRUPT, signal.SIG_IGN)
        self._interrupt()
        raise RunInterrupted

    def _interrupt(self) -> None:
        self._interrupted = True
        for waiting in list(self._replies.values()):
            waiting.put(None)

    def _exchange(
        self, id: int, message: object, functions: dict[bool, Callable[[str], Any] | None]
    ) -> Any:
        """Send a call, do its effects, and return its result."""
        waiting: SimpleQueue[Result | Effect | None] = SimpleQueue()
        self._replies[id] = waiting
        raised: BaseException | None = None
        try:
            if self._interrupted:
                raise RunInterrupted
            self._channel.send(message)
            while isinstance(reply := waiting.get(), Effect):
                function = functions[reply.is_lookup]
                try:
                    value = None if function is None else function(reply.invocation_id)
                except RunInterrupted:
                    raise
                except BaseException as error:
                    raised = error
                    self._channel.send(Result(id, error=EffectFailed(), of_effect=True))
                else:
                    self._channel.send(Result(id, value, of_effect=True))
        finally:
            del self._replies[id]
        if reply is None:
            raise RunInterrupted
        if isinstance(reply.error, EffectFailed) and raised is not None:
            raise raised  # as it was, with its traceback
        if reply.error is not None:
            raise reply.error
        return reply.value


class _Lines:
    """A standard stream whose lines go to the log of the run."""

    encoding = "utf-8"

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._text = ""
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        """Send the complete lines."""
        with self._lock:
            lines, newline, self._text = (self._text + text).rpartition("\n")
            if newline:
                self._channel.send(Output(f"{lines}\n"))
        return len(text)

    def flush(self) -> None:
        """Send the beginning of a line as a line."""
        with self._lock:
            if self._text:
                self._channel.send(Output(f"{self._text}\n"))
            self._text = ""

    def isatty(self) -> bool:
        """Return that this is no terminal."""
        return False

    def writable(self) -> bool:
        """Return that text can be written."""
        return True
