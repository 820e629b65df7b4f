"""One run of one job: the handler, its deadline, and what its end means."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from draftsman.domain.outcome import Parked, validate_result
from draftsman.domain.retries.error_classes import as_failure
from draftsman.domain.retries.job_limits import JobLimits
from draftsman.domain.run import ClaimedJob
from draftsman.errors import DatabaseUnreachable, Failure, LeaseLost
from draftsman.handlers import programming_errors
from draftsman.handlers.context import RunContext
from draftsman.handlers.db_retry import wait_for_database
from draftsman.handlers.registry import Handler
from draftsman.log import redact
from draftsman.ports import Notifier
from draftsman.schemas.checker import SchemaChecker
from draftsman.services.questions import Questions
from draftsman.services.repos import Repos
from draftsman.services.runs.checkpoints import Checkpoints
from draftsman.services.runs.claim import Claim
from draftsman.services.runs.settlement import ERROR_LIMIT, Settlement, kept
from draftsman.settings import Settings

T = TypeVar("T")
MAX_INVALID_OUTCOME: Final = 64 * 1024
"""Characters of an outcome that cannot be used, kept in the run's log."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerServices:
    """What every run of a worker shares."""

    settings: Settings
    limits: JobLimits
    claim: Claim
    checkpoints: Checkpoints
    questions: Questions
    settle: Settlement
    outbox: Notifier
    repos: Repos
    revive: Callable[[], Awaitable[None]] | None = None
    """Brings the database back where this process may: the embedded one after it was killed."""
    schemas: SchemaChecker = field(default_factory=SchemaChecker)
    """The child processes that check JSON Schemas."""


