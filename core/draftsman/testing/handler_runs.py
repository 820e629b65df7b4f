"""Runs of handlers through their questions, without a worker or a database."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast
from uuid import UUID

from draftsman.costs.budgets import BudgetState
from draftsman.errors import AnswerTimeout, DraftsmanError, NotPermitted, UsageError
from draftsman.handlers.context import RunContext, interrupt_by, worker_run
from draftsman.handlers.registry import Handler
from draftsman.handlers.run_services import RunServices
from draftsman.handlers.threads import ThreadLimit
from draftsman.ids import new_id
from draftsman.job_types.secret_name import given_secrets
from draftsman.jobs.job import Source
from draftsman.jobs.requests.attachments import AttachedFile, JobAttachment
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.outcome import (
    Outcome,
    Parked,
    Snooze,
    caught_pause_text,
    unasked_text,
    validate_result,
)
from draftsman.jobs.runs.run import ClaimedJob, Lease
from draftsman.jobs.runs.saved_data import CheckpointSummary, Step, StepSummary
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.people.configuration import configured_policy
from draftsman.people.policy import Person
from draftsman.questions.answer import check_kind, fails_job, parse_answer
from draftsman.questions.asked_question import AskedQuestion
from draftsman.questions.question import (
    Decision,
    OnExpire,
    Question,
    QuestionStatus,
    Resolution,
)
from draftsman.questions.question_spec import QuestionSpec, shown_choices
from draftsman.questions.response import Response
from draftsman.settings import Settings
from draftsman.text import CHECKPOINT_LIMIT, REQUEST_LIMIT, clean_within_limit
from draftsman.workflows.dependencies import Parent, SpawnChange
from draftsman.workflows.service.workflows import OtherSpawn

Q = TypeVar("Q", bound=Question)
RUNS: Final = 1000
"""Maximum number of runs of a handler."""
DEADLINE: Final = 3600.0
"""Running time of a run, in seconds."""
PERSON: Final = "tester"
"""The person who gives the answers."""
DEFAULTS: Final[dict[str, Any]] = {
    "type": "test",
    "queue": "default",
    "invoker_id": PERSON,
    "title": "test",
    "request": None,
    "retry_of": None,
    "attempts": 0,
    "max_attempts": 3,
    "retry_count": 0,
    "max_retries": 3,
    "id": UUID(int=1),
    "source": Source.API,
    "overrides": {},
    "tags": [],
    "created_at": datetime(2030, 1, 1, tzinfo=UTC),
}
"""Default columns of the job, besides its payload."""


class Clock:
    """A fake clock for a handler; it moves when the handler sleeps, or by `advance`."""

    def __init__(self, now: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self.now = now

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self.now += timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class Deny:
    """A denial of an approval, with a reason."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RequestChanges:
    """A request for changes, of an approval that takes one."""

    reason: str


Reply = str | bool | Deny | RequestChanges | None
"""An answer to a question; None: no answer in time."""


