"""Replays: today's code runs against what the runs of a job recorded, without effects.

The last run of an ended job is run again, and the next one of another job: with the answers, steps,
spawned jobs and the checkpoint that it found. Code outside of steps runs as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from draftsman.errors import UsageError
from draftsman.handlers.changed_content import changed_question
from draftsman.handlers.context import RunContext
from draftsman.handlers.handler_errors import handler_failure
from draftsman.handlers.registry import Handler
from draftsman.handlers.run_services import RunServices
from draftsman.ids import job_name
from draftsman.job_types.declaration import JobType
from draftsman.jobs.job import TERMINAL, Condition, Job, Status
from draftsman.jobs.reserved_names import NOW, Owner
from draftsman.jobs.runs.outcome import Cancel, Done, Outcome
from draftsman.jobs.runs.run import ClaimedJob, Lease
from draftsman.jobs.runs.saved_data import Step
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.questions.answer import as_text, parse_answer
from draftsman.questions.asked_question import AskedQuestion
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.testing.handler_runs import (
    DEADLINE,
    DEFAULTS,
    Clock,
    Memory,
    MemoryServices,
    run_once,
)
from draftsman.text import first_line
from draftsman.workflows.dependencies import Parent

if TYPE_CHECKING:
    from draftsman.client.asynchronous import Client
    from draftsman.runtime import Runtime

CHANGES: Final = 100
"""Maximum number of changed questions that a replay goes on after."""
SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class Replay:
    """What today's code does with a recorded job."""

    job: str
    """The name of the job: `D-142`."""
    ending: str
    """How it ends today: `completes`, or what it waits for or would do next."""
    differences: tuple[str, ...]
    """What it does in another way than the runs did; empty: it does the same."""


async def replay_job(rt: Runtime, handler: Handler, number: int) -> Replay:
    """Replay a job; raises NotFound."""
    job = await rt.read_model.job(number)
    memory = await _recorded(rt, job)
    run = memory.run
    async with SchemaChecker() as schemas:
        services = MemoryServices(rt.settings, memory, schemas)
        services.attachments = cast(Any, rt.attachments)
        for _ in range(CHANGES):
            memory.is_changed = False
            memory.stop = ""
            ctx = RunContext(_claimed(job, run), cast(RunServices, services), DEADLINE)
            ending = await _run(handler, ctx, memory, job)
            if not memory.is_changed:
                break
    return Replay(job.name, ending, tuple(memory.differences))


async def replay(
    client: Client, type: JobType[Any, Any] | Handler, name: str | None = None, *, last: int = 20
) -> list[Replay]:
    """Replay the last ended jobs of a type, the newest first, with today's code.

    `type` is what `@job` returns, or the handler of the type `name`. Raises UsageError without a
    name.
    """
    rt = client._rt
    if isinstance(type, JobType):
        name = name or type.name
    elif name is None:
        raise UsageError("replay() of a handler needs the name of its type")
    handler = type.handler() if isinstance(type, JobType) else type
    jobs = await rt.read_model.jobs(type=name, statuses=sorted(TERMINAL), limit=last)
    return [await replay_job(rt, handler, job.number) for job in jobs]


async def _run(handler: Handler, ctx: RunContext, memory: _Recorded, job: Job) -> str:
    """Return how a run ends; add its differences to the memory."""
    try:
        outcome = await run_once(handler, ctx)
    except _Stopped:
        return memory.stop
    except (Exception, asyncio.CancelledError) as error:
        failure = handler_failure(error, "")
        text = first_line(str(failure), SHOWN)
        if job.status in (Status.COMPLETED, Status.CANCELED) or text != first_line(
            job.last_error or "", SHOWN
        ):
            memory.differs(f"fails: {text}; the job {_ended(job)}")
        return f"fails: {text}"
    if outcome is None:
        return memory.stop or "waits for a time or for jobs"
    memory.check_unused()
    if not _is_same(outcome, job):
        shown = outcome.result if isinstance(outcome, Done) else outcome
        memory.differs(f"returns {first_line(str(shown), SHOWN)}; the job {_ended(job)}")
    return "completes" if isinstance(outcome, Done) else type(outcome).__name__.lower()


def _is_same(outcome: Outcome, job: Job) -> bool:
    if isinstance(outcome, Done):
        return job.status is Status.COMPLETED and outcome.result == (job.result or {})
    return not isinstance(outcome, Cancel) or job.status is Status.CANCELED


def _ended(job: Job) -> str:
    if job.status is Status.COMPLETED:
        return f"returned {first_line(str(job.result or {}), SHOWN)}"
    error = f": {first_line(job.last_error, SHOWN)}" if job.last_error else ""
    return f"is {job.status}{error}"


class _Stopped(BaseException):
    """The handler would do what no run did."""


