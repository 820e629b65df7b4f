"""The worker's side of a run: its state, log, heartbeat callbacks, reads and fenced writes."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar, cast
from uuid import UUID

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.agent_runs.activity import activity as stream
from draftsman.costs.budgets import BudgetState, CallEstimate, usage_of
from draftsman.errors import DatabaseUnreachable, DraftsmanError, UsageError
from draftsman.formats import worker_paths
from draftsman.handlers.activity_recorder import ActivityRecorder
from draftsman.handlers.changed_content import (
    ChangedContent,
    changed_question,
    earlier_questions,
)
from draftsman.handlers.run_log import PrintCapture, RunLog
from draftsman.handlers.run_pause import QuestionWait, RunPause
from draftsman.handlers.run_services import RunServices
from draftsman.ids import new_id
from draftsman.jobs import reserved_names
from draftsman.jobs.reserved_names import NOW, Owner
from draftsman.jobs.retries import RetryPolicy
from draftsman.jobs.runs.outcome import Parked
from draftsman.jobs.runs.quota import Quota, QuotaLimit
from draftsman.jobs.runs.run import ClaimedJob, Run
from draftsman.jobs.runs.saved_data import Step
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.outbound.secret_values import hide_values
from draftsman.outbound.timeouts import time_limit
from draftsman.questions.asked_question import AskedQuestion
from draftsman.questions.question import (
    BUDGET_KEY,
    Answered,
    NoAnswer,
    OnChanges,
    Question,
    QuestionKind,
    QuestionStatus,
)
from draftsman.questions.question_spec import Choice, QuestionSpec
from draftsman.repos.service import Repos
from draftsman.settings import Settings
from draftsman.settings.workers import WorkerSettings
from draftsman.text import TOO_DEEP
from draftsman.tracing.tracer import active, span
from draftsman.workflows.service.workflows import OtherSpawn

# Retries of database calls by a run during an outage, a lock or a conflict of the database.


PROGRESS: Final = 100
"""Newest steps of a job that are looked at for progress."""
T = TypeVar("T")
V = TypeVar("V")
_log = logging.getLogger(__name__)


async def wait_for_database(
    name: str,
    call: Callable[[], Awaitable[T]],
    worker: WorkerSettings,
    stopping: Callable[[], bool],
) -> T:
    """Return the result of `call`, retried while the lease may still be valid.

    `name` is the job's, for the log. `call` has to be idempotent: it is repeated after a commit
    whose reply was lost. A run that is `stopping` retries once, on another connection. An error
    that a later call may not meet (a lock, a conflict, a read-only server) is retried as well.
    Raises the last error when the retries are used up.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + worker.lease
    attempts = 0
    while True:
        try:
            return await call()
        except DraftsmanError as error:
            attempts += 1
            if not error.is_temporary or clock() > deadline or (attempts > 1 and stopping()):
                raise
            if attempts == 1:
                problem = "unreachable" if isinstance(error, DatabaseUnreachable) else "busy"
                _log.info("%s: database %s, retrying: %s", name, problem, error)
            await asyncio.sleep(worker.poll)


# Mapping between questions of handlers and stored questions.


def build_ask(**fields: Any) -> QuestionSpec:
    """Return the question; raises UsageError."""
    try:
        return QuestionSpec(**fields)
    except ValidationError as error:
        raise field_errors.field_error(error, f"question {fields.get('key')!r}") from None


def to_answer(question: Question) -> Answered | NoAnswer | None:
    """Return the answer to a question for its handler; None without one.

    A request for changes that is told to the agent is none: people are asked again.
    """
    resolution = question.resolution
    if resolution is None or question.status is QuestionStatus.CANCELED:
        return None
    if question.has_changes_requested and question.on_changes is OnChanges.TELL:
        return None
    if question.status is QuestionStatus.EXPIRED:
        return NoAnswer()
    return Answered(
        value=resolution.get("value"),
        text=resolution.get("text"),
        outcome=resolution["outcome"],
        via=resolution["via"],
        by=tuple(resolution.get("by", ())),
        reason=resolution.get("reason"),
        at=question.answered_at,
        comments=question.comments,
    )


P = ParamSpec("P")


ContinueInGrace = Callable[[float, Callable[[], bool]], Awaitable[ClaimedJob | None]]
"""Waits for so many seconds until the parked job is claimed for this worker, and starts it."""