@dataclass(slots=True)
class HandlerResult:
    """The outcome of a handler, and its effects over all of its runs."""

    outcome: Outcome
    runs: int = 0
    questions: list[Question] = field(default_factory=list)
    """Every question, with its resolution, in the order asked."""
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    messages: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Each text of `ctx.notify` with its targets; without targets, those of the job are used."""
    steps: dict[str, Any] = field(default_factory=dict)
    """The result of each step by its key."""
    checkpoint: dict[str, Any] | None = None
    log: str = ""
    usage: dict[str, Any] = field(default_factory=dict)


async def run_handler(
    handler: Handler,
    payload: Mapping[str, Any] | None = None,
    *,
    answers: Mapping[str, Reply] | None = None,
    lost_after: Collection[str] = (),
    clock: Clock | None = None,
    settings: Settings | None = None,
    parents: Sequence[Parent] = (),
    attachments: Sequence[AttachedFile] = (),
    jobs: SpawnedJobs | None = None,
    secrets: Mapping[str, str] | None = None,
    **columns: Any,
) -> HandlerResult:
    """Run a handler until it returns an outcome, replaying it after each answer and each sleep.

    `answers` maps the key of a question to its answer: a choice or text, True or False for an
    approval, a `Deny`, a `RequestChanges`, or None to let the question expire. `lost_after` names
    steps after which the worker is lost once, after the step's effect and before its result is
    recorded. `parents` are the jobs that the job waited for, `attachments` its files, `jobs`
    runs those that it spawns, `secrets` are those of its worker, and `columns` are further columns
    of the job, such as `tags`.

    Raises the handler's own error; Failure for an invalid result; AnswerTimeout or NotPermitted if
    an expired question or a denial ends the job; and AssertionError for a question that no entry of
    `answers` fits, and for a handler that returns after it has paused.
    """
    used = settings or Settings()
    memory = Memory(
        answers or {},
        set(lost_after),
        clock or Clock(),
        list(parents),
        configured_policy(used).people or {PERSON: Person(PERSON, frozenset())},
    )
    memory.attachments.files = attachments
    memory.jobs = jobs
    with given_secrets(secrets):
        return memory.result(await run_in_memory(handler, memory, used, payload or {}, columns))


async def run_in_memory(
    handler: Handler,
    memory: Memory,
    settings: Settings,
    payload: Mapping[str, Any],
    columns: Mapping[str, Any],
) -> Outcome:
    """Return the outcome of a handler after all of its runs; raises as `run_handler` does."""
    async with SchemaChecker() as schemas:
        services = cast(RunServices, MemoryServices(settings, memory, schemas))
        for run in range(1, RUNS + 1):
            memory.run = run
            ctx = RunContext(_claimed(run, payload, columns), services, DEADLINE)
            outcome = await run_once(handler, ctx)
            if outcome is None:
                memory.answer_open_questions()
            elif isinstance(outcome, Snooze):
                await memory.outcome(ctx.job, outcome)
            else:
                return outcome
    raise AssertionError(f"the handler did not return an outcome within {RUNS} runs")


async def run_once(handler: Handler, ctx: RunContext) -> Outcome | None:
    """Return the outcome of a run; None if it paused, or its worker was lost.

    Raises the handler's own error, and AssertionError as `run_handler` does.
    """
    task = asyncio.ensure_future(handler(ctx))
    interrupt_by(ctx, partial(_cancel, task))
    try:
        outcome = await task
    except BaseException as error:
        await worker_run(ctx).pause.end()
        if not _is_interrupted(error, parked=worker_run(ctx).parked):
            raise
        return None
    else:
        if unasked := await worker_run(ctx).pause.end():
            raise AssertionError(unasked_text(unasked))
        if worker_run(ctx).parked:
            text = caught_pause_text("the handler", f"returned {type(outcome).__name__}")
            raise AssertionError(text)
        validate_result(outcome)
        return outcome
    finally:
        await worker_run(ctx).close()


class SpawnedJobs(Protocol):
    """The jobs that a handler spawns, and what runs them."""

    async def spawn(self, key: str, type: str, fields: Mapping[str, Any]) -> int:
        """Submit a job; return its number."""

    async def ended(self, numbers: Sequence[int]) -> list[Parent]:
        """Run these jobs; return them."""


class _WorkerLost(BaseException):
    """The worker is lost between the effect of a step and its record."""


def _cancel(task: asyncio.Future[Outcome]) -> None:
    task.cancel()


def _is_interrupted(error: BaseException, *, parked: bool) -> bool:
    """Return whether a handler ended because its run paused, or because its worker was lost."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_interrupted(inner, parked=parked) for inner in error.exceptions)
    return isinstance(error, _WorkerLost) or (
        parked and isinstance(error, Parked | asyncio.CancelledError)
    )


class _Files:
    """In-memory replacement of the attachments of the job."""

    files: Sequence[AttachedFile] = ()

    async def of_job(self, job: int) -> list[JobAttachment]:
        return [_attachment(job, number, file) for number, file in enumerate(self.files, 1)]

    async def content(self, attachment: int) -> bytes | None:
        return self.files[attachment - 1].data


def _attachment(job: int, number: int, file: AttachedFile) -> JobAttachment:
    status = "refused" if file.data is None else "stored"
    return JobAttachment(
        job=job,
        ordinal=number,
        message=file.message,
        id=number,
        name=file.name,
        media_type=file.media_type,
        status=status,
        reason=file.reason,
        size=None,
        sha256=None,
        created_at=DEFAULTS["created_at"],
        overdue=False,
    )


