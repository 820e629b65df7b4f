"""The context of a handler: its job, steps, questions, log and notifications."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, ParamSpec, TypeVar, overload

from draftsman.domain import reserved_names
from draftsman.domain.ids import new_id
from draftsman.domain.outcome import Parked, Snooze
from draftsman.domain.question import (
    Answered,
    Choice,
    NoAnswer,
    OnDeny,
    OnExpire,
    QuestionKind,
)
from draftsman.domain.reserved_names import Owner
from draftsman.domain.retries.retry_policy import RetryPolicy
from draftsman.domain.run import ClaimedJob
from draftsman.errors import UsageError
from draftsman.handlers.question_mapping import build_ask, to_answer
from draftsman.handlers.run_progress import RunProgress
from draftsman.handlers.worker_run import RunServices, WorkerRun
from draftsman.schemas.checker import SchemaChecker
from draftsman.services.questions import MAX_TIMEOUT
from draftsman.services.repos import Repos

P = ParamSpec("P")
T = TypeVar("T")


class RunContext(RunProgress):
    """The run of a job.

    Methods that write raise LeaseLost once the run has lost its lease. All methods retry while the
    database is unreachable and the lease may still be valid. `job` is the claimed job.
    """

    def __init__(
        self,
        job: ClaimedJob,
        services: RunServices,
        deadline: float,
        limits: RetryPolicy | None = None,
    ) -> None:
        self.limits = limits or RetryPolicy()
        """The timeouts of this job, each limited by the enclosing timeout."""
        self.deadline = deadline
        """Seconds of running time left when the run started."""
        super().__init__(WorkerRun(job, services, self.limits))

    @property
    def repos(self) -> Repos:
        """The registered repositories."""
        return self._services.repos

    @property
    def schemas(self) -> SchemaChecker:
        """The checker of JSON Schemas."""
        return self._services.schemas

    def on_heartbeat(self, callback: Callable[[], None]) -> None:
        """Register a callback for each heartbeat that renewed the lease."""
        self._run.on_heartbeat(callback)

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
        return await self._run.step(key, effect, lookup, Owner.HANDLER)

    async def ask(
        self,
        key: str,
        text: str,
        *,
        choices: Sequence[str | Choice | dict[str, Any]] = (),
        freeform: bool = False,
        context: str | None = None,
        expires_in: float | None = None,
        never_expires: bool = False,
        on_expire: OnExpire | str = OnExpire.EXPIRE,
        default: str | None = None,
        escalate_to: str | None = None,
    ) -> Answered | NoAnswer:
        """Return the answer to this question; park the run until it is answered.

        Parking frees the slot and raises Parked through the handler. The answer starts a new run
        of the handler from the top, in which this call returns. Times are in seconds. With
        `on_expire="escalate"` the group or user `escalate_to` (default: as configured) is asked as
        well, once, for the same time again. Raises UsageError.
        """
        reserved_names.check_key(key, Owner.HANDLER, "question")
        return await self._run.ask_or_park(
            build_ask(
                key=key,
                text=text,
                choices=tuple(choices),
                freeform=freeform,
                context=context,
                expires_in=expires_in,
                never_expires=never_expires,
                on_expire=on_expire,
                default=default,
                escalate_to=escalate_to,
            )
        )

    async def approve(
        self,
        key: str,
        text: str,
        *,
        action: dict[str, Any] | None = None,
        approvers: Sequence[str] | None = None,
        quorum: int = 1,
        context: str | None = None,
        expires_in: float | None = None,
        on_expire: OnExpire | str = OnExpire.EXPIRE,
        escalate_to: str | None = None,
        on_deny: OnDeny | str = OnDeny.FAIL,
    ) -> Answered:
        """Return the decision on this approval; park the run until it is decided.

        The decision is bound to `text` and `action`: if either changes, people are asked again. A
        denial fails the job, unless `on_deny` is `continue`. `on_expire` is `expire` or `escalate`.
        """
        reserved_names.check_key(key, Owner.HANDLER, "approval")
        decision = await self._run.ask_or_park(
            build_ask(
                key=key,
                kind=QuestionKind.APPROVAL,
                text=text,
                action=action,
                approvers=None if approvers is None else tuple(approvers),
                quorum=quorum,
                context=context,
                expires_in=expires_in,
                on_expire=on_expire,
                escalate_to=escalate_to,
                on_deny=on_deny,
            )
        )
        if isinstance(decision, NoAnswer):  # an approval cannot continue without a decision
            raise Parked
        return decision

    async def answers(self) -> dict[str, Answered | NoAnswer]:
        """Return the valid answers of the job so far, by key."""
        questions, _ = await self._run.wait(self._services.questions.of_job, self.job.number)
        answers = {item.key: to_answer(item) for item in questions if item.status != "superseded"}
        return {key: answer for key, answer in answers.items() if answer is not None}

    async def sleep(self, key: str, until: datetime | timedelta | float) -> None:
        """Park the job until a time, or for a duration; it holds no slot meanwhile."""
        _check_time(until)
        step = f"{reserved_names.SLEEP}{key}"
        due = datetime.fromisoformat(await self._run.step(step, lambda _: self._due(until)))
        if due > await self._run.wait(self._services.checkpoints.now):
            await self._run.park(self._services.settle.outcome, self.job, Snooze(due))
            raise Parked

    async def _due(self, until: datetime | timedelta | float) -> str:
        if isinstance(until, datetime):
            return until.isoformat()
        duration = until if isinstance(until, timedelta) else timedelta(seconds=until)
        return (await self._run.wait(self._services.checkpoints.now) + duration).isoformat()

    async def notify(
        self, text: str, targets: Sequence[str] = (), *, key: str | None = None
    ) -> list[int]:
        """Notify the targets (default: the job's own); return the numbers of the deliveries.

        Notifies once per `key`, such as a step's invocation id. Raises UsageError.
        """
        notify, key = self._services.outbox.notify, key or str(new_id())
        return await self._run.wait(notify, self.job.lease, key, targets, text)

    async def log_stream(self, text: str) -> None:
        """Append program output unchanged; waits while the buffer is full."""
        self._run.log.append(text)
        await self._run.log.wait_for_room()

    def log(self, text: str) -> None:
        """Append a line to the run's log; `draftsman logs -f` shows it within about a second."""
        self._run.log.write(text)


def worker_run(ctx: RunContext) -> WorkerRun:
    """Return the worker's side of this run, for the worker and its own handlers."""
    return ctx._run


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
