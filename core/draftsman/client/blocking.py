"""Blocking client, for programs without an event loop.

Do not edit: `python -m tests.core.client.write_blocking` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack

from draftsman.agent_runs.activity.activity import ActivityRow
from draftsman.attention.attention import ReminderDelay
from draftsman.client.asynchronous import HOUR, Cursor
from draftsman.client.loop_thread import LoopThread
from draftsman.client.requests import Fields, JobName, Request
from draftsman.costs.budgets import BudgetUse, Cost
from draftsman.database.caller_connection import CallersConnection
from draftsman.events.event import Event
from draftsman.jobs.control.job_message import SentMessage
from draftsman.jobs.control.service.control import CancelResult, DismissResult, PauseResult
from draftsman.jobs.details.wait_reason import WaitReason
from draftsman.jobs.job import Job
from draftsman.jobs.job_summary import JobFilters, JobSummary
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.jobs.runs.saved_data import Artifact, LogChunk
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Question
from draftsman.queues.queue_models import QueuedJob, QueueSummary
from draftsman.queues.service.queues import Place
from draftsman.queues.usage_limits import LimitUse
from draftsman.schedules.schedule import Fire, Schedule
from draftsman.schedules.template import Template
from draftsman.workflows.dependencies import JobTree
from draftsman.workflows.groups import GroupMember, JobGroup


class BlockingClient(LoopThread):
    """An open connection; `with Draftsman() as client` returns it.

    The actor is the operating-system user, or on a remote server the database role, as for the
    command line. Every method may raise NotPermitted and DatabaseUnreachable.

    It is the blocking form of `Client`. Any thread may call its methods.
    """

    def queues(self) -> list[QueueSummary]:
        """Return the queues that have jobs, a pause, a reservation or a live worker."""
        return self._run(self._client.queues())

    def limits(self) -> list[LimitUse]:
        """Return each configured limit, and each value that has a limit in use, by name."""
        return self._run(self._client.limits())

    def budgets(self) -> list[BudgetUse]:
        """Return the budgets with their use today, and those of unfinished jobs, by name."""
        return self._run(self._client.budgets())

    def costs(self, by: str = "repo", since: float = 7 * 86400) -> list[Cost]:
        """Return the costs of the last days by repo, person, agent, model or day.

        `since` is in seconds. Raises UsageError.
        """
        return self._run(self._client.costs(by, since))

    def pause_queue(
        self, queue: str, reason: str, *, type: str | None = None, unchecked: bool = False
    ) -> None:
        """Pause a queue, or a type in it; raises Refused if it is paused.

        Raises NotFound or UsageError if the queue or the type is not known, unless `unchecked`.
        """
        self._run(self._client.pause_queue(queue, reason, type=type, unchecked=unchecked))

    def resume_queue(self, queue: str, *, type: str | None = None) -> None:
        """End a pause; raises Refused if the queue or type is not paused."""
        self._run(self._client.resume_queue(queue, type=type))

    def drain_queue(
        self,
        queue: str,
        reason: str = "draining",
        *,
        type: str | None = None,
        timeout: float | None = None,
        unchecked: bool = False,
    ) -> None:
        """Pause a queue, or a type in it, and return once none of its jobs runs.

        Raises TimeoutError after `timeout` seconds; the queue stays paused. Unknown names are
        refused as by `pause_queue`.
        """
        self._run(
            self._client.drain_queue(queue, reason, type=type, timeout=timeout, unchecked=unchecked)
        )

    def release_queue(self, queue: str) -> None:
        """End the reservation of a queue; raises Refused if it is not reserved."""
        self._run(self._client.release_queue(queue))

    def move(self, job: JobName, place: Place, anchor: JobName | None = None) -> None:
        """Move a queued job to the `top` or `bottom`, or `before` or `after` another job.

        Raises NotFound, and Refused for a job that is not queued or in another queue.
        """
        self._run(self._client.move(job, place, anchor))

    def prioritize(self, job: JobName, priority: int) -> None:
        """Change the priority of a waiting job; raises NotFound, UsageError, Refused."""
        self._run(self._client.prioritize(job, priority))

    def order(self, limit: int = 50, queue: str | None = None) -> list[QueuedJob]:
        """Return the waiting jobs by queue: those that can be claimed, in their order, then others.

        `hold` is the reason of their wait, also for a worker; None: they wait for a free slot.
        """
        return self._run(self._client.order(limit, queue))

    def why(self, job: JobName) -> WaitReason:
        """Return the reason of the status of a job, and the next step; raises NotFound."""
        return self._run(self._client.why(job))

    def templates(self) -> list[Template]:
        """Return the newest version of each template, by name."""
        return self._run(self._client.templates())

    def schedules(self) -> list[Schedule]:
        """Return all schedules, by name."""
        return self._run(self._client.schedules())

    def run_schedule(self, name: str) -> SubmittedJob:
        """Submit the job of a schedule now, beside its occurrences; raises NotFound."""
        return self._run(self._client.run_schedule(name))

    def pause_schedule(self, name: str, reason: str | None = None) -> Schedule:
        """Pause a schedule; raises NotFound, and Refused if it is paused."""
        return self._run(self._client.pause_schedule(name, reason))

    def resume_schedule(self, name: str) -> Schedule:
        """Resume a schedule from its next occurrence on; raises NotFound, Refused."""
        return self._run(self._client.resume_schedule(name))

    def add_template(self, name: str, *, replace: bool = False, **fields: Any) -> Template:
        """Store a template; with `replace`, an existing one gets a new version if it differs.

        `fields` are those of a request, `description`, and `parameters` as a JSON Schema of an
        object. Raises UsageError, and Conflict where the template exists.
        """
        return self._run(self._client.add_template(name, replace=replace, **fields))

    def remove_template(self, name: str) -> None:
        """Remove a template; its versions are kept for its jobs. Raises NotFound."""
        self._run(self._client.remove_template(name))

    def add_schedule(
        self,
        name: str,
        rule: str,
        *,
        zone: str = "UTC",
        template: str | None = None,
        params: Mapping[str, Any] | None = None,
        request: Mapping[str, Any] | None = None,
        misfire: Literal["skip", "last", "all"] = "last",
        misfire_limit: int = 10,
        jitter: int = 0,
        overlap: Literal["skip", "queue", "cancel-running"] = "skip",
        replace: bool = False,
    ) -> Schedule:
        """Store a schedule of a template with `params`, or of a `request` of its own.

        `rule` is a cron expression, `@every 90m` or `@at 2030-12-31T18:00:00Z`; `jitter` is in
        seconds. With `replace`, an existing schedule is changed. Raises UsageError, NotFound, and
        Conflict where the schedule exists.
        """
        return self._run(
            self._client.add_schedule(
                name,
                rule,
                zone=zone,
                template=template,
                params=params,
                request=request,
                misfire=misfire,
                misfire_limit=misfire_limit,
                jitter=jitter,
                overlap=overlap,
                replace=replace,
            )
        )

    def remove_schedule(self, name: str) -> None:
        """Delete a schedule with its history; its jobs are kept. Raises NotFound."""
        self._run(self._client.remove_schedule(name))

    def occurrences(self, name: str, count: int = 10) -> list[datetime]:
        """Return the next times of a schedule; raises NotFound."""
        return self._run(self._client.occurrences(name, count))

    def schedule_history(self, name: str | None = None, limit: int = 50) -> list[Fire]:
        """Return the past occurrences of a schedule, or of all, newest first; raises NotFound."""
        return self._run(self._client.schedule_history(name, limit))

    def questions(self, job: JobName | None = None) -> list[Question]:
        """Return the open questions of a job, or of all jobs, the next to expire first."""
        return self._run(self._client.questions(job))

    def answer(self, question: str | Question, text: str) -> Verdict:
        """Answer a question (`"D-142/1"`) with a choice or with free text.

        Raises NotFound, UsageError for an invalid answer, QuestionClosed if the question is
        already resolved, and Refused otherwise.
        """
        return self._run(self._client.answer(question, text))

    def approve(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Approve an approval; raises as `answer` does."""
        return self._run(self._client.approve(question, reason))

    def deny(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Deny an approval; raises as `answer` does."""
        return self._run(self._client.deny(question, reason))

    def request_changes(
        self, question: str | Question, text: str = "", *, comments: Sequence[str] = ()
    ) -> Verdict:
        """Request changes of work, which its agent makes before people are asked again.

        A comment is `FILE:LINE=TEXT` or `FILE=TEXT`, on a changed file and a line that its diff
        shows. Raises as `answer` does, also for an approval that takes no requests.
        """
        return self._run(self._client.request_changes(question, text, comments=comments))

    def acknowledge(self, question: str | Question, seconds: float = HOUR) -> ReminderDelay:
        """Acknowledge a question: you work on the answer, and others are not notified until then.

        Raises NotFound, UsageError for more than a day, QuestionClosed, and Refused while another
        person works on it.
        """
        return self._run(self._client.acknowledge(question, seconds))

    def snooze(self, question: str | Question, seconds: float) -> datetime:
        """Pause your own reminders of a question; return until when.

        Raises as `acknowledge` does.
        """
        return self._run(self._client.snooze(question, seconds))

    def delegate(self, question: str | Question, person: str, seconds: float = HOUR) -> datetime:
        """Ask another person to answer a question; return until when others are not notified.

        Raises as `acknowledge` does, and UsageError for an unknown person.
        """
        return self._run(self._client.delegate(question, person, seconds))

    def submit(
        self,
        text: str | None = None,
        *,
        connection: CallersConnection | None = None,
        unchecked: bool = False,
        reserve: float | None = None,
        **fields: Unpack[Fields],
    ) -> SubmittedJob:
        """Create a job, or return the job that was created with the same `key`.

        With `reserve`, in seconds, a new job reserves its queue as `draftsman run --now` does; this
        raises Refused where the queue is reserved or paused. With `connection`, a psycopg
        connection of the caller, the job is created in the caller's transaction: it exists if and
        only if that commits. Raises IdempotencyConflict, and UsageError, with `field` for a field
        that no worker can run; `unchecked` skips the checks of the type, chat or model against the
        configuration and live workers.
        """
        return self._run(
            self._client.submit(
                text, connection=connection, unchecked=unchecked, reserve=reserve, **fields
            )
        )

    def submit_many(
        self,
        requests: Iterable[Request],
        *,
        group: str | dict[str, str] | None = None,
        connection: CallersConnection | None = None,
        unchecked: bool = False,
    ) -> list[SubmittedJob]:
        """Create a job for each request in a single statement; return them in the same order.

        `group` is the group of all requests that name none.

        Raises UsageError, with a note that has the position of the request, before any job is
        created. After an IdempotencyConflict, whose `place` is the index of the request, the other
        jobs exist unless `connection` is rolled back; submitting the same requests again is safe.
        """
        return self._run(
            self._client.submit_many(
                list(requests), group=group, connection=connection, unchecked=unchecked
            )
        )

    def submit_stream(
        self, requests: Iterable[Request], *, unchecked: bool = False
    ) -> Iterator[SubmittedJob]:
        """Create a job for each of any number of requests; yield the jobs in the same order.

        BATCH requests at a time are read, validated and submitted as by `submit_many`. After an
        error, which has a note that says where the batch starts, the jobs of the earlier batches
        exist; submitting the same requests again creates no second job for those with a `key`.
        """
        return self._submit_stream(requests, unchecked=unchecked)

    def run_template(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        unchecked: bool = False,
        **fields: Unpack[Fields],
    ) -> SubmittedJob:
        """Create a job from a template (`"nightly"`, or `"nightly@3"` for a version).

        `fields` replace those of the template. Raises NotFound, and UsageError for parameters that
        do not match the template's schema, or as `submit` does.
        """
        return self._run(self._client.run_template(name, params, unchecked=unchecked, **fields))

    def get(self, job: JobName) -> Job:
        """Return a job with its status and result; raises NotFound."""
        return self._run(self._client.get(job))

    def jobs(self, **filters: Unpack[JobFilters]) -> list[JobSummary]:
        """Return the jobs that match all filters, newest first; 50 unless `limit` is given.

        `before` is the number of the last job of a page, for the next one.
        """
        return self._run(self._client.jobs(**filters))

    def logs(self, job: JobName, *, follow: bool = False) -> Iterator[LogChunk]:
        """Yield the output of the runs of a job; with `follow`, until the job has ended."""
        return self._iterate(self._client.logs(job, follow=follow))

    def diff(self, job: JobName) -> str | None:
        """Return the newest changes of a job as a patch of git; None: it has none."""
        return self._run(self._client.diff(job))

    def artifacts(self, job: JobName) -> list[Artifact]:
        """Return the files of a job, without their bytes; raises NotFound."""
        return self._run(self._client.artifacts(job))

    def artifact(self, job: JobName, name: str) -> bytes:
        """Return the bytes of a file of a job, of the newest if several have the name.

        Raises NotFound.
        """
        return self._run(self._client.artifact(job, name))

    def wait_all(self, jobs: Iterable[JobName], timeout: float | None = None) -> list[Job]:
        """Return the jobs, in their order, once all have ended; raises NotFound.

        Raises TimeoutError after `timeout` seconds; the jobs are not affected.
        """
        return self._run(self._client.wait_all(list(jobs), timeout))

    def wait(self, job: JobName, timeout: float | None = None) -> Job:
        """Return a job once it has ended; raises NotFound.

        Raises TimeoutError after `timeout` seconds; the job is not affected.
        """
        return self._run(self._client.wait(job, timeout))

    def tell(self, job: JobName, text: str, *, key: str | None = None) -> SentMessage:
        """Send a message to the agent of a job; the same `key` is sent once.

        Raises NotFound, UsageError for its text, IdempotencyConflict for a key of another text, and
        Refused for a job that takes no messages.
        """
        return self._run(self._client.tell(job, text, key=key))

    def pause(self, job: JobName, reason: str) -> PauseResult:
        """Pause a job: a running job is parked, and no worker claims it. Raises Refused."""
        return self._run(self._client.pause(job, reason))

    def resume(self, job: JobName) -> PauseResult:
        """End the pause of a job; raises Refused."""
        return self._run(self._client.resume(job))

    def cancel(
        self, job: JobName, reason: str | None = None, *, force: bool = False
    ) -> CancelResult:
        """Cancel a job; the worker of a running job stops it first, unless `force` is set.

        Raises NotFound, and Refused if the job has already ended.
        """
        return self._run(self._client.cancel(job, reason, force=force))

    def retry(self, job: JobName, *, fresh: bool = False, again: bool = False) -> SubmittedJob:
        """Create a new job that continues from the last checkpoint of a finished job.

        `fresh` starts from the beginning; `again` allows a completed job. Raises NotFound, Refused.
        """
        return self._run(self._client.retry(job, fresh=fresh, again=again))

    def dismiss(self, job: JobName, reason: str | None = None) -> DismissResult:
        """Take a failed job out of those that need a person; a second call changes nothing.

        Raises NotFound, and Refused if the job did not fail, or was denied or retried.
        """
        return self._run(self._client.dismiss(job, reason))

    def undismiss(self, job: JobName) -> DismissResult:
        """Take the dismissal of a failed job back; raises Refused without one."""
        return self._run(self._client.undismiss(job))

    def events(
        self, job: JobName | None = None, *, after: Event | Cursor | None = None, new: bool = False
    ) -> Iterator[Event]:
        """Yield the events of a job until it has ended, or those of all jobs without end.

        No event is skipped, whatever the order in which transactions commit. `after` continues
        after an event or its `cursor`, which can be stored. `new` omits existing events.
        """
        return self._iterate(self._client.events(job, after=after, new=new))

    def activity(self, job: JobName) -> Iterator[ActivityRow]:
        """Yield the activity of the agent of a job until the job has ended."""
        return self._iterate(self._client.activity(job))

    def cancel_tree(self, job: JobName, reason: str | None = None) -> list[CancelResult]:
        """Cancel a job and all that wait for it, directly or not.

        Workers of running jobs stop them first. Raises NotFound, and Refused if all have ended.
        """
        return self._run(self._client.cancel_tree(job, reason))

    def groups(self) -> list[JobGroup]:
        """Return the newest groups, with the numbers of their jobs."""
        return self._run(self._client.groups())

    def group(self, name: str) -> JobGroup:
        """Return a group with its state and progress; raises NotFound."""
        return self._run(self._client.group(name))

    def group_members(self, name: str) -> list[GroupMember]:
        """Return the first 1,000 jobs of a group, in order; raises NotFound."""
        return self._run(self._client.group_members(name))

    def cancel_group(self, name: str, reason: str | None = None) -> list[CancelResult]:
        """Cancel the unfinished jobs of a group; those that are added later are canceled too."""
        return self._run(self._client.cancel_group(name, reason))

    def tree(self, job: JobName) -> JobTree:
        """Return a job and all that wait for it, directly or not; raises NotFound."""
        return self._run(self._client.tree(job))