@dataclass(slots=True)
class Memory:
    """In-memory replacement of the services that a run calls."""

    answers: Mapping[str, Reply]
    lost_after: set[str]
    clock: Clock
    known_parents: list[Parent]
    people: Mapping[str, Person]
    jobs: SpawnedJobs | None = None
    spawned: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    """The number of each spawned job, its content and its digest, by key."""
    event_runs: list[int] = field(default_factory=list)
    """The runs of the events."""
    run: int = 0
    step_runs: dict[str, int] = field(default_factory=dict)
    """The run that finished each step."""
    checkpoint_runs: list[int] = field(default_factory=list)
    attachments: _Files = field(default_factory=_Files)
    data: dict[str, Any] | None = None
    bundle: bytes | None = None
    known_steps: dict[str, Step] = field(default_factory=dict)
    asked: list[Question] = field(default_factory=list)
    collected: HandlerResult = field(default_factory=lambda: HandlerResult(Snooze(0)))

    def result(self, outcome: Outcome) -> HandlerResult:
        self.collected.steps = self.results
        self.collected.outcome = outcome
        self.collected.runs = self.run
        self.collected.questions = self.asked
        self.collected.checkpoint = self.data
        return self.collected

    @property
    def results(self) -> dict[str, Any]:
        """The result of each step of the handler by its key."""
        return handler_steps(self.known_steps.values())

    # Checkpoints

    async def parents(self, job: int) -> list[Parent]:
        return self.known_parents

    async def spawn(self, job: ClaimedJob, key: str, type: str, fields: Mapping[str, Any]) -> int:
        from draftsman.jobs.requests.service.submissions import invocation

        request = invocation(type=type, **fields)
        content = f"{type} {json.dumps(request.payload)}"
        if key not in self.spawned:
            number = await self._jobs.spawn(key, type, fields)
            self.spawned[key] = (number, content, request.digest)
        number, before, digest = self.spawned[key]
        if digest != request.digest:
            raise OtherSpawn(key, number, before, content, request.digest)
        return number

    async def spawn_change(self, job: ClaimedJob, key: str) -> SpawnChange | None:
        for run, (kind, payload) in zip(
            reversed(self.event_runs), reversed(self.collected.events), strict=True
        ):
            is_spawn = kind == "content_changed" and payload["what"] == "spawn"
            if is_spawn and payload["key"] == key:
                return SpawnChange(run, payload["now"], payload["digest"])
        return None

    async def ended(self, job: ClaimedJob, numbers: Sequence[int]) -> list[Parent] | None:
        return await self._jobs.ended(numbers)

    @property
    def _jobs(self) -> SpawnedJobs:
        if self.jobs is None:
            raise DraftsmanError("run_handler spawns no jobs without `jobs`, which runs them")
        return self.jobs

    async def latest(self, job: int) -> tuple[dict[str, Any] | None, bytes | None]:
        return copy.deepcopy(self.data), self.bundle

    async def save(
        self,
        lease: Lease,
        data: dict[str, Any],
        bundle: bytes | None = None,
    ) -> None:
        self.data = clean_within_limit(data, CHECKPOINT_LIMIT, "a checkpoint")
        self.bundle = bundle
        self.checkpoint_runs.append(self.run)

    async def begin_step(
        self, lease: Lease, key: str, invocation_id: str | None, owner: Owner
    ) -> tuple[Step, bool]:
        new = key not in self.known_steps
        if new:
            step = Step(key, "pending", invocation_id or str(new_id()), None, owner)
            self.known_steps[key] = step
        return self.known_steps[key], new

    async def finish_step(self, lease: Lease, key: str, result: Any, owner: Owner) -> None:
        if key in self.lost_after:
            self.lost_after.remove(key)
            raise _WorkerLost
        result = json.loads(
            json.dumps(clean_within_limit(result, REQUEST_LIMIT, f"the result of {key!r}"))
        )
        self.known_steps[key] = replace(self.known_steps[key], status="done", result=result)
        self.step_runs[key] = self.run

    async def progress(
        self, job: int, *, limit: int
    ) -> tuple[Sequence[StepSummary], Sequence[CheckpointSummary]]:
        now = self.clock.now
        steps = [
            StepSummary(key, "done", run, None, now, now) for key, run in self.step_runs.items()
        ]
        return steps, [CheckpointSummary(run, 0, None, now) for run in self.checkpoint_runs]

    async def steps(self, job: int) -> Sequence[Step]:
        return list(self.known_steps.values())

    async def event(
        self, lease: Lease, kind: str, payload: dict[str, Any], *, unless_after: int | None = None
    ) -> int:
        self.collected.events.append((kind, copy.deepcopy(payload)))
        self.event_runs.append(self.run)
        return len(self.collected.events)

    async def artifact(self, lease: Lease, name: str, kind: str, data: bytes) -> None:
        self.collected.artifacts[name] = data

    async def patch(self, job: int, run: int | None = None) -> None:
        return None

    async def log(self, lease: Lease, seq: int, text: str, limit: int = 0, age: float = 0) -> bool:
        self.collected.log += text
        return True

    async def describe(
        self, lease: Lease, params: dict[str, Any], exit_code: int | None = None
    ) -> None:
        return None

    async def record(self, lease: Lease, amounts: dict[str, Any], *_: object) -> list[BudgetState]:
        self.collected.usage = amounts
        return []

    async def now(self) -> datetime:
        return self.clock.now

    # Outcomes and messages

    async def outcome(self, job: ClaimedJob, outcome: Snooze) -> None:
        if isinstance(outcome.until, datetime):
            self.clock.now = max(self.clock.now, outcome.until)
        else:
            self.clock.advance(outcome.until)

    async def notify(self, lease: Lease, key: str, targets: Sequence[str], text: str) -> list[int]:
        self.collected.messages.append((text, tuple(targets)))
        return [len(self.collected.messages)]

    # Questions

    def check(self, item: QuestionSpec, invoker: str) -> None:
        return None

    async def of_key(self, job: int, key: str) -> Question | None:
        current = [
            question
            for question in self.asked
            if question.key == key and question.status is not QuestionStatus.CANCELED
        ]
        return current[-1] if current else None

    async def of_job(self, job: int) -> tuple[list[Question], list[Any]]:
        return self.asked, []

    async def ask_all(
        self, lease: Lease, questions: Sequence[AskedQuestion], **_: object
    ) -> Sequence[str]:
        first = len(self.asked)
        for question in questions:
            self.asked.append(self._question(lease, first, question))
        return [recorded.name for recorded in self.asked[first:]]

    def _question(self, lease: Lease, first: int, question: AskedQuestion) -> Question:
        item = question.item
        length = item.expires_in
        alternative_to = question.alternative_to
        return Question(
            job=lease.job,
            ordinal=len(self.asked) + 1,
            run=self.run,
            key=item.key,
            kind=item.kind,
            status=QuestionStatus.OPEN,
            text=item.text,
            choices=[choice.model_dump() for choice in shown_choices(item, self.people)],
            freeform_allowed=item.freeform,
            answer_kind=item.answer_kind,
            context_snippet=item.context,
            approvers=list(item.approvers or ()),
            quorum=item.quorum,
            on_expire=item.on_expire,
            default_value=item.default,
            on_deny=item.on_deny,
            on_changes=item.on_changes,
            digest=item.digest,
            action=item.action,
            resolution=None,
            asked_at=self.clock.now,
            expires_at=None if length is None else self.clock.now + timedelta(seconds=length),
            answered_at=None,
            alternative_of=None if alternative_to is None else first + alternative_to,
        )

    def answer_open_questions(self) -> None:
        """Resolve the questions that the run was parked for, if any.

        Of alternatives, that whose key comes first in `answers` is answered.
        """
        open_questions = [item for item in self.asked if item.status is QuestionStatus.OPEN]
        for question in in_order_of_answers(open_questions, self.answers):
            if self.asked[question.ordinal - 1].status is QuestionStatus.OPEN:
                self._answer(question)

    def _answer(self, question: Question) -> None:
        status, resolution = _resolution(question, reply_to(question, self.answers))
        self._close(question, status, resolution)
        if fails_job(question, resolution):
            raise NotPermitted(f"question {question.key!r} was denied, so the job fails")
        for other in self.asked:
            alternative = other.alternative_of is not None
            if alternative and other.alternative_of == question.alternative_of:
                self._close(other, QuestionStatus.CANCELED, Resolution("canceled", "system"))

    def _close(self, question: Question, status: QuestionStatus, resolution: Resolution) -> None:
        if self.asked[question.ordinal - 1].status is QuestionStatus.OPEN:
            self.asked[question.ordinal - 1] = replace(
                question, status=status, resolution=resolution.as_json(), answered_at=self.clock.now
            )