class WorkerRun:
    """The worker's side of a run; the handler's side is `RunContext`.

    Methods that write raise LeaseLost once the lease is lost.
    """

    stopping: str | None = None
    """Why the run has to end: `canceled`, `paused`, `shutdown`, `lost`, `timeout`; else None."""
    ending = False
    """Whether the run is stopping its processes, during which it must not be canceled again."""
    parked = False
    """Whether the run was parked: it holds no lease any more, and only unwinds."""
    code_owners: Callable[[], Awaitable[list[str]]] | None = None
    """Returns the people who own the code that the job has changed so far."""

    def __init__(
        self,
        job: ClaimedJob,
        services: RunServices,
        limits: RetryPolicy,
        deadline: float,
        prints: PrintCapture | None = None,
        continue_in_grace: ContinueInGrace | None = None,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        self.job = job
        self.services = services
        self.limits = limits
        """The timeouts of this job, each limited by the enclosing timeout."""
        self.deadline = deadline
        """Seconds of running time left when the run started."""
        self._last_event = 0
        """Id of the newest event of the run that the database confirmed."""
        self._log: RunLog | None = None
        self._activity: ActivityRecorder | None = None
        self._prints = prints
        self._heartbeat_callbacks: tuple[Callable[[], None], ...] = ()
        self._continue = continue_in_grace
        self._effects: dict[str, list[tuple[str, int]]] = {}
        """The contents of the steps of the run, each with the progress then."""
        self._progress = 0
        """The checkpoints and the keys of steps of the run so far."""
        self.secrets: Collection[str] = ()
        """Values that are replaced wherever the handler writes: those of its secrets."""
        self.remove_paths = worker_paths.of_runs(services.settings.data_dir)
        """Makes paths of the run's folders relative, in what people read."""
        self.pause = RunPause(interrupt)
        """The tasks of the handler that wait, for people, a time or other jobs."""

    @property
    def settings(self) -> Settings:
        """The worker's configuration."""
        return self.services.settings

    @property
    def repos(self) -> Repos:
        """The registered repositories."""
        return self.services.repos

    @property
    def schemas(self) -> SchemaChecker:
        """The checker of JSON Schemas."""
        return self.services.schemas

    async def wait(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the call; retry while the database is unreachable."""
        await self.pause.hold()
        with self.pause.call():
            bound_call: Callable[[], Awaitable[T]] = partial(
                call, *self.hidden(args), **self.hidden(kwargs)
            )
            return await wait_for_database(
                self.job.name, bound_call, self.settings.worker, lambda: self.stopping is not None
            )

    def hidden(self, value: V) -> V:
        """Return a value without those of the run's secrets."""
        return hide_values(value, self.secrets) if self.secrets else value

    def shown(self, value: V) -> V:
        """Return a value as people read it: without secrets, and without paths of this machine.

        Raises UsageError for a value that is nested too deeply.
        """
        try:
            return cast("V", self.remove_paths(self.hidden(value)))
        except RecursionError:
            raise UsageError(f"a value {TOO_DEEP}") from None

    def shown_question(self, item: QuestionSpec) -> QuestionSpec:
        """Return a question as people read it; values that a program gets keep their paths."""
        if self.secrets:
            item = QuestionSpec(**self.hidden(item.model_dump(exclude_unset=True)))
        words = self.shown({"text": item.text, "context": item.context})
        return item.model_copy(
            update={**words, "choices": tuple(map(self._shown_choice, item.choices))}
        )

    def _shown_choice(self, choice: Choice) -> Choice:
        words = {"label": choice.label, "description": choice.description}
        return choice.model_copy(update=self.shown(words))

    # Heartbeats

    def on_heartbeat(self, callback: Callable[[], None]) -> None:
        """Register a callback for each heartbeat that renewed the lease."""
        self._heartbeat_callbacks += (callback,)

    def beat(self) -> None:
        """Run the heartbeat callbacks."""
        for callback in self._heartbeat_callbacks:
            callback()

    # Checkpoints, steps and quotas

    async def checkpoint(
        self, data: dict[str, Any], bundle: bytes | None = None, messages: Sequence[int] = ()
    ) -> None:
        """Save state for a later run, with the messages that it has; UsageError over 1 MiB."""
        lease = self.job.lease
        self._progress += 1
        if messages:
            save = self.services.run_messages.deliver_with_checkpoint
            await self.wait(save, lease, messages, data, bundle)
        else:
            await self.wait(self.services.checkpoints.save, lease, data, bundle)

    async def saved_work(self) -> tuple[dict[str, Any] | None, bytes | None]:
        """Return the newest checkpoint's data and its work bundle."""
        return await self.wait(self.services.checkpoints.latest, self.job.number)

    async def steps(self, owner: Owner = Owner.HANDLER) -> dict[str, Step]:
        """Return the steps of the job that this owner wrote, by key."""
        steps = await self.wait(self.services.checkpoints.steps, self.job.number)
        return {step.key: step for step in steps if step.owner == owner}

    async def note_step(
        self, key: str, invocation_id: str | None = None, owner: Owner = Owner.HANDLER
    ) -> Step:
        """Record that an effect is about to happen; return the step, perhaps of an earlier run.

        Raises UsageError for a key that is reserved for another owner.
        """
        begin = self.services.checkpoints.begin_step
        return (await self.wait(begin, self.job.lease, key, invocation_id, owner))[0]

    async def finish_step(self, key: str, result: Any, owner: Owner = Owner.HANDLER) -> None:
        """Record the result of a step."""
        finish = self.services.checkpoints.finish_step
        await self.wait(finish, self.job.lease, key, result, owner)

    async def step(
        self,
        key: str,
        effect: Callable[[str], Any],
        lookup: Callable[[str], Any] | None = None,
        owner: Owner = Owner.HANDLER,
        content: str | None = None,
    ) -> Any:
        """Run an effect once, as `RunContext.step` does.

        A key of the worker cannot be written by a handler or an agent. With a `content`, another
        content of the same key is named, and then refused.
        """
        if content is not None:
            await self._check_effect(key, content)
        invocation_id = str(new_id())
        step = await self.note_step(key, invocation_id, owner)
        if step.status == "done":
            return step.result
        result = None
        with self.pause.step(), span("step", {"draftsman.step.key": key}):
            async with time_limit("step", self.limits.step_timeout, f"step {key!r} ran"):
                if step.invocation_id != invocation_id and lookup is not None:
                    result = await _await_if_needed(lookup(step.invocation_id))
                if result is None:
                    result = await _await_if_needed(effect(step.invocation_id))
            await self.finish_step(key, result, owner)
        return result

    async def _check_effect(self, key: str, content: str) -> None:
        """Warn of a second effect with the key of a step; refuse a third without progress."""
        if key not in self._effects:
            self._progress += 1
        contents = self._effects.setdefault(key, [(content, self._progress)])
        before = contents[-1][0]
        if before == content:
            return
        change = ChangedContent("step", key, before, content)
        if len(contents) > 1 and contents[-2][1] == self._progress:
            raise change.refusal()
        contents.append((content, self._progress))
        await self._warn(change)

    async def spawn(self, key: str, type: str, fields: dict[str, Any]) -> int:
        """Submit a job once for this key, as `RunContext.spawn` does."""
        try:
            return await self.wait(self.services.workflows.spawn, self.job, key, type, fields)
        except OtherSpawn as other:
            earlier = await self.wait(self.services.workflows.spawn_change, self.job, key)
            if earlier is None or earlier.digest != other.digest:
                before = other.before if earlier is None else earlier.content
                change = ChangedContent("spawn", key, before, other.now, other.digest)
                await self._note_change(change, None if earlier is None else earlier.run - 1)
            return other.number

    async def _note_change(self, change: ChangedContent, unless_after: int | None) -> None:
        """Warn of another content; refuse it without progress after a run that had another, too."""
        if unless_after is not None and not await self._has_progress(after=unless_after):
            raise change.refusal()
        await self._warn(change)

    async def _warn(self, change: ChangedContent) -> None:
        self.log_line(f"warning: {change}")
        await self.event("content_changed", change.payload, Owner.WORKER)

    async def spend(self, quota: Quota, size: int, limit: QuotaLimit) -> bool:
        """Count a message of an agent, and its bytes, against a quota of the job.

        Return whether it is within the limit; a message over the limit is not counted.
        """
        spend = self.services.checkpoints.spend
        return await self.wait(spend, self.job.lease, quota, size, limit)

    # Events and artifacts

    async def event(
        self, kind: str, payload: dict[str, Any] | None = None, owner: Owner = Owner.HANDLER
    ) -> None:
        """Append an event to the job, as `RunContext.event` does."""
        reserved_names.check_event_kind(kind, owner)
        last_event = self._last_event
        stored = self.shown(payload or {})
        if (tracer := active()) is not None:
            tracer.event(kind, stored)
        sent = False

        async def send() -> int:
            nonlocal sent
            is_retry = sent
            sent = True
            return await self.services.checkpoints.event(
                self.job.lease, kind, stored, unless_after=last_event if is_retry else None
            )

        self._last_event = max(self._last_event, await self.wait(send))

    async def artifact(self, name: str, data: bytes, kind: str = "file") -> None:
        """Store a file, as `RunContext.artifact` does."""
        reserved_names.check_artifact(name, kind, Owner.HANDLER)
        await self.wait(self.services.checkpoints.artifact, self.job.lease, name, kind, data)

    async def patch(self, data: bytes) -> None:
        """Store the changes of the run so far; shown with a question or the result."""
        await self.wait(self.services.changes.store, self.job.lease, data)

    async def evidence(self, data: bytes) -> None:
        """Store the signed statement about the work."""
        store = self.services.checkpoints.artifact
        await self.wait(store, self.job.lease, reserved_names.EVIDENCE, "evidence", data)

    async def has_patch(self) -> bool:
        """Return whether a run of the job stored a patch."""
        return await self.wait(self.services.changes.patch, self.job.number) is not None

    async def usage(
        self,
        amounts: dict[str, Any],
        model: str | None = None,
        call: UUID | None = None,
        profile_budget: Mapping[str, float] | None = None,
    ) -> list[BudgetState]:
        """Record the usage of the run so far, as `ModelCalls.record` does."""
        if self._activity is not None and not self.parked:
            self._activity.add(stream.of_usage(amounts))
        record = self.services.model_calls.record
        return await self.wait(record, self.job.lease, amounts, model, call, profile_budget)

    async def runs(self) -> list[Run]:
        """Return the runs of the job so far."""
        return await self.wait(self.services.checkpoints.runs, self.job.number)

    async def total_usage(self) -> dict[str, float]:
        """Return the usage of all runs of the job so far, by measure."""
        return usage_of(await self.runs())

    async def reserve(
        self, call: UUID | None, estimate: CallEstimate, profile_budget: Mapping[str, float] | None
    ) -> BudgetState:
        """Reserve the maximum use of a call, as `ModelCalls.reserve` does."""
        reserve = self.services.model_calls.reserve
        return await self.wait(reserve, self.job.lease, call, estimate, profile_budget)

    async def release(self, call: UUID) -> None:
        """End the reservation of a call that used nothing."""
        await self.wait(self.services.model_calls.release, call)

    async def pull_request(self, url: str) -> None:
        """Record the pull request of the job's work."""
        await self.wait(self.services.checkpoints.pull_request, self.job.lease, url)

    async def assign_agent(self, name: str) -> None:
        """Record the agent of a job whose request names none."""
        await self.wait(self.services.checkpoints.assign_agent, self.job.lease, name)

    async def describe(self, params: dict[str, Any]) -> None:
        """Record the parameters that the run resolved, without secrets."""
        await self.wait(self.services.checkpoints.describe, self.job.lease, params)

    async def exited(self, exit_code: int | None) -> None:
        """Record the exit code of the run's program."""
        await self.wait(self.services.checkpoints.describe, self.job.lease, {}, exit_code)

    # Questions

    async def answers(self) -> dict[str, Answered | NoAnswer]:
        """Return the valid answers of the job so far, by key."""
        return {key: answer for key, (_, answer) in (await self.answered_questions()).items()}

    async def answered_questions(self) -> dict[str, tuple[str, Answered | NoAnswer]]:
        """Return the texts of the questions with valid answers, and the answers, by key."""
        questions, _ = await self.wait(self.services.questions.of_job, self.job.number)
        valid = [(item, to_answer(item)) for item in questions if item.status != "superseded"]
        return {item.key: (item.text, answer) for item, answer in valid if answer is not None}

    def check_question(self, item: QuestionSpec) -> None:
        """Raise UsageError for a question that would be rejected."""
        self.services.asking.check(item, self.job.invoker_id)

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

    async def find_requested_changes(self, item: QuestionSpec) -> Answered | None:
        """Return the changes that people have requested of this approval; None if they have not.

        They are about the patch that people saw, but no less wanted of a later one.
        """
        question = await self.wait(self.services.questions.of_key, self.job.number, item.key)
        is_requested = question is not None and question.has_changes_requested
        if question is None or not is_requested or question.digest != item.digest:
            return None
        answer = to_answer(question)
        return answer if isinstance(answer, Answered) else None

    async def ask_or_park(
        self,
        item: QuestionSpec,
        patch: Callable[[], Awaitable[str | None]] | None = None,
        owner: Owner = Owner.WORKER,
    ) -> Answered | NoAnswer:
        """Return the recorded answer, or ask and park; `patch` as for `find_answer`.

        The run parks for all questions that its tasks ask at once. A question of a handler whose
        content changes again and again is refused.
        """
        position = next(self.pause.places)
        if (recorded := await self.find_answer(item, patch)) is not None:
            return recorded
        self.check_question(item)
        if owner is Owner.HANDLER:
            await self._check_content(item)
        await self.pause.wait(QuestionWait(item, position, self.ask_all))
        raise Parked

    async def _check_content(self, item: QuestionSpec) -> None:
        """Warn of a question that replaces another; refuse the third without progress."""
        questions, _ = await self.wait(self.services.questions.of_job, self.job.number)
        if not (earlier := earlier_questions(item, questions)):
            return
        change = changed_question(item, earlier[0])
        await self._note_change(change, earlier[1].run if len(earlier) > 1 else None)

    async def _has_progress(self, after: int) -> bool:
        """Return whether runs after this one finished a step or saved a checkpoint."""
        progress = self.services.checkpoints.progress
        steps, checkpoints = await self.wait(progress, self.job.number, limit=PROGRESS)
        runs = [step.run for step in steps if step.finished_at and not step.key.startswith(NOW)]
        return any(run > after for run in [*runs, *(checkpoint.run for checkpoint in checkpoints)])

    async def ask_first(self, items: Sequence[QuestionSpec]) -> list[Answered | NoAnswer | None]:
        """Return the recorded answers, None for the others; ask and park if there is none."""
        positions = [next(self.pause.places) for _ in items]
        answers = [await self.find_answer(item) for item in items]
        if any(answers) or not items:
            return answers
        for item in items:
            self.check_question(item)
            await self._check_content(item)
        alternatives = object()
        await asyncio.gather(
            *(
                self.pause.wait(QuestionWait(item, position, self.ask_all, alternatives))
                for item, position in zip(items, positions, strict=True)
            )
        )
        raise Parked

    async def ask_all(self, questions: Sequence[AskedQuestion], grace: float = 0) -> None:
        """Ask the questions, and park the run."""
        await self.park(
            self.services.asking.ask_all,
            self.job.lease,
            [
                replace(question, answer=self._submitted_answer(question.item))
                for question in questions
            ],
            invoker=self.job.invoker_id,
            grace=grace,
            owners=await self.code_owners() if self.code_owners is not None else (),
        )

    def _submitted_answer(self, item: QuestionSpec) -> str | None:
        """Return the answer that came with the request."""
        answers = self.job.overrides.get("answers")
        if not isinstance(answers, dict) or item.key == BUDGET_KEY:
            return None
        answer = answers.get(item.key)
        return None if answer is None else str(answer)

    async def ask_in_grace(
        self,
        questions: Sequence[QuestionSpec],
        seconds: float,
        on_poll: Callable[[], bool],
    ) -> dict[str, Answered | NoAnswer] | None:
        """Ask, park, and continue as the job's next run if all answers come within the time.

        Return the answers by key; None if they do not come: the run stays parked. `on_poll` is
        called about once a second, and returns whether the agent still waits.
        """
        await self.ask_all([AskedQuestion(item) for item in questions], grace=seconds)
        job = None
        if self._continue is not None:
            job = await self._continue(seconds, on_poll)
        if job is None:
            return None
        self.job = job
        self.parked = False
        self._log = None
        self._activity = None
        self._last_event = 0
        answers = {item.key: await self.find_answer(item) for item in questions}
        return {key: answer for key, answer in answers.items() if answer is not None}

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
            self._log = RunLog(
                self.services.checkpoints, self.job.lease, self.settings.quotas, hide=self.shown
            )
        return self._log

    def log_line(self, line: str) -> None:
        """Append a line to the log of the run, unless the run is parked already."""
        if not self.parked:
            self.log.write(line)

    async def log_stream(self, text: str) -> None:
        """Append program output unchanged; waits while the buffer is full."""
        self.log.append(text)
        await self.log.wait_for_room()

    async def log_parked(self, text: str) -> None:
        """Append a line to the log of the run, which has parked; nothing for an empty text."""
        if text:
            await self.wait(self.services.checkpoints.log_parked, self.job.lease, f"{text}\n")

    @property
    def activity(self) -> ActivityRecorder:
        """The run's activity, opened when it is first used."""
        if self._activity is None:
            self._activity = ActivityRecorder(
                self.services.activity, self.job.lease, self.settings.quotas, hide=self.shown
            )
        return self._activity

    @property
    def has_open_log(self) -> bool:
        """Whether the run has written to its log or its activity."""
        return self._log is not None or self._activity is not None

    async def close(self) -> None:
        """Store the rest of the log and of the activity; the run needs its lease for this."""
        if self._prints is not None:
            self._prints.flush()
        if self._log is not None:
            await self._log.close()
        if self._activity is not None:
            await self._activity.close()


async def _await_if_needed(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