@dataclass(slots=True)
class _Recorded(Memory):
    """What the runs of a job recorded; it takes no effects."""

    children: Mapping[str, Job] = field(default_factory=dict)
    """The spawned jobs by key."""
    has_checkpoint: bool = False
    differences: dict[str, None] = field(default_factory=dict)
    """Each once, in the order of the handler."""
    stop: str = ""
    """Where the handler cannot go on."""
    is_changed: bool = False
    """Whether a changed question got the recorded answer, for another run."""
    used: set[tuple[str, str]] = field(default_factory=set)
    """The questions and steps that the handler came to."""

    def differs(self, text: str) -> None:
        """Note a difference."""
        self.differences[text] = None

    def _stop(self, does: str, *, is_new: bool = True) -> _Stopped:
        self.stop = does
        if is_new:
            self.differs(f"{does}, which no run did")
        return _Stopped()

    def check_unused(self) -> None:
        """Note what the runs did and today's code does not; after a checkpoint it may not."""
        if self.has_checkpoint:
            return
        done = [("question", question.key) for question in self.asked]
        done += [
            ("step", step.key)
            for step in self.known_steps.values()
            if step.status == "done" and step.owner == Owner.HANDLER
        ]
        missing = [each for each in done if each not in self.used]
        for what, key in missing:
            self.differs(f"leaves out the {what} {key!r}")

    async def begin_step(
        self, lease: Lease, key: str, invocation_id: str | None, owner: Owner
    ) -> tuple[Step, bool]:
        self.used.add(("step", key))
        step = self.known_steps.get(key)
        if step is not None and step.status == "done":
            return step, False
        if key.startswith(NOW):
            return await Memory.begin_step(self, lease, key, invocation_id, owner)
        raise self._stop(f"runs the step {key!r}", is_new=step is None)

    async def of_key(self, job: int, key: str) -> Question | None:
        self.used.add(("question", key))
        return await Memory.of_key(self, job, key)

    async def of_job(self, job: int) -> tuple[list[Question], list[Any]]:
        return [], []

    def check(self, item: QuestionSpec, invoker: str) -> None:
        recorded = next((each for each in self.asked if each.key == item.key), None)
        what = "approval" if item.kind is QuestionKind.APPROVAL else "question"
        if recorded is None:
            text = first_line(item.text, SHOWN)
            self.differs(f"asks the {what} {item.key!r}, which no run did: {text!r}")
        elif recorded.digest != item.digest:
            change = changed_question(item, recorded)
            before, now = (first_line(text, SHOWN) for text in (change.before, change.now))
            self.differs(
                f"asks the {what} {item.key!r} with another content: {before!r}, now {now!r}"
            )

    async def ask_all(
        self, lease: Lease, questions: Sequence[AskedQuestion], **_: object
    ) -> Sequence[str]:
        for question in questions:
            self._give_recorded_answer(lease, question)
        return []

    def _give_recorded_answer(self, lease: Lease, question: AskedQuestion) -> None:
        """Let the next run get the recorded answer to a changed question, if it still fits."""
        item = question.item
        place = next((n for n, each in enumerate(self.asked) if each.key == item.key), None)
        recorded = None if place is None else self.asked[place]
        if place is None or recorded is None or recorded.status is QuestionStatus.OPEN:
            self.stop = f"waits for the answer to {item.key!r}"
            return
        now = replace(self._question(lease, 0, question), ordinal=recorded.ordinal)
        answer = (recorded.resolution or {}).get("value") or as_text(now, recorded.answer_text())
        if item.kind is QuestionKind.INPUT and answer:
            try:
                parse_answer(now, Response(source_event_id="replay", text=answer))
            except UsageError as error:
                self.stop = f"asks {item.key!r} again: the recorded answer does not fit: {error}"
                return
        self.asked[place] = replace(now, status=recorded.status, resolution=recorded.resolution)
        self.is_changed = True

    async def spawn(self, job: ClaimedJob, key: str, type: str, fields: Mapping[str, Any]) -> int:
        from draftsman.jobs.requests.service.submissions import invocation

        child = self.children.get(key)
        if child is None:
            raise self._stop(f"spawns {key!r}")
        if invocation(type=type, **fields).digest != child.request_digest:
            self.differs(f"spawns {key!r} by another request than {child.name}")
        return child.number

    async def ended(self, job: ClaimedJob, jobs: Sequence[int]) -> list[Parent] | None:
        children = {child.number: child for child in self.children.values()}
        gathered = [children[number] for number in jobs]
        if any(child.status not in TERMINAL for child in gathered):
            return None
        return [_as_parent(child) for child in gathered]

    async def gather(self, job: ClaimedJob, jobs: Sequence[int]) -> list[Parent] | None:
        self.stop = f"waits for {', '.join(job_name(number) for number in jobs)}"
        return None


async def _recorded(rt: Runtime, job: Job) -> _Recorded:
    """Read what the runs of a job recorded."""
    run = max(job.run_count, 1) if job.status in TERMINAL else job.run_count + 1
    questions, _ = await rt.questions.of_job(job.number)
    valid = (QuestionStatus.ANSWERED, QuestionStatus.EXPIRED, QuestionStatus.OPEN)
    steps = await rt.checkpoints.steps(job.number)
    data, bundle = await rt.checkpoints.latest(job.number, before_run=run)
    tree = await rt.workflows.tree(job.number)
    spawned = [await rt.read_model.job(each.number) for each in tree.jobs[1:]]
    prefix = f"spawn:{job.number}:"
    return _Recorded(
        answers={},
        lost_after=set(),
        clock=Clock(datetime.now(UTC)),
        known_parents=list(await rt.workflows.parents(job.number)),
        people=rt.policy.people,
        run=run,
        data=data,
        bundle=bundle,
        has_checkpoint=data is not None,
        known_steps={step.key: step for step in steps},
        asked=[question for question in questions if question.status in valid],
        children={
            child.idempotency_key.removeprefix(prefix): child
            for child in spawned
            if child.idempotency_key.startswith(prefix)
        },
    )


def _claimed(job: Job, run: int) -> ClaimedJob:
    claimed = ClaimedJob((job.number, run, run, "running", ""))
    names = (*DEFAULTS, "payload")
    claimed.__dict__.update({name: getattr(job, name) for name in names})
    return claimed


def _as_parent(job: Job) -> Parent:
    return Parent(
        number=job.number,
        condition=Condition.ANY,
        met=True,
        status=job.status,
        type=job.type,
        title=job.own_title,
        result=job.result,
        error=job.last_error,
    )