def in_order_of_answers(questions: Iterable[Q], answers: Mapping[str, Reply]) -> list[Q]:
    """Return the questions in the order in which a test answers them."""
    keys = list(answers)
    return sorted(
        questions, key=lambda item: keys.index(item.key) if item.key in keys else len(keys)
    )


def reply_to(question: Question, answers: Mapping[str, Reply]) -> Reply:
    """Return the answer that a test has for a question; raises AssertionError without one."""
    if question.key not in answers:
        raise AssertionError(
            f"the handler asked {question.key!r} ({question.text}); add this key to answers"
        )
    return answers[question.key]


def unfit(question: Question, reason: object) -> AssertionError:
    """Return the error of an answer that the question does not take."""
    return AssertionError(f"the answer to {question.key!r} does not fit: {reason}")


def handler_steps(steps: Iterable[Step]) -> dict[str, Any]:
    """Return the result of each step of the handler itself by its key."""
    return {step.key: step.result for step in steps if step.owner == Owner.HANDLER}


def response_of(question: Question, value: str | bool | Deny | RequestChanges) -> Response:
    """Return the response that is an answer to a question."""
    event = f"test:{question.name}"
    if not isinstance(value, bool | Deny | RequestChanges):
        return Response(source_event_id=event, text=value)
    reason = None if isinstance(value, bool) else value.reason
    decision = Decision.APPROVE if value is True else Decision.DENY
    if isinstance(value, RequestChanges):
        decision = Decision.REQUEST_CHANGES
    return Response(source_event_id=event, decision=decision, reason=reason)


