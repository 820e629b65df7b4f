"""The context of a function in a thread: the calls of a run's context, which block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import cached_property, partial
from queue import SimpleQueue
from random import Random
from typing import (
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    cast,
    overload,
)
from uuid import UUID

from typing_extensions import TypeForm

from draftsman.handlers.asks import ApproveOptions, Asking, AskOptions
from draftsman.handlers.changed_content import effect_text
from draftsman.handlers.context import RunContext, run_services, worker_run
from draftsman.handlers.run_constants import RunConstants
from draftsman.handlers.threads import call_in_thread, outcome_of
from draftsman.jobs.requests.attachments import AttachedFile
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.questions.question import Answered, NoAnswer
from draftsman.workflows.dependencies import Parent

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
R2 = TypeVar("R2")
R3 = TypeVar("R3")


class RunInterrupted(BaseException):
    """The run waits for people, or was stopped, and its thread has to unwind.

    Raised by the calls of the context. Derives from BaseException so that an `except Exception`
    does not catch it.
    """


class Calls(Protocol):
    """Calls of a run's context from where there is no event loop: a thread, or another process."""

    @property
    def job(self) -> ClaimedJob:
        """The claimed job."""

    @property
    def canceled(self) -> bool:
        """Whether the run should end soon."""

    def call(
        self,
        method: Callable[Concatenate[RunContext, P], Coroutine[Any, Any, T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a method; raises RunInterrupted, also in calls that wait."""

    def step(
        self, key: str, effect: Callable[[str], T], lookup: Callable[[str], T | None] | None
    ) -> T:
        """Return the result of a step, whose functions run where this is called."""

    def log(self, text: str) -> None:
        """Append a line to the log."""


class BlockingRunContext:
    """The run of a job, for a function in a thread or a process of its own.

    Each method is that of `RunContext`, and blocks until it has its result. Threads that the
    function starts may call them, too. Once the run waits for people, was canceled, timed out or
    has to end for a shutdown, they raise RunInterrupted.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def job(self) -> ClaimedJob:
        """The claimed job."""
        return self._calls.job

    @property
    def canceled(self) -> bool:
        """Whether the run should end soon; the next call raises RunInterrupted."""
        return self._calls.canceled

    def step(
        self,
        key: str,
        effect: Callable[[str], T],
        lookup: Callable[[str], T | None] | None = None,
    ) -> T:
        """Run an effect once and record its result, as `RunContext.step` does.

        `effect` and `lookup` run in the thread that calls this.
        """
        return self._calls.step(key, effect, lookup)

    @overload
    def ask(self, key: str, text: str, **options: Unpack[AskOptions]) -> Answered | NoAnswer: ...

    @overload
    def ask(
        self, key: str, text: str, *, type: TypeForm[T], **options: Unpack[AskOptions]
    ) -> Answered[T] | NoAnswer: ...

    def ask(self, key: str, text: str, *, type: Any = None, **options: Any) -> Any:
        """Return the answer to this question, as `RunContext.ask` does."""
        ask: Any = RunContext.ask
        return self._calls.call(ask, key, text, type=type, **options)

    def approve(self, key: str, text: str, **options: Unpack[ApproveOptions]) -> Answered:
        """Return the decision on this approval, as `RunContext.approve` does."""
        return self._calls.call(RunContext.approve, key, text, **options)

    @overload
    def ask_all(
        self, first: Asking[R], second: Asking[R2], /, *, return_when: Literal["all"] = "all"
    ) -> tuple[R, R2]: ...

    @overload
    def ask_all(
        self,
        first: Asking[R],
        second: Asking[R2],
        third: Asking[R3],
        /,
        *,
        return_when: Literal["all"] = "all",
    ) -> tuple[R, R2, R3]: ...

    @overload
    def ask_all(
        self, *questions: Asking[R], return_when: Literal["all"] = "all"
    ) -> tuple[R, ...]: ...

    @overload
    def ask_all(
        self, *questions: Asking[R], return_when: Literal["first"]
    ) -> tuple[R | None, ...]: ...

    def ask_all(
        self, *questions: Asking[Any], return_when: Literal["all", "first"] = "all"
    ) -> tuple[Any, ...]:
        """Return the results of several questions, as `RunContext.ask_all` does."""
        ask_all: Any = RunContext.ask_all
        answers = self._calls.call(ask_all, *questions, return_when=return_when)
        return cast("tuple[Any, ...]", answers)

    def sleep(
        self, key: str, until: datetime | timedelta | float, *, reason: str | None = None
    ) -> None:
        """Park the job until a time, as `RunContext.sleep` does."""
        self._calls.call(RunContext.sleep, key, until, reason=reason)

    def now(self) -> datetime:
        """Return the time of this call, the same in each run, as `RunContext.now` does."""
        return self._calls.call(RunContext.now)

    @property
    def random(self) -> Random:
        """Random numbers, the same sequence in each run of the job; not for secrets."""
        return self._constants.random

    def uuid(self) -> UUID:
        """Return a UUID of the job, as `RunContext.uuid` does."""
        return self._constants.uuid()

    @cached_property
    def _constants(self) -> RunConstants:
        return RunConstants(self.job.id)

    def attachments(self) -> list[AttachedFile]:
        """Return the files that people sent, as `RunContext.attachments` does."""
        return self._calls.call(RunContext.attachments)

    def parents(self) -> list[Parent]:
        """Return the jobs that this job waited for, as `RunContext.parents` does."""
        return self._calls.call(RunContext.parents)

    def spawn(self, key: str, type: str | Mapping[str, Any], **fields: Any) -> int:
        """Submit a job once for this key, as `RunContext.spawn` does."""
        spawn: Any = RunContext.spawn  # its fields may have any name
        return cast(int, self._calls.call(spawn, key, type, **fields))

    def gather(
        self, jobs: Sequence[int], *, on_failure: Literal["raise", "return"] = "raise"
    ) -> list[Parent]:
        """Return the spawned jobs once all ended, as `RunContext.gather` does."""
        return self._calls.call(RunContext.gather, jobs, on_failure=on_failure)

    def notify(
        self, text: str, targets: Sequence[str] = (), *, key: str | None = None
    ) -> list[int]:
        """Notify the targets, as `RunContext.notify` does."""
        return self._calls.call(RunContext.notify, text, targets, key=key)

    def checkpoint(self, data: dict[str, Any], bundle: bytes | None = None) -> None:
        """Save state for a later run, as `RunContext.checkpoint` does."""
        self._calls.call(RunContext.checkpoint, data, bundle)

    def saved(self) -> dict[str, Any] | None:
        """Return the newest checkpoint's data."""
        return self._calls.call(RunContext.saved)

    def event(self, kind: str, payload: dict[str, Any] | None = None) -> None:
        """Append an event to the job, as `RunContext.event` does."""
        self._calls.call(RunContext.event, kind, payload)

    def artifact(self, name: str, data: bytes, kind: str = "file") -> None:
        """Store a file with the job, as `RunContext.artifact` does."""
        self._calls.call(RunContext.artifact, name, data, kind)

    def usage(self, amounts: dict[str, Any]) -> None:
        """Record the usage of the run so far."""
        self._calls.call(RunContext.usage, amounts)

    def log(self, text: str) -> None:
        """Append a line to the run's log; `draftsman logs -f` shows it within about a second."""
        self._calls.log(text)


class ThreadCalls:
    """Calls of the context from threads of its process."""

    def __init__(self, context: RunContext, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._futures: set[Future[Any]] = set()
        self._interrupted = False

    @property
    def job(self) -> ClaimedJob:
        """The claimed job."""
        return self._context.job

    @property
    def canceled(self) -> bool:
        """Whether the run should end soon."""
        return self._interrupted or self._context.canceled

    def call(
        self,
        method: Callable[Concatenate[RunContext, P], Coroutine[Any, Any, T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a method, which runs on the event loop."""
        return self._run(method(self._context, *args, **kwargs), SimpleQueue())

    def step(
        self, key: str, effect: Callable[[str], T], lookup: Callable[[str], T | None] | None
    ) -> T:
        """Return the result of a step, whose functions run in the calling thread."""
        works: SimpleQueue[_ThreadCall | None] = SimpleQueue()
        step = worker_run(self._context).step(
            key,
            partial(_call_in_thread, works, effect),
            None if lookup is None else partial(_call_in_thread, works, lookup),
            content=effect_text(effect),
        )
        return cast(T, self._run(step, works))

    def log(self, text: str) -> None:
        """Append a line to the log."""
        self._loop.call_soon_threadsafe(self._context.log, text)

    def interrupt(self) -> None:
        """Let the calls raise RunInterrupted, those that wait as well."""
        self._interrupted = True
        for future in list(self._futures):
            future.cancel()

    def _run(self, call: Coroutine[Any, Any, T], works: SimpleQueue[_ThreadCall | None]) -> T:
        """Return the result of a call on the event loop, whose works of this thread are done."""
        if self._interrupted:
            call.close()
            raise RunInterrupted
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        self._futures.add(future)
        future.add_done_callback(lambda _: works.put(None))
        try:
            if self._interrupted:  # since the check above
                future.cancel()
            while (work := works.get()) is not None:
                work()
            return future.result()
        except CancelledError:
            raise RunInterrupted from None
        finally:
            self._futures.discard(future)


_ThreadCall = Callable[[], None]
"""A function that the thread of a call runs meanwhile."""


async def _call_in_thread(
    calls: SimpleQueue[_ThreadCall | None], function: Callable[[str], T], argument: str
) -> T:
    """Return the result of a function that the thread which waits for this call runs."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Callable[[], T]] = loop.create_future()
    context = copy_context()

    def settle(outcome: Callable[[], T]) -> None:
        if not ended.done():  # the call was canceled meanwhile
            ended.set_result(outcome)

    def work() -> None:
        outcome = outcome_of(partial(context.run, function, argument))
        loop.call_soon_threadsafe(settle, outcome)

    calls.put(work)
    return (await ended)()


async def run_in_thread(context: RunContext, function: Callable[[BlockingRunContext], T]) -> T:
    """Return the result of a function in a thread of its own, with a context that blocks.

    A task that is canceled waits for its thread, which nothing can end from outside: the next call
    of its context raises RunInterrupted. What the thread returns or raises after that is returned
    or raised here, as if the task had caught its cancellation.
    """
    calls = ThreadCalls(context, asyncio.get_running_loop())
    name = f"{context.job.name} run {context.job.run}"
    call = partial(function, BlockingRunContext(calls))
    outcome = await call_in_thread(run_services(context).thread_limit, name, call, calls.interrupt)
    try:
        return outcome()
    except RunInterrupted:
        raise asyncio.CancelledError from None
