"""Actions on jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from draftsman.actions.action import (
    EVERYWHERE,
    REASON,
    TEXTS,
    UNDO,
    About,
    Action,
    ActionResult,
    Arguments,
    Call,
    Subject,
    Surface,
    action,
    listed,
)
from draftsman.deliveries.documents.document import KEPT, LABELS
from draftsman.deliveries.documents.document import Action as Control
from draftsman.errors import CommandHint, Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.ids import JobRef, job_name, parse_job, unknown_job
from draftsman.jobs.fits import (
    CANCELABLE,
    DISMISSABLE,
    MESSAGED,
    MOVABLE,
    PAUSABLE,
    PRIORITIZED,
    RETRYABLE,
    UNDISMISSABLE,
)
from draftsman.jobs.job import TERMINAL, WAITING, Status
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.jobs.status_display import STATUSES
from draftsman.people.policy import Verb
from draftsman.text import first_line, humanize
from draftsman.workflows.groups import group_ended

if TYPE_CHECKING:
    from draftsman.jobs.control.job_message import SentMessage
    from draftsman.jobs.control.service.control import CancelResult, DismissResult, PauseResult
    from draftsman.jobs.job_summary import FinishedJob, JobSummary
    from draftsman.jobs.requests.invocation import FileRef
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.queues.service.queues import Place
    from draftsman.runtime import Runtime

RETRY_OPTIONS: Final = ("fresh", "again", "with-answer")
MAX_TITLE: Final = 60
"""Characters of the title of a job in a question."""


@action(
    About.JOB,
    label=LABELS[Control.CANCEL],
    right=Verb.CANCEL,
    fits=CANCELABLE,
    takes=REASON,
    question="Cancel {}?",
    consequence=KEPT,
    destroys=True,
    progress="Canceling",
    undo=UNDO,
    surfaces=EVERYWHERE,
)
async def cancel(
    call: Call, job: int, reason: str = "", *, force: bool = False
) -> ActionResult[CancelResult | PendingDecision]:
    """Cancel a job."""
    try:
        result = await call.rt.pending_decisions.cancel(
            job,
            call.actor,
            reason or None,
            force=force,
            event=call.event or str(uuid4()),
            window=call.window,
        )
    except Refused:
        status = (await call.rt.read_model.job(job)).status
        if call.event is None or status is not Status.CANCELED:
            raise
        from draftsman.jobs.control.service.control import CancelResult

        result = CancelResult(job, status, requested=False)
        return ActionResult("already canceled", result)
    return (
        ActionResult("canceled", result)
        if isinstance(result, PendingDecision)
        else canceled(result)
    )


def canceled(result: CancelResult) -> ActionResult[CancelResult]:
    """Return what the cancel of a job did."""
    name = job_name(result.number)
    if result.requested:
        wait = CommandHint("wait", name, lead="to wait")
        return ActionResult("asked to stop", result, then=wait, subject=name)
    return ActionResult("canceled", result, subject=name)


def canceled_all(results: list[CancelResult], subject: str) -> ActionResult[list[CancelResult]]:
    """Return what the cancel of several jobs did."""
    parts = []
    for is_requested, says in ((False, "canceled"), (True, "asked to stop")):
        numbers = [result.number for result in results if result.requested is is_requested]
        parts += [f"{says}: {job_names(numbers)}"] if numbers else []
    return ActionResult("; ".join(parts), results, subject=subject)


async def dependents(call: Call, job: int, **_: object) -> Subject:
    """Return a job and the number of those that wait for it, directly or not."""
    total = (await call.rt.workflows.tree(job, 1)).total
    count = "the job that waits" if total == 2 else f"the {total - 1:,} jobs that wait"
    return Subject(job_name(job) + (f" and {count} for it" if total > 1 else ""))


@action(
    About.JOB,
    right=Verb.CANCEL,
    takes=REASON,
    question="Cancel {}?",
    consequence=KEPT,
    destroys=True,
    check=dependents,
)
async def cancel_tree(call: Call, job: int, reason: str = "") -> ActionResult[list[CancelResult]]:
    """Cancel a job and all that wait for it."""
    results = await call.rt.job_control.cancel_tree(job, call.actor, reason or None)
    return canceled_all(results, f"{job_name(job)} and all that wait for it")


async def unfinished_jobs(call: Call, group: str, **_: object) -> Subject:
    """Return the unfinished jobs of a group; raises Refused if there are none."""
    details = await call.rt.workflows.groups.get(group)
    if not (unfinished := details.running + details.waiting):
        raise group_ended(group)
    return Subject(f"{counted(unfinished, 'unfinished job')} of the group {group!r}")


@action(
    About.GROUP,
    name="cancel",
    label="Cancel group",
    right=Verb.CANCEL,
    takes=REASON,
    question="Cancel {}?",
    consequence=f"{KEPT} Jobs that are added later are canceled at once.",
    destroys=True,
    guarded=True,
    check=unfinished_jobs,
)
async def cancel_group(
    call: Call, group: str, reason: str = ""
) -> ActionResult[list[CancelResult]]:
    """Cancel the unfinished jobs of a group."""
    results = await call.rt.job_control.cancel_group(group, call.actor, reason or None)
    return canceled_all(results, f"group {group!r}")


@action(
    About.JOB,
    right=Verb.PAUSE,
    fits=PAUSABLE,
    takes=Arguments("REASON", REASON.parse, "Reason for the pause of {}?", "the API is down"),
    progress="Pausing",
    undo="resume",
    check=lambda call, job, **_: call.rt.job_control.check_pause(job, call.actor),
    surfaces=TEXTS,
)
async def pause(call: Call, job: int, reason: str) -> ActionResult[PauseResult]:
    """Pause a job at its checkpoint."""
    if not reason.strip():
        raise UsageError(f"a pause needs a reason: pause {job_name(job)} REASON")
    result = await call.rt.job_control.pause(job, call.actor, reason, event=call.event)
    detail = ("; its worker parks it",) if result.status is Status.RUNNING else ()
    return ActionResult("paused", result, detail, resume_hint(job))


@action(
    About.JOB,
    right=Verb.PAUSE,
    progress="Resuming",
    undo="pause",
    surfaces=TEXTS,
)
async def resume(call: Call, job: int) -> ActionResult[PauseResult]:
    """Continue a paused job."""
    result = await call.rt.job_control.resume(job, call.actor, event=call.event)
    if result.status in TERMINAL:
        return ActionResult(STATUSES[result.status].predicate, result, ("; nothing to resume",))
    detail = ("; it waits for an answer",) if result.status in WAITING else ()
    return ActionResult("resumed", result, detail)


def resume_hint(job: int) -> CommandHint:
    """Return how to continue a paused job."""
    return CommandHint("resume", job_name(job), lead="to resume it")


@action(
    About.JOB,
    right=Verb.TELL,
    fits=MESSAGED,
    takes=Arguments(
        "TEXT", lambda text: {"text": text}, "Message to the agent of {}?", "use the v2 API"
    ),
    check=lambda call, job, **_: call.rt.messages.check(job, call.actor),
    surfaces=TEXTS,
)
async def tell(
    call: Call, job: int, text: str, *, key: str | None = None, files: Sequence[FileRef] = ()
) -> ActionResult[SentMessage]:
    """Send a message to the agent of a job."""
    sent = await call.rt.messages.send(
        job, call.actor, text, event=call.event, key=key, attachments=files
    )
    return ActionResult(sent.says, sent, subject=sent.subject)


def parse_retry(text: str) -> dict[str, bool]:
    """Parse `fresh again with-answer`, also with dashes before them; raises UsageError."""
    words = [word.lstrip("-\u2013\u2014").casefold() for word in text.split()]
    if unknown := [word for word in words if word not in RETRY_OPTIONS]:
        raise UsageError(f"unknown argument {unknown[0]!r}; allowed: {', '.join(RETRY_OPTIONS)}")
    return {word.replace("-", "_"): True for word in words}


@action(
    About.JOB,
    right=Verb.RETRY,
    fits=RETRYABLE,
    takes=Arguments("[fresh] [again] [with-answer]", parse_retry),
    question="Retry {}?",
    consequence="Continues as a new job from the last checkpoint.",
    progress="Retrying",
    surfaces=EVERYWHERE,
)
async def retry(
    call: Call,
    job: int,
    *,
    fresh: bool = False,
    again: bool = False,
    with_answer: bool = False,
    alone: bool = False,
) -> ActionResult[SubmittedJob]:
    """Retry a finished job from its last checkpoint."""
    new = await call.rt.job_control.retry(
        job, call.actor, fresh=fresh, again=again, with_answer=with_answer, alone=alone
    )
    says = "retried" if new.outcome == "created" else "already retried"
    return ActionResult(says, new, (f" as {new.name}",))


@action(
    About.JOB,
    label=LABELS[Control.DISMISS],
    right=Verb.DISMISS,
    fits=DISMISSABLE,
    takes=REASON,
    question="Dismiss {}?",
    consequence="Failures that are dismissed no longer need a person; they and their events stay.",
    progress="Dismissing",
    undo="undismiss",
    surfaces=EVERYWHERE,
)
async def dismiss(call: Call, job: int, reason: str = "") -> ActionResult[DismissResult]:
    """Take a failure out of attention."""
    result = await call.rt.job_control.dismiss(job, call.actor, reason or None, event=call.event)
    hint = CommandHint("undismiss", job_name(job), lead="to take it back")
    if result.changed or result.dismissal is None:
        return ActionResult("dismissed", result, then=hint)
    return ActionResult("was already dismissed", result, (f" {result.dismissal}",), hint)


@action(
    About.JOB,
    label="Take dismissal back",
    right=Verb.DISMISS,
    fits=UNDISMISSABLE,
    consequence="They count again as failures that need a person, unless they were retried.",
    progress="Taking back",
    undo="dismiss",
    surfaces=TEXTS | {Surface.PAGES},
)
async def undismiss(call: Call, job: int) -> ActionResult[DismissResult]:
    """Take the dismissal of a failure back."""
    result = await call.rt.job_control.undismiss(job, call.actor, event=call.event)
    return ActionResult("undismissed", result)


@dataclass(frozen=True, slots=True)
class MovedJob:
    """A job that was moved, and the job next to which it is now, if it was named."""

    number: int
    place: Place
    anchor: int | None
    priority: int


ENDS: Final[Mapping[str, Place]] = {"top": "top", "bottom": "bottom"}
SIDES: Final[Mapping[str, Place]] = {"before": "before", "after": "after"}


def parse_move(text: str) -> dict[str, Any]:
    """Parse `top`, `bottom`, `before D-2` or `after D-2`; raises UsageError."""
    word, _, name = text.strip().partition(" ")
    if word in ENDS and not name:
        return {"place": ENDS[word]}
    if word in SIDES and name.strip():
        return {"place": SIDES[word], "anchor": parse_job(name.strip())}
    raise UsageError("move: enter top, bottom, before D-2 or after D-2")


@action(
    About.JOB,
    right=Verb.ORDER,
    fits=MOVABLE,
    takes=Arguments("top|bottom|before D-2|after D-2", parse_move, "Move {} where?", "before D-2"),
)
async def move(
    call: Call, job: int, place: Place, anchor: JobRef | None = None
) -> ActionResult[MovedJob]:
    """Move a queued job in its queue."""
    other = None if anchor is None else await call.rt.read_model.resolve(anchor)
    await call.rt.queues.move(job, place, call.actor, other)
    moved = await call.rt.read_model.job(job)
    where = f"{place} {job_name(other)}" if other else f"to the {place} of the queue {moved.queue}"
    value = MovedJob(job, place, other, moved.priority)
    return ActionResult(f"moved {where}", value, (f", with priority {moved.priority}",))


def parse_priority(text: str) -> dict[str, int]:
    """Parse a priority; raises UsageError."""
    try:
        return {"priority": int(text)}
    except ValueError:
        raise UsageError(f"priority {text[:20]!r}: expected a whole number") from None


@action(
    About.JOB,
    right=Verb.ORDER,
    fits=PRIORITIZED,
    takes=Arguments("NUMBER", parse_priority, "Priority of {}, from -1000 to 1000?", "0"),
    progress="Prioritizing",
)
async def priority(call: Call, job: int, priority: int) -> ActionResult[dict[str, int]]:
    """Change the priority of a job that has not started."""
    await call.rt.queues.prioritize(job, priority, call.actor)
    return ActionResult(f"set to priority {priority}", {"number": job, "priority": priority})


# The jobs that an action is about, and the question before it.


@dataclass(frozen=True, slots=True)
class Selection:
    """Jobs that an action fits, with their statuses, and the others that a person selected."""

    action: Action[int, ..., Any]
    statuses: Mapping[int, Status]
    others: Sequence[int] = ()
    titles: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, action: Action[int, ..., Any], jobs: Sequence[JobSummary | FinishedJob]
    ) -> Selection:
        """Return jobs that match a filter, all of which the action fits."""
        titles = {job.number: title_of(job) for job in jobs}
        return cls(action, {job.number: job.status for job in jobs}, titles=titles)

    @property
    def numbers(self) -> list[int]:
        """The jobs that the action fits."""
        return [*self.statuses]

    @property
    def kinds(self) -> str:
        """The number of jobs in each status: `2 queued, 1 running`."""
        counts = Counter(map(humanize, self.statuses.values()))
        if len(self.statuses) == 1:
            return next(iter(counts))
        return ", ".join(f"{count:,} {status}" for status, count in counts.items())

    @property
    def question(self) -> str:
        """The question before the action: `Cancel 2 of 3 jobs?`."""
        names = [*map(job_name, self.statuses)]
        return self.action.asks(names, of=len(names) + len(self.others))

    def note(self, consequence: str = "") -> str:
        """Return what the question is about, and what follows."""
        numbers = self.numbers
        subject = self.titles[numbers[0]] if len(numbers) == 1 else job_names(numbers)
        others = f" Without {job_names(self.others)}." if self.others else ""
        return f"{subject}: {self.kinds}.{others} {consequence or self.action.consequence}".strip()

    @property
    def lines(self) -> list[str]:
        """A line for each of several jobs: its name, status and title."""
        if len(self.statuses) < 2:
            return []
        return [
            f"{job_name(number)}  {humanize(status)}  {self.titles[number]}"
            for number, status in self.statuses.items()
        ]


async def select(rt: Runtime, action: Action[int, ..., Any], numbers: Sequence[int]) -> Selection:
    """Return the jobs that an action fits; raises Refused if it fits none."""
    jobs = await rt.read_model.jobs(numbers=numbers, limit=len(numbers))
    by_number = {job.number: job for job in jobs}
    if missing := [number for number in numbers if number not in by_number]:
        raise unknown_job(missing[0])
    problems = {number: action.problem(by_number[number]) for number in numbers}
    others = [number for number, problem in problems.items() if problem]
    fitting = [by_number[number] for number, problem in problems.items() if not problem]
    if not fitting:
        raise _none_fits(problems)
    return replace(Selection.of(action, fitting), others=others)


def _none_fits(problems: Mapping[int, str]) -> Refused:
    """Return the error for jobs of which an action fits none."""
    names = job_names([*problems])
    first, problem = next(iter(problems.items()))
    if len(problems) == 1:
        return Refused(problem, subject=names)
    if len(set(problems.values())) == 1:
        return Refused(problem, subject=f"each of {names}")
    return Refused(problem, subject=f"none of {names} fits: {job_name(first)}")


def title_of(job: JobSummary | FinishedJob) -> str:
    """Return the title of a job, or its type."""
    return first_line(job.title, MAX_TITLE)


def job_names(numbers: Sequence[int]) -> str:
    """Return the names of the first jobs and the number of the rest."""
    return listed([*map(job_name, numbers)])