def _resolution(question: Question, value: Reply) -> tuple[QuestionStatus, Resolution]:
    """Resolve a question with an answer; raises AssertionError for one that does not fit."""
    if value is None:
        return _expired(question)
    response = response_of(question, value)
    try:
        check_kind(question, response)
        answer = None if response.text is None else parse_answer(question, response)
    except UsageError as error:
        raise unfit(question, error) from None
    if answer is not None:
        resolution = Resolution("answered", "person", answer.value, answer.text, by=(PERSON,))
    elif response.decision is not None:
        outcome = response.decision.outcome
        resolution = Resolution(outcome, "person", by=(PERSON,), reason=response.reason)
    return QuestionStatus.ANSWERED, resolution


def _expired(question: Question) -> tuple[QuestionStatus, Resolution]:
    match question.on_expire:
        case OnExpire.DEFAULT:
            resolution = Resolution("answered", "policy", value=question.default_value)
            return QuestionStatus.ANSWERED, resolution
        case OnExpire.CONTINUE:
            return QuestionStatus.EXPIRED, Resolution("expired", "policy")
    raise AnswerTimeout(f"question {question.key!r} expired, so the job expires")


class MemoryServices:
    """The services of a worker, all backed by the memory."""

    def __init__(self, settings: Settings, memory: Memory, schemas: SchemaChecker) -> None:
        self.settings = settings
        self.schemas = schemas
        self.checkpoints = memory
        self.changes = memory
        self.attachments = memory.attachments
        self.model_calls = memory
        self.asking = memory
        self.questions = memory
        self.settlement = memory
        self.outbox = memory
        self.workflows = memory
        self.thread_limit = ThreadLimit()

    @property
    def repos(self) -> Any:
        raise DraftsmanError("run_handler has no repositories; use a worker to test this handler")


def _claimed(run: int, payload: Mapping[str, Any], columns: Mapping[str, Any]) -> ClaimedJob:
    """Build a claimed job."""
    if unknown := columns.keys() - DEFAULTS.keys():
        raise TypeError(f"{min(unknown)} is not a column of a job; allowed: {', '.join(DEFAULTS)}")
    fields = {**DEFAULTS, **columns, "payload": payload}
    job = ClaimedJob((1, run, run, "running", ""))
    job.__dict__.update(copy.deepcopy(fields))
    return job
