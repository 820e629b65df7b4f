"""The context of a handler: its job, steps, questions, log and notifications."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from random import Random
from typing import Any, Literal, ParamSpec, TypeVar, Unpack, overload
from uuid import UUID

from typing_extensions import TypeForm

from draftsman.errors import Failure, UsageError
from draftsman.handlers.asks import Approve, ApproveOptions, Ask, Asking, AskOptions
from draftsman.handlers.changed_content import effect_text
from draftsman.handlers.job_attachments import attached_files
from draftsman.handlers.run_constants import RunConstants
from draftsman.handlers.run_log import PrintCapture
from draftsman.handlers.run_pause import Wait
from draftsman.handlers.run_services import RunServices
from draftsman.handlers.worker_run import ContinueInGrace, WorkerRun
from draftsman.ids import new_id
from draftsman.jobs import reserved_names
from draftsman.jobs.job import Status
from draftsman.jobs.requests.attachments import AttachedFile
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.retries import RetryPolicy
from draftsman.jobs.runs.outcome import Snooze
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.questions.question import Answered, NoAnswer
from draftsman.questions.service.asking import MAX_TIMEOUT
from draftsman.text import first_line
from draftsman.workflows.dependencies import Parent

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
R2 = TypeVar("R2")
R3 = TypeVar("R3")
_JOBS = 0
_SLEEP = 1
"""Of several tasks that wait, the run parks for people first, then for jobs, then for a time."""


class RunContext:
    """The run of a job.

    Methods that write raise LeaseLost once the run has lost its lease. All methods retry while the
    database is unreachable and the lease may still be valid.
    """

    def __init__(
        self,
        job: ClaimedJob,
        services: RunServices,
        deadline: float,
        limits: RetryPolicy | None = None,
    ) -> None:
        self._job = job
        self._services = services
        self._deadline = deadline
        self._limits = limits
        self._used_run: WorkerRun | None = None
        self._prints: PrintCapture | None = None
        self._continue_in_grace: ContinueInGrace | None = None
        self._interrupt: Callable[[], None] | None = None
        self._times = 0

    @property
    def job(self) -> ClaimedJob:
        """The claimed job."""
        return self._job if self._used_run is None else self._used_run.job

    @property
    def _run(self) -> WorkerRun:
        """The worker's side of the run, made on first use: many handlers need nothing of it."""
        if self._used_run is None:
            limits = self._limits or RetryPolicy()
            self._used_run = WorkerRun(
                self._job,
                self._services,
                limits=limits,
                deadline=self._deadline,
                prints=self._prints,
                continue_in_grace=self._continue_in_grace,
                interrupt=self._interrupt,
            )
        return self._used_run

    @property
    def canceled(self) -> bool:
        """Whether the run should end soon; the handler's task is canceled as well."""
        return self._run.stopping is not None

    @overload
    async def step(
        self,
        key: str,
        effect: Callable[[str], Awaitable[T]],
        lookup: Callable[[str], Awaitable[T | None]] | None = None,
    ) -> T: ...

    @overload
    async def step(
        self,
        key: str,
        effect: Callable[[str], T],
        lookup: Callable[[str], T | None] | None = None,
    ) -> T: ...

    async def step(
        self,
        key: str,
        effect: Callable[[str], Any],
        lookup: Callable[[str], Any] | None = None,
    ) -> Any:
        """Run an effect once and record its result, which later runs return.

        `effect`, a function or coroutine function, takes the invocation id: the same in every
        run, for use as an idempotency key. If an earlier run died before it recorded the result,
        `lookup` is called first; if it returns None, the effect runs again. Raises Failure
        `step_timeout` when both together exceed the job's `step_timeout`, and UsageError for a key
        that begins with `agent:` or `sleep:`.
        """
        return await self._run.step(key, effect, lookup, content=effect_text(effect))

    @overload
    async def ask(
        self, key: str, text: str, **options: Unpack[AskOptions]
    ) -> Answered | NoAnswer: ...

    @overload
    async def ask(
        self, key: str, text: str, *, type: TypeForm[T], **options: Unpack[AskOptions]
    ) -> Answered[T] | NoAnswer: ...

    async def ask(self, key: str, text: str, *, type: Any = None, **options: Any) -> Any:
        """Return the answer to this question; park the run until it is answered.

        Parking frees the slot and cancels the handler's task, once all calls of the context that
        run beside this one have ended or wait, too: questions of several tasks are asked at once.
        When they are all closed, a new run of the handler starts from the top, in which this call
        returns. With a `type` (int, float, Decimal, date, bool, str, Person, a Literal or an Enum)
        only its values are accepted as answers, and `value` is one. `AskOptions` has the options.
        Raises UsageError.
        """
        return await self._answer(Ask(key, text, type=type, **options))

    async def approve(self, key: str, text: str, **options: Unpack[ApproveOptions]) -> Answered:
        """Return the decision on this approval; park the run until it is decided.

        The decision is bound to `text` and `action`: if either changes, people are asked again. A
        denial fails the job, unless `on_deny` is `continue`. `on_expire` is `expire` or `escalate`.
        With `on_changes="continue"` people may also request changes, with comments: do them, and
        ask again with another text or action. `ApproveOptions` has the options.
        """
        return await self._answer(Approve(key, text, **options))

    @overload
    async def ask_all(
        self, first: Asking[R], second: Asking[R2], /, *, return_when: Literal["all"] = "all"
    ) -> tuple[R, R2]: ...

    @overload
    async def ask_all(
        self,
        first: Asking[R],
        second: Asking[R2],
        third: Asking[R3],
        /,
        *,
        return_when: Literal["all"] = "all",
    ) -> tuple[R, R2, R3]: ...

    @overload
    async def ask_all(
        self, *questions: Asking[R], return_when: Literal["all"] = "all"
    ) -> tuple[R, ...]: ...

    @overload
    async def ask_all(
        self, *questions: Asking[R], return_when: Literal["first"]
    ) -> tuple[R | None, ...]: ...

    async def ask_all(
        self, *questions: Asking[Any], return_when: Literal["all", "first"] = "all"
    ) -> tuple[Any, ...]:
        """Return the results of several questions, `Ask` and `Approve`, which are asked at once.

        With `return_when="first"` the first question that closes resumes the job, and the others
        are withdrawn: their results are None, and a later `ask` asks them again. Raises UsageError.
        """
        if return_when not in ("all", "first"):
            raise UsageError(f"return_when is 'all' or 'first', not {return_when!r}")
        if return_when == "all":
            return tuple(await asyncio.gather(*map(self._answer, questions)))
        answers = await self._run.ask_first(
            [self._run.shown_question(question.spec) for question in questions]
        )
        return tuple(
            None if answer is None else self._result(question, answer)
            for question, answer in zip(questions, answers, strict=True)
        )

    async def _answer(self, question: Asking[R]) -> R:
        spec = self._run.shown_question(question.spec)
        answer = await self._run.ask_or_park(spec, owner=Owner.HANDLER)
        return self._result(question, answer)

    def _result(self, question: Asking[R], answer: Answered | NoAnswer) -> R:
        return question.result(answer, self._services.asking.people)

    async def sleep(
        self, key: str, until: datetime | timedelta | float, *, reason: str | None = None
    ) -> None:
        """Park the job until a time, or for a duration; it holds no slot meanwhile.

        `draftsman why` shows the `reason` until then.
        """
        _check_time(until)
        step = f"{reserved_names.SLEEP}{key}"

        async def wait(_: str) -> str | dict[str, str]:
            due = await self._due(until)
            return due if reason is None else {"until": due, "reason": first_line(reason, 300)}

        slept = await self._run.step(step, wait, owner=Owner.WORKER)
        due = datetime.fromisoformat(slept if isinstance(slept, str) else slept["until"])
        if due > await self._run.wait(self._services.checkpoints.now):
            await self._run.pause.wait(Wait((_SLEEP, due.timestamp()), partial(self._snooze, due)))

    async def _snooze(self, due: datetime) -> None:
        await self._run.park(self._services.settlement.outcome, self.job, Snooze(due))

    async def _due(self, until: datetime | timedelta | float) -> str:
        if isinstance(until, datetime):
            return until.isoformat()
        duration = until if isinstance(until, timedelta) else timedelta(seconds=until)
        return (await self._run.wait(self._services.checkpoints.now) + duration).isoformat()

    async def now(self) -> datetime:
        """Return the time of this call, with its zone: the same in each run of the job.

        It is recorded by the number of the call in the run.
        """
        self._times += 1

        async def read(_: str) -> str:
            return (await self._run.wait(self._services.checkpoints.now)).isoformat()

        key = f"{reserved_names.NOW}{self._times}"
        return datetime.fromisoformat(await self._run.step(key, read, owner=Owner.WORKER))

    @property
    def random(self) -> Random:
        """Random numbers, the same sequence in each run of the job; not for secrets."""
        return self._constants.random

    def uuid(self) -> UUID:
        """Return a UUID of the job: the nth call returns the same in each run."""
        return self._constants.uuid()

    @cached_property
    def _constants(self) -> RunConstants:
        return RunConstants(self.job.id)

    async def attachments(self) -> list[AttachedFile]:
        """Return the files that people sent with the request and with messages to the job.

        Waits for downloads, at most two minutes. The content is untrusted.
        """
        return await attached_files(self._run)

    async def parents(self) -> list[Parent]:
        """Return the jobs that this job waited for, with their results, in the order of `after`.

        A retry has the newest retries of those that were retried with it.
        """
        return list(await self._run.wait(self._services.workflows.parents, self.job.number))

    async def spawn(self, key: str, type: str | Mapping[str, Any], **fields: Any) -> int:
        """Submit a job, once for this key in all runs of this job; return its number.

        `fields` are those of a request, such as `payload`, `text` or `queue`. A whole request, as
        of a declared type, may stand for the type: `spawn("a", count.request(text="a"))`. Another
        request with the key gets the same job, with a warning, and is then refused, as the content
        of a question. Raises UsageError.
        """
        request = {"type": type} if isinstance(type, str) else type
        fields = {**request, **fields}
        name = fields.pop("type")
        return await self._run.spawn(key, name, fields)

    async def gather(
        self, jobs: Sequence[int], *, on_failure: Literal["raise", "return"] = "raise"
    ) -> list[Parent]:
        """Return the jobs that this job spawned with their results; park the run until all ended.

        Raises a permanent Failure: `child_failed` if one did not complete, unless `on_failure` is
        `return`; `wait_cycle` if one waits for a concurrency key of this job, directly or not.
        """
        workflows = self._services.workflows
        numbers = list(jobs)
        ended = await self._run.wait(workflows.ended, self.job, numbers)
        if ended is None:
            ended = await self._run.pause.wait(Wait((_JOBS, 0), partial(self._await_jobs, numbers)))
        failed = [job for job in ended if job.status is not Status.COMPLETED]
        if failed and on_failure == "raise":
            error = f": {failed[0].error}" if failed[0].error else ""
            raise Failure(
                f"{failed[0].name} is {failed[0].status}{error}",
                code="child_failed",
                declared="PERMANENT",
            )
        return ended

    async def _await_jobs(self, numbers: Sequence[int]) -> list[Parent] | None:
        """Park for jobs; return them if they have ended meanwhile."""
        await self._run.wait(self._run.close)
        ended = await self._run.wait(self._services.workflows.gather, self.job, numbers)
        self._run.parked = ended is None
        return ended

    async def notify(
        self, text: str, targets: Sequence[str] = (), *, key: str | None = None
    ) -> list[int]:
        """Notify the targets (default: the job's own); return the numbers of the deliveries.

        Notifies once per `key`, such as a step's invocation id. Raises UsageError.
        """
        notify = self._services.outbox.notify
        key = key or str(new_id())
        return await self._run.wait(notify, self.job.lease, key, targets, text)

    async def checkpoint(self, data: dict[str, Any], bundle: bytes | None = None) -> None:
        """Save state for a later run; raises UsageError over 1 MiB of JSON."""
        await self._run.checkpoint(data, bundle)

    async def saved(self) -> dict[str, Any] | None:
        """Return the newest checkpoint's data."""
        return (await self._run.saved_work())[0]

    async def event(self, kind: str, payload: dict[str, Any] | None = None) -> None:
        """Append an event to the job; a payload over 10 KB is truncated and marked so.

        Raises UsageError for a kind that is reserved for draftsman.
        """
        await self._run.event(kind, payload)

    async def artifact(self, name: str, data: bytes, kind: str = "file") -> None:
        """Store a file of at most 25 MB with the job, of kind `file` or `report`.

        Raises UsageError for names and kinds that are reserved for draftsman.
        """
        await self._run.artifact(name, data, kind)

    async def usage(self, amounts: dict[str, Any]) -> None:
        """Record the usage of the run so far."""
        await self._run.usage(amounts)

    def log(self, text: str) -> None:
        """Append a line to the run's log; `draftsman logs -f` shows it within about a second."""
        self._run.log.write(text)


