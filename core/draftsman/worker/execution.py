"""Execution of a run: the handler, its deadline, and the settlement of its outcome."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from draftsman.agent_runs.activity.service import ActivityStream
from draftsman.agent_runs.changes.service import Changes
from draftsman.costs.service import ModelCalls
from draftsman.deliveries.service.outbox import Outbox
from draftsman.errors import DraftsmanError, Failure, LeaseLost, UsageError
from draftsman.handlers.batches import BatchEntry
from draftsman.handlers.context import (
    RunContext,
    allow_grace,
    captured_prints,
    interrupt_by,
    release,
    used_worker_run,
    worker_run,
)
from draftsman.handlers.handler_errors import failure_details, handler_failure
from draftsman.handlers.registry import Handler
from draftsman.handlers.threads import ThreadLimit
from draftsman.handlers.worker_run import WorkerRun, wait_for_database
from draftsman.jobs.control.service.messages import RunMessages
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.attachments import Attachments
from draftsman.jobs.runs.job_limits import JobLimits
from draftsman.jobs.runs.outcome import (
    Parked,
    caught_pause_text,
    unasked_text,
    validate_result,
)
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.jobs.runs.service.checkpoints import Checkpoints
from draftsman.jobs.runs.service.claim import Claim
from draftsman.jobs.runs.service.settlement import Settlement, stored_error
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.log import RUN, redact
from draftsman.questions.service.asking import Asking
from draftsman.questions.service.questions import Questions
from draftsman.repos.service import Repos
from draftsman.settings import Settings
from draftsman.tracing.tracer import Span, active
from draftsman.worker.run_metrics import ENDED, LOST, QUEUE_WAIT, SECONDS, STARTED, WAITING
from draftsman.worker.run_trace import begin_run, end_run, record_questions
from draftsman.workflows.service.workflows import Workflows

# Deadlines of runs: a single timer for all of them, set for the earliest.


class Deadlines:
    """Deadlines of callbacks, each of which is called at most once.

    Nearly all of them are removed before they expire. The timer stays as it is then, and is set
    again when it fires: a timer for each run would cost more than the deadline itself.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        """The event loop, which `get_running_loop` asks the system for at each call."""
        self._times: dict[Callable[[], None], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = math.inf

    def __len__(self) -> int:
        return len(self._times)

    def add(self, callback: Callable[[], None], seconds: float) -> None:
        """Call `callback` after `seconds`, unless it is removed before."""
        self._times[callback] = deadline = self.loop.time() + seconds
        if deadline < self._next:
            self._set_timer(deadline)

    def remove(self, callback: Callable[[], None]) -> float:
        """Remove a callback; return the seconds that were left, 0 if it was called already."""
        now = self.loop.time()
        return max(0.0, self._times.pop(callback, now) - now)

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = deadline
        # an own context: that of the run that adds it would be kept until the timer fires
        self._timer = self.loop.call_at(deadline, self._expire, context=Context())

    def _expire(self) -> None:
        now = max(self._next, self.loop.time())
        self._next = math.inf
        self._timer = None
        for callback in sorted(self._times, key=self._times.__getitem__):
            deadline = self._times.get(callback, math.inf)  # an earlier callback may remove it
            if deadline <= now:
                del self._times[callback]
                callback()
        if self._times:
            self._set_timer(min(self._times.values()))


def _create_task(
    run: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop
) -> asyncio.Task[None]:
    """Start a run, since Python 3.12 with its first step: one that never waits needs no turn."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(run, loop=loop, eager_start=True)
    return loop.create_task(run)


T = TypeVar("T")
MAX_INVALID_OUTCOME: Final = 64 * 1024
"""Maximum length of an invalid outcome in the run's log, in characters."""
FIRST_DELAY: Final = 0.1
MAX_DELAY: Final = 30.0
"""Seconds between two attempts to store an end that the database refuses: doubled each time."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerServices:
    """Services that all runs of a worker share."""

    settings: Settings
    limits: JobLimits
    claim: Claim
    checkpoints: Checkpoints
    changes: Changes
    activity: ActivityStream
    run_messages: RunMessages
    attachments: Attachments
    model_calls: ModelCalls
    asking: Asking
    questions: Questions
    settlement: Settlement
    outbox: Outbox
    repos: Repos
    workflows: Workflows
    revive: Callable[[], Awaitable[None]] | None = None
    """Restarts the database where this process can: the embedded server."""
    thread_limit: ThreadLimit = field(default_factory=ThreadLimit)
    """The limit of the threads of runs."""
    schemas: SchemaChecker = field(default_factory=SchemaChecker)
    """The child processes that check JSON Schemas."""


ContinueExecution = Callable[["Execution", float, Callable[[], bool]], Awaitable[ClaimedJob | None]]
"""Waits for so many seconds until the job of a parked execution is claimed again, and starts it."""


class Execution:
    """A run in a slot; `result` is set when it completed and the worker has to settle it.

    An end that the database refuses is repeated while the lease holds, and keeps no slot.
    """

    def __init__(
        self,
        *,
        services: WorkerServices,
        job: ClaimedJob,
        handler: Handler,
        deadlines: Deadlines,
        continue_in_grace: ContinueExecution | None,
        entry: BatchEntry | None = None,
    ) -> None:
        self.job = job
        self.result: dict[str, Any] | None = None
        self.task: asyncio.Task[None] | None = None
        self.refused = False
        """Whether the database has refused the end of the run, which is repeated."""
        self.entry = entry
        """Its place in a batch."""
        self.status: Status | None = None
        """The status of the job after the end of the run, if this worker stored it."""
        self._services = services
        self._handler = handler
        self._deadlines = deadlines
        self._limits = services.limits.of_job(job)
        self._continue = continue_in_grace
        self._context: RunContext | None = None
        self._stop_reason: str | None = None
        self.lease_end = math.inf
        """When the lease ends unless a heartbeat renews it, as a time of `clock.now`."""
        self._begun = False
        self._settling = False
        """Whether the handler has finished: from then on the task must not be canceled."""
        self._on_refusal: Callable[[Execution], None] | None = None
        self._counted_at: float | None = None
        """When the run was counted as started; None: it was counted as ended, too."""
        self._span: Span | None = None
        """The span of the run, while traces are recorded."""
        self._failure: Failure | None = None

    def count_start(self) -> None:
        """Count the start of the run."""
        self._counted_at = self._deadlines.loop.time()
        STARTED.add(self.job.queue, self.job.type)
        if (waited := self.job.waited) is not None:
            QUEUE_WAIT.add(self.job.queue, self.job.type, seconds=waited)
        if (tracer := active()) is not None:
            self._span = begin_run(tracer, self.job)

    def count_end(self, outcome: str | None = None) -> None:
        """Count the end of the run, once; by default with the status that this worker stored."""
        if self._counted_at is None:
            return
        if outcome is None:
            parked = (run := self._worker_run) is not None and run.parked
            outcome = WAITING if parked else self.status or LOST
        seconds = self._deadlines.loop.time() - self._counted_at
        self._counted_at = None
        ENDED.add(self.job.queue, self.job.type, outcome)
        SECONDS.add(self.job.queue, self.job.type, seconds=seconds)
        if self._span is not None and outcome != LOST:  # who rescues a lost run records it
            end_run(self._span, outcome, self._failure)
        self._span = None

    def start(
        self, on_end: Callable[[Execution], None], on_refusal: Callable[[Execution], None]
    ) -> None:
        """Start the handler.

        `on_end` is called after it finished, `on_refusal` when the database refuses to store how.
        """
        self._on_refusal = on_refusal
        self.task = _create_task(self._run(on_end), self._deadlines.loop)

    def settle_apart(self, on_end: Callable[[Execution], None]) -> None:
        """Settle a completed run on its own; `on_end` is called when it is settled or lost."""
        self.task = self._deadlines.loop.create_task(self._run_apart(on_end))

    @property
    def name(self) -> str:
        """The job and the run, for the log."""
        return f"{self.job.name} run {self.job.run}"

    @property
    def holds_lease(self) -> bool:
        """Whether the run needs its lease: parking releases it, and cleanup may go on."""
        return (run := self._worker_run) is None or not run.parked

    @property
    def ignores_stop(self) -> bool:
        """Whether the handler goes on although its run was stopped."""
        return (
            self._stop_reason is not None
            and self._begun
            and self.holds_lease
            and not (self._settling or self.ending)
        )

    def cancel(self, reason: str) -> bool:
        """Cancel the handler, once: `canceled`, `paused`, `shutdown`, `lost` or `timeout`.

        Return whether it was running until now. A run whose end is refused ends without a result
        when it is lost or at a shutdown.
        """
        if self.refused:
            if self.task is None or reason not in ("lost", "shutdown"):
                return False
            if reason == self._stop_reason:
                return False
            self._stop_reason = reason
            self.task.cancel()
            return True
        if self._stop_reason is not None or self.task is None:
            return False
        if reason == "lost" and not self.holds_lease:
            return False
        self._stop_reason = reason
        if self._context is not None:
            worker_run(self._context).stopping = reason
        # a task that is canceled before its first step would settle nothing
        if self._begun and not self._settling:
            self.task.cancel()
        return True

    async def abandon(self) -> None:
        """Release the job of a handler that does not stop."""
        self._settling = True
        _log.error("%s did not stop; its job was released", self.job.name)
        try:
            await self._services.settlement.release_run(self.job, "shutdown")
        except DraftsmanError as error:
            self._log_not_settled(error)

    @property
    def ending(self) -> bool:
        """Whether the handler is ending its processes, for which it gets all the time it needs."""
        return (run := self._worker_run) is not None and run.ending

    def kill(self) -> None:
        """Cancel a handler again that did not stop, unless it is ending its processes."""
        if self.task is not None and not (self._settling or self.ending):
            self.task.cancel()

    def beat(self) -> None:
        """Pass on a heartbeat to the agent's guard."""
        if (run := self._worker_run) is not None:
            run.beat()

    @property
    def _worker_run(self) -> WorkerRun | None:
        """The worker's side of the run, None as long as nothing has used it."""
        return None if self._context is None else used_worker_run(self._context)

    async def _run(self, on_end: Callable[[Execution], None]) -> None:
        """Run the handler; any exception becomes an outcome of the run."""
        self.task = asyncio.current_task()  # of an eager task, before `start` has it
        RUN.set((self.job.name, self.job.run))
        if self._span is not None:
            self._span.activate()
        self._begun = True
        try:
            if self._stop_reason is not None:
                await self._settle_stopped()
                return
            try:
                await self._execute()
            except BaseException as error:
                await self._settle_error(error)
        finally:
            on_end(self)

    async def _settle_error(self, error: BaseException) -> None:
        """Settle a run that ended with an exception."""
        self._settling = True
        if (run := self._worker_run) is not None:
            await run.pause.end()
        if run is not None and run.parked:
            if not _is_pause(error):
                await self._end_caught_pause(run, f"raised {type(error).__name__}", error)
            return
        if self._stop_reason is None:
            await self._drop_cancellation()
        if isinstance(error, LeaseLost):
            await self._end(self._settle_lost)
        elif isinstance(error, asyncio.CancelledError) and self._stop_reason is not None:
            await self._settle_stopped()
        else:  # also a handler's sys.exit(), which must not end the worker
            failure = handler_failure(error, getattr(self._handler, "__module__", ""))
            if self._context is not None and (text := failure_details(error, failure)):
                worker_run(self._context).log.write(redact(text))
            if self._stop_reason in (None, "canceled"):  # the job is canceled, with the error
                await self._end_failed(failure)
            else:  # an error because of the stop, or after the cancellation was lost
                _log.warning(
                    "%s: run %s raised an error while it was being stopped (%s): %s",
                    *(self.job.name, self.job.run, self._stop_reason, stored_error(str(failure))),
                )
                await self._settle_stopped()

    async def _drop_cancellation(self) -> None:
        """Drop a cancellation that the handler requested itself: it would end the settlement."""
        if self.task is not None and self.task.cancelling():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # one that is not delivered yet
            while self.task.cancelling():
                self.task.uncancel()

    async def _execute(self) -> None:
        left = self._limits.timeout
        if self.job.run > 1:
            left -= await self._check_runtime()
            await self._record_questions()
        context = self._context = RunContext(self.job, self._services, left, self._limits)
        allow_grace(context, self._continue_in_grace)
        interrupt_by(context, self._interrupt)
        self._deadlines.add(expire := self._time_out, left)
        try:
            with captured_prints(context, self._deadlines.loop):
                outcome = await self._handler(context)
        finally:
            self._deadlines.remove(expire)
            release(context)
        self._settling = True
        if (run := used_worker_run(context)) is not None:
            unasked = await run.pause.end()
            if run.parked:
                await self._end_caught_pause(run, f"returned {type(outcome).__name__}")
                return
            if unasked:
                raise Failure(unasked_text(unasked), code="programming_error")
        try:
            result = validate_result(outcome)
        except Failure:  # for debugging
            context.log(redact(_shown(outcome)[:MAX_INVALID_OUTCOME]))
            raise
        if result is None:
            await self._end(lambda: self._services.settlement.outcome(self.job, outcome))
            return
        self.result = result
        if run is not None and run.has_open_log:
            await self._store_log(run.close)

    def _interrupt(self) -> None:
        """Cancel the handler of a run that has parked."""
        if self.task is not None and not self._settling:
            self.task.cancel()

    async def _end_caught_pause(
        self, run: WorkerRun, ended: str, error: BaseException | None = None
    ) -> None:
        """Report a handler that caught the pause of its run; nothing of it may reach the job.

        The run owns the job no longer: a person may have answered, and another run may be active.
        """
        text = caught_pause_text(_name(self._handler), ended)
        _log.warning("%s: run %s: %s", self.job.name, self.job.run, text)
        if error is not None:
            text = f"{text}\n{''.join(traceback.format_exception(error))}"
        await self._store_log(lambda: run.log_parked(redact(text)))

    async def _continue_in_grace(
        self, seconds: float, on_poll: Callable[[], bool]
    ) -> ClaimedJob | None:
        """Wait for an answer; the time until it does not count as running time."""
        if self._continue is None:
            return None
        left = self._deadlines.remove(self._time_out)
        parked = self._span
        if (job := await self._continue(self, seconds, on_poll)) is not None:
            self._deadlines.add(self._time_out, left)
            if parked is not None and self._span is not None:
                parked.continue_as(self._span)
            await self._record_questions()
        return job

    async def _record_questions(self) -> None:
        """Record the questions of the run before this one, while traces are recorded."""
        if self._span is not None and (tracer := active()) is not None:
            with contextlib.suppress(DraftsmanError):
                questions, _ = await self._services.questions.of_job(self.job.number)
                record_questions(tracer, self.job, questions)

    def _time_out(self) -> None:
        self.cancel("timeout")

    async def _check_runtime(self) -> float:
        """Return the runtime of earlier runs, in seconds; raises Failure at the limit."""
        claim = self._services.claim
        lease = self.job.lease
        runtime = await self._wait(
            lambda: claim.previous_runtime(lease), lambda: self._stop_reason is not None
        )
        if runtime >= self._limits.timeout:
            text = f"ran {runtime:.0f} s in total, over the job limit of {self._limits.timeout:g} s"
            raise Failure(text, code="timeout")
        return runtime

    async def _settle_stopped(self) -> None:
        """Settle a run that was stopped; after a lost lease, write nothing."""
        settlement = self._services.settlement
        match self._stop_reason:
            case "canceled":
                await self._end(lambda: settlement.canceled(self.job))
            case "timeout":
                text = (
                    f"ran for {self._limits.timeout:g} s (job limit, time spent waiting excluded)"
                )
                failure = Failure(text, code="timeout")
                await self._end_failed(failure)
            case "lost":
                self._log_lost()
            case reason:
                await self._end(lambda: settlement.release_run(self.job, reason or "shutdown"))

    async def _settle_lost(self) -> Status | None:
        """Settle a run whose write was refused: its job was canceled, or another worker has it."""
        status = await self._services.settlement.canceled(self.job)
        if status is None:
            self._log_lost()
        return status

    def _log_lost(self) -> None:
        _log.warning("%s lost its lease; the run was stopped without a result", self.job.name)

    async def _end(
        self, write: Callable[[], Awaitable[Status | None]], failure: Failure | None = None
    ) -> None:
        """Store the log while the run still owns its job, then settle."""
        self._settling = True
        if (run := self._worker_run) is not None:
            await self._store_log(run.close)
        await self._settle(write, failure)

    async def _end_failed(self, failure: Failure) -> None:
        if (run := self._worker_run) is not None:
            failure.args = (*run.shown([*failure.args]),)
        self._failure = failure
        await self._end(lambda: self._services.settlement.failure(self.job, failure), failure)

    async def _store_log(self, write: Callable[[], Awaitable[Any]]) -> None:
        """Store the rest of the log; a run ends without it if the database refuses it."""
        try:
            await self._wait(write, lambda: self._stop_reason in ("shutdown", "lost"))
        except LeaseLost:
            pass
        except DraftsmanError as error:
            text = "%s: the end of the log of run %s was not stored: %s"
            _log.error(text, self.job.name, self.job.run, error)

    async def _settle(
        self,
        write: Callable[[], Awaitable[Status | None]],
        failure: Failure | None = None,
        *,
        checks_values: bool = False,
    ) -> None:
        """Write the end of the run until it is stored, the lease is lost or the worker stops.

        An end with values that cannot be stored is stored as a plain failure, with the text of the
        `failure` that it was; `checks_values` if `write` does so itself.
        """
        worker = self._services.settings.worker
        clock = self._deadlines.loop.time
        deadline = clock() + worker.lease
        delay = FIRST_DELAY
        attempts = 0
        is_plain = False
        try:
            while True:
                try:
                    self.status = await write()
                    return
                except LeaseLost:
                    return
                except Exception as error:
                    attempts += 1
                    if self._stop_reason == "lost":
                        self._log_lost()
                        return
                    if self._stop_reason == "shutdown" and (self.refused or attempts > 1):
                        self._log_not_settled(error)
                        return
                    if not (is_plain or checks_values) and _has_invalid_values(error):
                        is_plain = True
                        write = self._plain_failure(error, failure)
                        continue
                    is_outage = isinstance(error, DraftsmanError) and error.is_outage
                    if not is_outage or clock() > deadline:
                        self._refuse(error)
                    elif attempts == 1:
                        _log.info("%s: database unreachable, retrying: %s", self.job.name, error)
                await asyncio.sleep(delay if self.refused else worker.poll)
                delay = min(2 * delay, MAX_DELAY)
        except asyncio.CancelledError:
            if not self.refused:
                raise
            self._log_not_settled(f"it was {self._stop_reason}")

    def _refuse(self, error: Exception) -> None:
        """Leave the slot: the end of this run is repeated apart from the others."""
        if self.refused:
            return
        self.refused = True
        is_temporary = isinstance(error, DraftsmanError) and error.is_temporary
        _log.log(
            logging.WARNING if is_temporary else logging.ERROR,
            "%s: the end of run %s is not stored yet, and is repeated: %s",
            *(self.job.name, self.job.run, error),
        )
        if self._on_refusal is not None:
            self._on_refusal(self)

    def _plain_failure(
        self, error: Exception, failure: Failure | None
    ) -> Callable[[], Awaitable[Status | None]]:
        """Return the write of a failure that says why another end could not be stored."""
        kind = "" if isinstance(error, DraftsmanError) else f"{type(error).__name__}: "
        what = "the outcome" if failure is None else f"{failure}; its details"
        plain = Failure(f"{what} could not be stored: {kind}{error}")
        return lambda: self._services.settlement.failure(self.job, plain)

    def _log_not_settled(self, problem: object) -> None:
        _log.error("could not settle %s: %s", self.job.name, problem)

    async def _run_apart(self, on_end: Callable[[Execution], None]) -> None:
        RUN.set((self.job.name, self.job.run))
        try:
            settlement = self._services.settlement
            result = self.result or {}
            await self._settle(lambda: settlement.result(self.job, result), checks_values=True)
        finally:
            on_end(self)

    async def _wait(self, call: Callable[[], Awaitable[T]], stopping: Callable[[], bool]) -> T:
        return await wait_for_database(
            self.job.name, call, self._services.settings.worker, stopping
        )


def _is_pause(error: BaseException) -> bool:
    """Return whether the exception unwinds a parked run, maybe several of its tasks."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_pause(inner) for inner in error.exceptions)
    return isinstance(error, Parked | asyncio.CancelledError)


def _name(handler: Handler) -> str:
    """Return a handler as the configuration names it: `company.jobs:report`."""
    function = handler if hasattr(handler, "__qualname__") else type(handler)
    return f"{function.__module__}:{function.__qualname__}"


def _shown(outcome: object) -> str:
    """Return an outcome as text, even if it cannot be formatted."""
    try:
        return repr(outcome)
    except Exception as error:
        return f"<{type(outcome).__name__}: {type(error).__name__} while it was formatted>"


def _has_invalid_values(error: Exception) -> bool:
    """Return whether an end was not stored because of its own values, not of those of others."""
    if isinstance(error, DraftsmanError) and not isinstance(error, UsageError):
        return error.sqlstate is not None and error.sqlstate.startswith("22")
    return True
