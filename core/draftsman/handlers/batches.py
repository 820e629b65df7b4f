"""Batches: runs of several jobs of a type that its function gets together.

    run ── join ──┐
    run ── join ──┼── begin ── the function ── an outcome for each run
    run ── join ──┘

Each run has its own lease, time limit, retries and cancellation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from draftsman.errors import Failure
from draftsman.handlers.context import RunContext, run_services, worker_run
from draftsman.handlers.handler_errors import UNREQUESTED_CANCELLATION
from draftsman.handlers.threads import call_in_thread
from draftsman.jobs.runs.outcome import Outcome
from draftsman.jobs.runs.run import ClaimedJob

D = TypeVar("D")
MAX_SIZE: Final = 1000
"""Runs of a batch at most."""
OVERSTAY: Final = 5.0
"""Seconds after which a function is named that goes on without any of its runs."""
_log = logging.getLogger(__name__)


class BatchType(Protocol):
    """A job type whose function gets a batch."""

    name: str
    function: Callable[..., Any]

    @property
    def place(self) -> str:
        """The module and the function: `company.jobs:weekly`."""

    @property
    def is_blocking(self) -> bool:
        """Whether the function runs in a thread."""

    def surround(self, jobs: Sequence[ClaimedJob]) -> AbstractContextManager[None]:
        """Return the middleware around all of these runs."""

    async def run_with(
        self, context: RunContext, call: Callable[[dict[str, Any]], Awaitable[Any]]
    ) -> Outcome:
        """Return the outcome of a run, whose parameters are passed to the call."""


class BatchRun(Generic[D]):
    """A run of a batch, with its parameters."""

    def __init__(self, context: RunContext, payload: D) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._left = False
        self.payload = payload

    @property
    def job(self) -> ClaimedJob:
        """The claimed job."""
        return self._context.job

    @property
    def canceled(self) -> bool:
        """Whether the run has ended: the result of the function for it no longer counts."""
        return self._left

    def log(self, text: str) -> None:
        """Append a line to the log of the run."""
        self._loop.call_soon_threadsafe(self._context.log, text)


@dataclass(eq=False, slots=True)
class _Member:
    run: BatchRun[Any]
    outcome: asyncio.Future[Any] = field(default_factory=asyncio.Future)


class BatchEntry:
    """The place of a run in a batch, and its handler."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.__module__ = batch.type.function.__module__
        self.__qualname__ = batch.type.function.__qualname__
        self.member: _Member | None = None

    async def __call__(self, context: RunContext) -> Outcome:
        """Join the batch, and return the outcome of this run."""
        if self._batch.has_begun:  # a further run of the job, in a test
            return await BatchHandler(self._batch.type, 1)(context)
        return await self._batch.type.run_with(context, partial(self._outcome, context))

    def leave(self) -> None:
        """Let the batch begin without this run if it has not joined."""
        self._batch.expect_no_more(self)

    async def _outcome(self, context: RunContext, arguments: dict[str, Any]) -> Any:
        (payload,) = arguments.values()
        self.member = _Member(BatchRun(context, payload))
        self._batch.expect_no_more(self)
        try:
            return await self.member.outcome
        except asyncio.CancelledError:
            self.member.run._left = True
            self._batch.member_left()
            if worker_run(context).stopping == "shutdown":  # as its job may be claimed at once
                await self._batch.ended.wait()
            raise


class Batch:
    """Runs that have joined or will, and the call of their function."""

    def __init__(self, type: BatchType, size: int, on_end: Callable[[Batch], None]) -> None:
        self.type = type
        self._size = size
        self._on_end = on_end
        self._entries: list[BatchEntry] = []
        self._expected: set[BatchEntry] = set()
        self._members: list[_Member] = []
        self._is_closed = False
        self._task: asyncio.Task[None] | None = None
        self.ended = asyncio.Event()
        """Set when the function has ended, or will not be called."""

    @property
    def has_begun(self) -> bool:
        """Whether the function was called."""
        return self._task is not None

    @property
    def room(self) -> int:
        """The number of runs that may still join."""
        return 0 if self._is_closed else self._size - len(self._entries)

    def add(self) -> BatchEntry:
        """Add the place of a run that is about to start."""
        entry = BatchEntry(self)
        self._entries.append(entry)
        self._expected.add(entry)
        return entry

    def close(self) -> None:
        """Begin as soon as all runs that were added have joined, or ended before."""
        self._is_closed = True
        self._begin_when_complete()

    def expect_no_more(self, entry: BatchEntry) -> None:
        """Note that a run has joined, or has ended without that."""
        self._expected.discard(entry)
        self._begin_when_complete()

    def member_left(self) -> None:
        """Cancel the function once no run is left that wants its result."""
        if self._task is None:
            self._begin_when_complete()
        elif all(member.run.canceled for member in self._members):
            self._task.cancel()
            asyncio.get_running_loop().call_later(OVERSTAY, self._name_overstay)

    def _begin_when_complete(self) -> None:
        if not self._is_closed or self._expected or self._task is not None:
            return
        members = [entry.member for entry in self._entries if entry.member is not None]
        self._members = [member for member in members if not member.run.canceled]
        if not self._members:
            self._end()
            return
        self._task = asyncio.get_running_loop().create_task(self._call())

    async def _call(self) -> None:
        runs = [member.run for member in self._members]
        try:
            values = await self._values(runs)
            if not isinstance(values, Sequence) or len(values) != len(runs):
                raise TypeError(
                    f"{self.type.place} returns a list with an entry for each of its {len(runs)}"
                    " runs, in their order"
                )
        except asyncio.CancelledError:
            self._settle([Failure(UNREQUESTED_CANCELLATION)] * len(runs))
        except BaseException as error:
            self._settle([error] * len(runs))
        else:
            self._settle(values)
        finally:
            self._end()

    async def _values(self, runs: Sequence[BatchRun[Any]]) -> Any:
        if self.type.is_blocking:
            name = f"{self.type.name}, {len(runs)} runs"
            call = partial(self._call_blocking, runs)
            limit = run_services(runs[0]._context).thread_limit
            return (await call_in_thread(limit, name, call, lambda: None))()
        with self.type.surround([run.job for run in runs]):
            return await self.type.function(runs)

    def _call_blocking(self, runs: Sequence[BatchRun[Any]]) -> Any:
        with self.type.surround([run.job for run in runs]):
            return self.type.function(runs)

    def _settle(self, values: Sequence[Any]) -> None:
        for member, value in zip(self._members, values, strict=True):
            if member.outcome.done():
                continue
            if isinstance(value, BaseException):
                member.outcome.set_exception(value)
            else:
                member.outcome.set_result(value)

    def _end(self) -> None:
        self.ended.set()
        self._on_end(self)

    def _name_overstay(self) -> None:
        if not self.ended.is_set():
            jobs = ", ".join(member.run.job.name for member in self._members)
            _log.warning("%s goes on without its runs, in their slot: %s", self.type.place, jobs)


class BatchHandler:
    """The handler of a type with batches; called, it runs a batch of one."""

    def __init__(self, type: BatchType, size: int) -> None:
        self.type = type
        self._size = size
        self.__module__ = type.function.__module__
        self.__qualname__ = type.function.__qualname__

    def open(self, on_end: Callable[[Batch], None] = lambda _: None) -> Batch:
        """Return an empty batch; `on_end` is called when its function has ended."""
        return Batch(self.type, self._size, on_end)

    async def __call__(self, context: RunContext) -> Outcome:
        """Run a batch of one."""
        batch = self.open()
        entry = batch.add()
        batch.close()
        try:
            return await entry(context)
        finally:
            entry.leave()