def run_services(ctx: RunContext) -> RunServices:
    """Return the services of the worker of this run."""
    return ctx._services


def worker_run(ctx: RunContext) -> WorkerRun:
    """Return the worker's side of this run, for the worker and its own handlers."""
    return ctx._run


def used_worker_run(ctx: RunContext) -> WorkerRun | None:
    """Return the worker's side of this run, None as long as nothing has used it."""
    return ctx._used_run


def allow_grace(ctx: RunContext, continue_in_grace: ContinueInGrace) -> None:
    """Let the run continue after an answer within a grace period."""
    ctx._continue_in_grace = continue_in_grace


def interrupt_by(ctx: RunContext, interrupt: Callable[[], None]) -> None:
    """Let a pause of the run interrupt its handler; without this, waiting calls raise Parked."""
    ctx._interrupt = interrupt


def release(ctx: RunContext) -> None:
    """Drop the references of an ended handler's context to its run, which are a cycle.

    Without a cycle, the objects of a run are freed at its end instead of by the garbage collector.
    """
    ctx._continue_in_grace = None
    ctx._prints = None
    ctx._interrupt = None


def captured_prints(ctx: RunContext, loop: asyncio.AbstractEventLoop) -> PrintCapture:
    """Return a context manager that captures the handler's prints in the run's log."""
    ctx._prints = PrintCapture(ctx.log, loop)
    return ctx._prints


def _check_time(until: datetime | timedelta | float) -> None:
    """Raise UsageError for a time without a zone, or too far in the future."""
    if isinstance(until, datetime):
        if until.tzinfo is None:
            raise UsageError(
                "sleep() needs a time with a time zone, e.g. datetime.now(UTC) + timedelta(hours=1)"
            )
        return
    seconds = until.total_seconds() if isinstance(until, timedelta) else until
    if not (math.isfinite(seconds) and seconds <= MAX_TIMEOUT):
        raise UsageError("sleep() accepts at most 366 days")