class Execution:
    """A run in a slot. `result` is set when it completed and the worker has to settle it."""

    def __init__(self, bench: WorkerServices, job: ClaimedJob, handler: Handler) -> None:
        self.job = job
        self.result: dict[str, Any] | None = None
        self.task: asyncio.Task[None] | None = None
        self._bench = bench
        self._handler = handler
        self._limits = bench.limits.of_job(job)
        self._context: RunContext | None = None
        self._why: str | None = None
        self._begun = False
        self._settling = False
        """Whether the handler is over: what is being written now must not be interrupted."""

    def start(self, ended: Callable[[Execution], None]) -> None:
        """Begin; `ended` is called once the handler is over."""
        self.task = asyncio.create_task(self._run(ended))

    def cancel(self, why: str) -> None:
        """Tell the handler once to end: `canceled`, `shutdown`, `lost` or `timeout`."""
        if self._why is not None or self.task is None:
            return
        if why == "lost" and self._context is not None and self._context.parked:
            return  # it gave its lease back itself, and may tidy up
        self._why = why
        if self._context is not None:
            self._context.stopping = why
        # a task that is cancelled before its first step would settle nothing
        if self._begun and not self._settling:
            self.task.cancel()

    async def abandon(self) -> None:
        """Hand back the job of a handler that does not end, whatever it does."""
        self._settling = True
        _log.error("%s does not end; its job is handed back", self.job.name)
        await self._persist(lambda: self._bench.settle.release_run(self.job, "shutdown"))

    @property
    def ending(self) -> bool:
        """Whether the handler ends what it started; that takes the time that it takes."""
        return self._context is not None and self._context.ending

    def kill(self) -> None:
        """Cancel a handler again that did not end when it was canceled, unless it is ending."""
        if self.task is not None and not (self._settling or self.ending):
            self.task.cancel()

    def beat(self) -> None:
        """Pass on that the run is still this worker's; its agent's guard waits for it."""
        if self._context is not None:
            self._context.beat()

    async def _run(self, ended: Callable[[Execution], None]) -> None:
        self._begun = True
        try:
            if self._why is None:
                await self._guarded()
            else:
                await self._stopped()
        finally:
            ended(self)

    async def _guarded(self) -> None:
        """Let the handler run; whatever it raises becomes an outcome of the run."""
        try:
            await self._execute()
        except Parked:
            return
        except LeaseLost:
            await self._end(lambda: self._bench.settle.canceled(self.job))
        except asyncio.CancelledError:
            await self._stopped()
        except BaseException as error:  # a handler's sys.exit() must not end the worker
            if isinstance(error, BaseExceptionGroup) and error.split(Parked)[1] is None:
                return
            failure = _failure(error, getattr(self._handler, "__module__", ""))
            if self._context is not None and (text := _more_of(error, failure)):
                self._context.log(redact(text))
            if self._why in (None, "canceled"):  # canceled it will be, and keeps the error
                await self._end(lambda: self._bench.settle.failure(self.job, failure))
            else:  # it broke because it was stopped, or its cancellation came to nothing
                _log.warning(
                    "%s: run %s raised an error while it was being stopped (%s): %s",
                    *(self.job.name, self.job.run, self._why, kept(str(failure))),
                )
                await self._stopped()

    async def _execute(self) -> None:
        left = self._limits.timeout
        if self.job.run > 1:
            left -= await self._spent()
        self._context = context = RunContext(self.job, self._bench, left, self._limits)
        timer = asyncio.get_running_loop().call_later(left, self.cancel, "timeout")
        try:
            with context.prints():
                outcome = await self._handler(context)
        finally:
            timer.cancel()
        self._settling = True
        try:
            result = validate_result(outcome)
        except Failure:  # what nobody can use is kept for who wants to see it
            context.log(redact(repr(outcome)[:MAX_INVALID_OUTCOME]))
            raise
        if result is None:
            await self._end(lambda: self._bench.settle.outcome(self.job, outcome))
            return
        self.result = result
        if context.has_open_log:
            await self._persist(context.close)

    async def _spent(self) -> float:
        """Return the seconds of the earlier runs. Raises Failure when none are left."""
        claim, lease = self._bench.claim, self.job.lease
        spent = await self._wait(
            lambda: claim.previous_runtime(lease), lambda: self._why is not None
        )
        if spent >= self._limits.timeout:
            text = f"it ran {spent:.0f} s in all, over {self._limits.timeout:g} s (job limit)"
            raise Failure(text, code="timeout")
        return spent

    async def _stopped(self) -> None:
        """Settle a run that was cancelled from outside; a lost one writes nothing."""
        self._settling = True
        settle = self._bench.settle
        match self._why:
            case "canceled":
                await self._end(lambda: settle.canceled(self.job))
            case "timeout":
                text = f"it ran for {self._limits.timeout:g} s (job limit); waiting is excluded"
                failure = Failure(text, code="timeout")
                await self._end(lambda: settle.failure(self.job, failure))
            case "lost":
                _log.warning("%s lost its job; it was stopped and wrote nothing", self.job.name)
            case _:
                await self._end(lambda: settle.release_run(self.job, "shutdown"))

    async def _end(self, write: Callable[[], Awaitable[Any]]) -> None:
        """Store the log while the run still owns its job, then write how it ended."""
        self._settling = True
        if self._context is not None:
            await self._persist(self._context.close)
        await self._persist(write)

    async def _persist(self, write: Callable[[], Awaitable[Any]]) -> None:
        """Write how the run ended, unless the database stays away."""
        try:
            await self._wait(write, lambda: self._why == "shutdown")
        except LeaseLost:
            return
        except DatabaseUnreachable as error:
            _log.error("%s could not be settled: %s", self.job.name, error)

    async def _wait(self, call: Callable[[], Awaitable[T]], stopping: Callable[[], bool]) -> T:
        return await wait_for_database(self.job.name, call, self._bench.settings.worker, stopping)


def _failure(error: BaseException, module: str) -> Failure:
    """Translate what a handler of a module raised, also when that cannot even be printed."""
    try:
        failure = as_failure(error)
        if (
            failure is error
            or (place := programming_errors.find_error_location(error, module)) is None
        ):
            return failure
        where = f" ({place})" if place else ""
        return Failure(f"{failure}{where}", code="programming_error")
    except Exception as broken:
        return Failure(f"{type(error).__name__}, whose text cannot be had: {type(broken).__name__}")


def _more_of(error: BaseException, failure: Failure) -> str | None:
    """Return what job and run do not keep of an error: where it came from, and a long text."""
    if failure is error:
        text = str(failure)
        return text if len(text) > ERROR_LIMIT else None
    return "".join(traceback.format_exception(error))
