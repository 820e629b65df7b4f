"""The worker's side of a run: its state, log, heartbeat callbacks and fenced writes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from draftsman.domain.ids import new_id
from draftsman.domain.outcome import Parked
from draftsman.domain.question import Answered, NoAnswer, QuestionKind, QuestionSpec
from draftsman.domain.quota import Quota, QuotaLimit
from draftsman.domain.read_models import Step
from draftsman.domain.reserved_names import Owner
from draftsman.domain.retries.retry_policy import RetryPolicy
from draftsman.domain.run import ClaimedJob
from draftsman.handlers.db_retry import wait_for_database
from draftsman.handlers.print_capture import PrintCapture
from draftsman.handlers.question_mapping import to_answer
from draftsman.handlers.run_log import RunLog
from draftsman.outbound.timeouts import time_limit
from draftsman.ports import Notifier
from draftsman.schemas.checker import SchemaChecker
from draftsman.services.questions import Questions
from draftsman.services.repos import Repos
from draftsman.services.runs.checkpoints import Checkpoints
from draftsman.services.runs.settlement import Settlement
from draftsman.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


class RunServices(Protocol):
    """The services of the worker that a run may use."""

    @property
    def settings(self) -> Settings:
        """The worker's configuration."""

    @property
    def checkpoints(self) -> Checkpoints:
        """Saved progress of runs."""

    @property
    def questions(self) -> Questions:
        """Questions and answers."""

    @property
    def settle(self) -> Settlement:
        """Settlement of runs."""

    @property
    def outbox(self) -> Notifier:
        """Notifications."""

    @property
    def repos(self) -> Repos:
        """The registered repositories."""

    @property
    def schemas(self) -> SchemaChecker:
        """The checker of JSON Schemas."""


class WorkerRun:
    """The worker's side of a run; the handler's side is `RunContext`.

    Methods that write raise LeaseLost once the lease is lost.
    """

    stopping: str | None = None
    """Why the run has to end: `canceled`, `shutdown`, `lost` or `timeout`; None if it need not."""
    ending = False
    """Whether the run is stopping its processes, during which it must not be canceled again."""
    parked = False
    """Whether the run was parked: it holds no lease any more, and only unwinds."""

    def __init__(self, job: ClaimedJob, services: RunServices, limits: RetryPolicy) -> None:
        self.job = job
        self.services = services
        self.limits = limits
        self._log: RunLog | None = None
        self._prints: PrintCapture | None = None
        self._heartbeat_callbacks: tuple[Callable[[], None], ...] = ()

    async def wait(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the call; retry while the database is unreachable."""
        work = partial(call, *args, **kwargs)
        worker = self.services.settings.worker
        return await wait_for_database(
            self.job.name, work, worker, lambda: self.stopping is not None
        )

    # Heartbeats

    def on_heartbeat(self, callback: Callable[[], None]) -> None:
        """Register a callback for each heartbeat that renewed the lease."""
        self._heartbeat_callbacks += (callback,)

    def beat(self) -> None:
        """Run the heartbeat callbacks."""
        for callback in self._heartbeat_callbacks:
            callback()

    # Steps and quotas

    async def note_step(self, key: str, invocation_id: str | None, owner: Owner) -> Step:
        """Record that an effect is about to happen; return the step, perhaps of an earlier run."""
        begin = self.services.checkpoints.begin_step
        return (await self.wait(begin, self.job.lease, key, invocation_id, owner))[0]

    async def finish_step(self, key: str, result: Any, owner: Owner) -> None:
        """Record the result of a step."""
        finish = self.services.checkpoints.finish_step
        await self.wait(finish, self.job.lease, key, result, owner)

    async def step(
        self,
        key: str,
        effect: Callable[[str], Any],
        lookup: Callable[[str], Any] | None = None,
        owner: Owner = Owner.WORKER,
    ) -> Any:
        """Run an effect once, as `RunContext.step` does.

        By default the key belongs to the worker: no handler or agent can write it.
        """
        invocation_id = str(new_id())
        step = await self.note_step(key, invocation_id, owner)
        if step.status == "done":
            return step.result
        result = None
        async with time_limit("step", self.limits.step_timeout, f"step {key!r} ran"):
            if step.invocation_id != invocation_id and lookup is not None:
                result = await _await_if_needed(lookup(step.invocation_id))
            if result is None:
                result = await _await_if_needed(effect(step.invocation_id))
        await self.finish_step(key, result, owner)
        return result

    async def spend(self, quota: Quota, size: int, limit: QuotaLimit) -> bool:
        """Count a message of an agent, and its bytes, against a quota of the job.

        Return whether it is within the limit; a message over the limit is not counted.
        """
        spend = self.services.checkpoints.spend
        return await self.wait(spend, self.job.lease, quota, size, limit)

    # Questions

    def check_question(self, item: QuestionSpec) -> None:
        """Raise UsageError for a question that would be rejected."""
        self.services.questions.check(item, self.job.invoker_id)

    async def find_answer(
        self, item: QuestionSpec, patch: Callable[[], Awaitable[str | None]] | None = None
    ) -> Answered | NoAnswer | None:
        """Return the recorded answer to this question; None if it has none.

        An approval that showed a patch is valid for that patch alone: `patch` returns the SHA-256
        of the patch that would be shown now.
        """
        question = await self.wait(self.services.questions.of_key, self.job.number, item.key)
        if question is None or question.digest != item.digest:
            return None
        approved_patch = question.patch_sha256 if question.kind is QuestionKind.APPROVAL else None
        if approved_patch is not None and patch is not None and await patch() != approved_patch:
            return None
        return to_answer(question)

    async def ask_or_park(
        self, item: QuestionSpec, patch: Callable[[], Awaitable[str | None]] | None = None
    ) -> Answered | NoAnswer:
        """Return the recorded answer, or ask and park; `patch` as for `find_answer`."""
        if (recorded := await self.find_answer(item, patch)) is not None:
            return recorded
        answers = self.job.overrides.get("answers")
        answer = answers.get(item.key) if isinstance(answers, dict) else None
        await self.park(
            self.services.questions.ask,
            self.job.lease,
            item,
            given=None if answer is None else str(answer),
            invoker=self.job.invoker_id,
        )
        raise Parked

    async def park(
        self, write: Callable[P, Awaitable[Any]], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Store the log and make the write that ends the lease; the caller then raises Parked."""
        await self.wait(self.close)
        await self.wait(write, *args, **kwargs)
        self.parked = True

    # Log

    @property
    def log(self) -> RunLog:
        """The run's log, opened when it is first used."""
        if self._log is None:
            services = self.services
            self._log = RunLog(services.checkpoints, self.job.lease, services.settings.quotas)
        return self._log

    @property
    def has_open_log(self) -> bool:
        """Whether the run has written to its log."""
        return self._log is not None

    def prints(self) -> PrintCapture:
        """Return a context manager that captures the handler's prints in the run's log."""
        self._prints = PrintCapture(lambda text: self.log.write(text))
        return self._prints

    async def close(self) -> None:
        """Store the rest of the log; the run needs its lease for this."""
        if self._prints is not None:
            self._prints.flush()
        if self._log is not None:
            await self._log.close()


async def _await_if_needed(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
