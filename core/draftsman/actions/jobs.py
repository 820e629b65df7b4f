"""Actions on jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from draftsman.actions.action import (
    UNDO,
    About,
    Action,
    ActionResult,
    Call,
    Surface,
    action,
    listed,
)
from draftsman.deliveries.documents.document import KEPT, LABELS
from draftsman.deliveries.documents.document import Action as Control
from draftsman.errors import CommandHint, Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.ids import job_name
from draftsman.jobs.fits import CANCELABLE, MESSAGED, MOVABLE, PAUSABLE, PRIORITIZED, RETRYABLE
from draftsman.jobs.job import WAITING, Status
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.people.policy import Verb
from draftsman.text import first_line, humanize

if TYPE_CHECKING:
    from draftsman.jobs.control.job_message import SentMessage
    from draftsman.jobs.control.service.control import CancelResult, PauseResult
    from draftsman.jobs.job import Job
    from draftsman.jobs.job_summary import FinishedJob, JobSummary
    from draftsman.jobs.requests.invocation import FileRef
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.queues.service.queues import Place
    from draftsman.runtime import Runtime

TERMINALS: Final = frozenset({Surface.COMMANDS, Surface.DASHBOARD})
RETRY_OPTIONS: Final = ("fresh", "again", "with-answer")
MAX_TITLE: Final = 60
"""Characters of the title of a job in a question."""


@action(
    About.JOB,
    label=LABELS[Control.CANCEL],
    right=Verb.CANCEL,
    fits=CANCELABLE,
    arguments="[REASON]",
    question="Cancel {}?",
    consequence=KEPT,
    destroys=True,
    progress="Canceling",
    undo=UNDO,
    parse=lambda text: {"reason": text},
    surfaces=TERMINALS | {Surface.CHAT, Surface.CONTROLS},
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
        return ActionResult(job_name(job), "already canceled", result)
    if isinstance(result, PendingDecision):
        return ActionResult(job_name(job), "canceled", result)
    return canceled(result)


def canceled(result: CancelResult) -> ActionResult[CancelResult]:
    """Return what the cancel of a job did."""
    name = job_name(result.number)
    if result.requested:
        wait = CommandHint("wait", name, lead="to wait")
        return ActionResult(name, "asked to stop", result, then=wait)
    return ActionResult(name, "canceled", result)


async def cancel_tree(call: Call, job: int, reason: str = "") -> list[ActionResult[CancelResult]]:
    """Cancel a job and all that wait for it."""
    results = await call.rt.job_control.cancel_tree(job, call.actor, reason or None)
    return [canceled(result) for result in results]


@action(
    About.GROUP,
    name="cancel",
    label="Cancel group",
    right=Verb.CANCEL,
    arguments="[REASON]",
    question="Cancel {}?",
    consequence=f"{KEPT} Jobs that are added later are canceled at once.",
    destroys=True,
    guarded=True,
    surfaces=TERMINALS,
)
async def cancel_group(
    call: Call, group: str, reason: str = ""
) -> ActionResult[list[CancelResult]]:
    """Cancel the unfinished jobs of a group."""
    results = await call.rt.job_control.cancel_group(group, call.actor, reason or None)
    stopping = sum(result.requested for result in results)
    says = f"canceled: {counted(len(results) - stopping, 'job')}"
    detail = (f"; {stopping:,} asked to stop",) if stopping else ()
    return ActionResult(f"group {group!r}", says, results, detail)


@action(
    About.JOB,
    right=Verb.PAUSE,
    fits=PAUSABLE,
    arguments="REASON",
    prompt="Reason for the pause of {}?",
    example="the API is down",
    progress="Pausing",
    undo="resume",
    check=lambda call, job: call.rt.job_control.check_pause(job, call.actor),
    parse=lambda text: {"reason": text},
    surfaces=TERMINALS | {Surface.CHAT},
)
async def pause(call: Call, job: int, reason: str) -> ActionResult[PauseResult]:
    """Pause a job at its checkpoint."""
    name = job_name(job)
    if not reason.strip():
        raise UsageError(f"a pause needs a reason: pause {name} REASON")
    result = await call.rt.job_control.pause(job, call.actor, reason, event=call.event)
    detail = ("; its worker parks it",) if result.status is Status.RUNNING else ()
    return ActionResult(name, "paused", result, detail, resume_hint(job))


@action(
    About.JOB,
    right=Verb.PAUSE,
    progress="Resuming",
    undo="pause",
    surfaces=TERMINALS | {Surface.CHAT},
)
async def resume(call: Call, job: int) -> ActionResult[PauseResult]:
    """Continue a paused job."""
    result = await call.rt.job_control.resume(job, call.actor, event=call.event)
    detail = ("; it waits for an answer",) if result.status in WAITING else ()
    return ActionResult(job_name(job), "resumed", result, detail)


def resume_hint(job: int) -> CommandHint:
    """Return how to continue a paused job."""
    return CommandHint("resume", job_name(job), lead="to resume it")


@action(
    About.JOB,
    right=Verb.TELL,
    fits=MESSAGED,
    arguments="TEXT",
    prompt="Message to the agent of {}?",
    example="use the v2 API",
    check=lambda call, job: call.rt.messages.check(job, call.actor),
    parse=lambda text: {"text": text},
    surfaces=TERMINALS | {Surface.CHAT},
)
async def tell(
    call: Call, job: int, text: str, *, key: str | None = None, files: Sequence[FileRef] = ()
) -> ActionResult[SentMessage]:
    """Send a message to the agent of a job."""
    sent = await call.rt.messages.send(
        job, call.actor, text, event=call.event, key=key, attachments=files
    )
    return ActionResult("", str(sent), sent)


def parse_retry(text: str) -> dict[str, bool]:
    """Parse `fresh again with-answer`, also with dashes before them; raises UsageError."""
    words = [word.lstrip("-\u2013\u2014").casefold() for word in text.split()]
    if unknown := [word for word in words if word not in RETRY_OPTIONS]:
        raise UsageError(f"unknown argument {unknown[0]!r}; allowed: {', '.join(RETRY_OPTIONS)}")
    return {word.replace("-", "_"): True for word in words}


@action(
    About.JOB,
    right=Verb.RETRY,
    arguments="[fresh] [again] [with-answer]",
    fits=RETRYABLE,
    question="Retry {}?",
    consequence="Continues as a new job from the last checkpoint.",
    progress="Retrying",
    parse=parse_retry,
    surfaces=TERMINALS | {Surface.CHAT, Surface.CONTROLS},
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
    return ActionResult(job_name(job), says, new, (f" as {new.name}",))


@dataclass(frozen=True, slots=True)
class MovedJob:
    """A job that was moved, and the job next to which it is now, if it was named."""

    number: int
    place: Place
    anchor: int | None
    priority: int


@action(
    About.JOB,
    right=Verb.ORDER,
    fits=MOVABLE,
    arguments="top|bottom|before D-2|after D-2",
    surfaces=TERMINALS,
)
async def move(
    call: Call, job: int, place: Place, anchor: int | None = None
) -> ActionResult[MovedJob]:
    """Move a queued job in its queue."""
    await call.rt.queues.move(job, place, call.actor, anchor)
    moved = await call.rt.read_model.job(job)
    where = (
        f"{place} {job_name(anchor)}" if anchor else f"to the {place} of the queue {moved.queue}"
    )
    value = MovedJob(job, place, anchor, moved.priority)
    return ActionResult(moved.name, f"moved {where}", value, (f", with priority {moved.priority}",))


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
    arguments="NUMBER",
    prompt="Priority of {}, from -1000 to 1000?",
    example="0",
    parse=parse_priority,
    progress="Prioritizing",
    surfaces=TERMINALS,
)
async def priority(call: Call, job: int, priority: int) -> ActionResult[dict[str, int]]:
    """Change the priority of a job that has not started."""
    await call.rt.queues.prioritize(job, priority, call.actor)
    data = {"number": job, "priority": priority}
    return ActionResult(job_name(job), f"set to priority {priority}", data)


# The jobs that an action is about, and the question before it.


@dataclass(frozen=True, slots=True)
class Selection:
    """Jobs that an action fits, with their statuses, and the others that a person selected."""

    action: Action[int, ..., Any]
    statuses: Mapping[int, Status]
    others: Sequence[int] = ()
    title: str = ""
    """The title of a single job."""

    @classmethod
    def of(
        cls, action: Action[int, ..., Any], jobs: Sequence[JobSummary | FinishedJob]
    ) -> Selection:
        """Return jobs that match a filter, all of which the action fits."""
        title = title_of(jobs[0]) if len(jobs) == 1 else ""
        return cls(action, {job.number: job.status for job in jobs}, title=title)

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
        subject = self.title if len(self.statuses) == 1 else job_names(self.numbers)
        others = f" Without {job_names(self.others)}." if self.others else ""
        return f"{subject}: {self.kinds}.{others} {consequence or self.action.consequence}".strip()


async def select(rt: Runtime, action: Action[int, ..., Any], numbers: Sequence[int]) -> Selection:
    """Return the jobs that an action fits; raises Refused if it fits none."""
    statuses = {number: (await rt.read_model.version(number)).status for number in numbers}
    fits = action.fits.statuses if action.fits is not None else frozenset(Status)
    fitting = {number: status for number, status in statuses.items() if status in fits}
    others = [number for number in statuses if number not in fitting]
    if not fitting and action.fits is not None:
        name = job_names(others)
        raise action.fits.refusal(f"each of {name}" if others[1:] else name, statuses[others[0]])
    title = ""
    if len(fitting) == 1:
        job = await rt.read_model.job(next(iter(fitting)))
        title = title_of(job)
    return Selection(action, fitting, others, title)


def title_of(job: Job | JobSummary | FinishedJob) -> str:
    """Return the title of a job, or its type."""
    return first_line(job.ticket_title or job.type, MAX_TITLE)


def job_names(numbers: Sequence[int]) -> str:
    """Return the names of the first jobs and the number of the rest."""
    return listed([*map(job_name, numbers)])
