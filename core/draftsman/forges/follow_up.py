"""Follow-ups on the pull requests of jobs: which events start work, and when. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from draftsman.forges.forge_event import EventKind, ForgeEvent
from draftsman.forges.issue_target import CHANNEL
from draftsman.forges.untrusted_text import ZERO_WIDTH
from draftsman.formats.truncation import truncate
from draftsman.ids import job_name
from draftsman.jobs.job import TERMINAL, Status
from draftsman.text import STORED_SENTENCE

MENTION: Final = "draftsman"
"""Login that comments mention, if the forge has no other."""
MAX_WAIT: Final = 10
"""Multiple of the delay after which a follow-up starts, although events keep arriving."""
ENDS: Final = {EventKind.MERGED: "merged", EventKind.CLOSED: "closed"}
STATE: Final = frozenset({EventKind.CHECK_FAILED, EventKind.CONFLICT})
"""Kinds about a commit, which is outdated once there is another."""
MAX_MESSAGE: Final = 9500
MAX_TITLE: Final = 500


@dataclass(frozen=True, slots=True)
class TrackedPull:
    """A pull request of a job whose events draftsman follows; `root` is its first job."""

    root: int
    forge: str
    project: str
    number: int
    url: str
    branch: str
    base: str
    head: str
    """The commit that was published last."""
    tip: str
    """The commit of its branch when it was read last, perhaps that of a person."""
    state: str = "open"
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FollowedPull:
    """The pull request that a job follows up on."""

    root: int
    root_id: UUID
    ordinal: int
    parent: int
    number: int
    branch: str
    base: str
    url: str
    title: str | None
    """Title of the first job."""
    source: str
    """Channel of its request."""
    allowed: int
    """The ordinal of the follow-up at which people last allowed more; 0: never."""


@dataclass(frozen=True, slots=True)
class FollowUpEvent:
    """A stored event that had no effect yet; `age` is in seconds."""

    id: int
    forge: str
    kind: str
    source: str
    author: str
    author_name: str
    is_bot: bool
    verdict: str | None
    title: str
    text: str
    path: str | None
    line: int | None
    commit: str | None
    url: str | None
    key: str
    age: float

    @property
    def is_message(self) -> bool:
        """Whether a person sent it to a job of the pull request, in any channel."""
        return self.source != CHANNEL or self.key.startswith("message:")


@dataclass(frozen=True, slots=True)
class FamilyJob:
    """The first job of a pull request, or a follow-up."""

    job: int
    ordinal: int
    status: Status
    invoker_id: str
    canceling: bool
    handed_over: bool
    commits: Sequence[str] = ()
    """The commits whose checks and conflicts it was told of."""


@dataclass(frozen=True, slots=True)
class FollowUpPlan:
    """The effects of the new events of a pull request."""

    ignored: tuple[tuple[FollowUpEvent, str], ...] = ()
    """Events without effect, each with the reason."""
    end: tuple[FollowUpEvent, str] | None = None
    """The event that ends the pull request, and its state."""
    send: tuple[FollowUpEvent, ...] = ()
    """Events for the agent."""
    to: int | None = None
    """The unfinished job that gets them; None: a new follow-up."""


@dataclass(frozen=True, slots=True)
class AnswerDue:
    """An event whose job has ended, and the result that its answer names."""

    id: int
    forge: str
    project: str
    number: int
    kind: str
    thread: str | None
    source: str
    author_name: str
    job: int
    status: Status
    commit: str | None
    summary: str | None
    error: str | None = field(metadata=STORED_SENTENCE)
    follows: bool


@dataclass(frozen=True, slots=True)
class Family:
    """A pull request with its jobs, in order."""

    pull: TrackedPull
    jobs: tuple[int, ...] = field(default=())

    def text_of(self, job: int) -> str:
        """Return the other jobs and the state of the pull request of `job`, in one line."""
        names = ", ".join(job_name(other) for other in self.jobs[1:] if other != job)
        root = self.jobs[0]
        if job == root:
            text = f"followed up by {names}" if names else "no follow-ups"
        else:
            text = f"follow-up {self.jobs.index(job)} of {job_name(root)}"
            text += f", with {names}" if names else ""
        return f"{self.pull.state}, {text}"


def plan(
    pull: TrackedPull,
    jobs: Sequence[FamilyJob],
    events: Sequence[FollowUpEvent],
    refused: dict[int, str],
    delay: float,
    mention: str = MENTION,
) -> FollowUpPlan:
    """Return the effects of the events; `refused` has the reason for people without the right.

    Comments are addressed by `mention`, or by the command of draftsman. An unfinished job gets
    events at once, but those about a commit that it does not have wait for its end. Otherwise
    consecutive events become a single follow-up: each event restarts its delay.
    """
    for event in events:
        if (state := ENDS.get(EventKind(event.kind))) is not None:
            remaining = [item for item in events if item is not event]
            late = f"the pull request is {state}"
            return FollowUpPlan(tuple((item, late) for item in remaining), (event, state))
    if pull.state != "open":
        return FollowUpPlan(tuple((item, f"the pull request is {pull.state}") for item in events))
    ignored: list[tuple[FollowUpEvent, str]] = []
    wanted: list[FollowUpEvent] = []
    newest = {_identity(event): event.id for event in events}
    live = [job for job in jobs if not _is_over(job)]
    for event in events:
        reason = refused.get(event.id) or _no_work(event, pull.tip, mention)
        if reason is None and newest[_identity(event)] != event.id:
            reason = "edited"
        if reason is None and any(job.handed_over for job in jobs):
            reason = "the pull request was handed over to people"
        if reason is not None:
            ignored.append((event, reason))
        elif not live or _has_commit(live[-1], pull, event):
            wanted.append(event)
    waits = any(job.canceling for job in live) or (
        (not live and wanted and min(event.age for event in wanted) < delay)
        and max(event.age for event in wanted) < delay * MAX_WAIT
    )
    if waits or not wanted:
        return FollowUpPlan(tuple(ignored))
    return FollowUpPlan(tuple(ignored), None, tuple(wanted), live[-1].job if live else None)


def reopened(pull: TrackedPull, seen: Sequence[ForgeEvent]) -> ForgeEvent | None:
    """Return the event of a closed pull request that its forge shows as open, once for each close.

    `seen` are its events there now. No forge tells who opened it again.
    """
    if pull.ended_at is None or any(event.kind in ENDS for event in seen):
        return None
    key = f"reopened:{int(pull.ended_at.timestamp() * 1e6)}"
    return ForgeEvent(EventKind.REOPENED, pull.project, pull.number, key, url=pull.url)


def command_of(text: str, mention: str) -> str | None:
    """Return the text after `/draftsman` or the mention; None if a comment is not addressed."""
    names = f"/draftsman|@draftsman|@{re.escape(mention)}"
    match = re.search(rf"(?im)^[ \t]*(?:{names})(?![\w-])[ \t:,]*", text)
    return None if match is None else text[match.end() :].strip()


def needs_right(event: FollowUpEvent) -> bool:
    """Return whether an event is of a person, whose right to start work is checked."""
    return EventKind(event.kind) not in STATE and EventKind(event.kind) not in ENDS


def title_of(events: Sequence[FollowUpEvent], title: str | None, root: int) -> str:
    """Return the title of a follow-up, which names its reason: `Fix CI of TITLE`."""
    kinds = {EventKind(event.kind) for event in events if not event.is_message}
    whose = title or job_name(root)
    if kinds & {EventKind.REVIEW, EventKind.REVIEW_THREAD}:
        text = f"Address review of {whose}"
    elif EventKind.CHECK_FAILED in kinds:
        text = f"Fix CI of {whose}"
    elif EventKind.CONFLICT in kinds:
        text = f"Resolve conflicts of {whose}"
    else:
        text = f"Follow up on {whose}"
    return truncate(text, MAX_TITLE)


def message_text(event: FollowUpEvent, mention: str = MENTION) -> str:
    """Return the message to the agent about an event."""
    by = event.author_name
    match EventKind(event.kind):
        case EventKind.REVIEW_THREAD:
            location = f"{event.path}, line {event.line}" if event.line else str(event.path)
            text = f"Review comment of {by} on {location}:\n\n{event.text}"
        case EventKind.REVIEW:
            verdict = (event.verdict or "").replace("_", " ")
            text = f"Review of {by} ({verdict}):\n\n{event.text}"
        case EventKind.CHECK_FAILED:
            log = f"\n\n{event.text}" if event.text else "; it gives no log"
            text = f"The check {event.title} failed on {(event.commit or '')[:12]}{log}"
        case EventKind.CONFLICT:
            text = (
                f"The pull request conflicts with its base {event.title}. The base was merged into"
                " the work: resolve the conflict markers in the files."
            )
        case _:
            command = None if event.is_message else command_of(event.text, mention)
            text = command or event.text
    return truncate(text, MAX_MESSAGE)


def answer_text(event: AnswerDue, marker: str) -> str:
    """Return the answer on the forge; the last line is the marker by which it is found again."""
    name = job_name(event.job)
    if event.status is not Status.COMPLETED:
        text = f"{name} is {event.status.replace('_', ' ')}: no commit was published."
    elif event.commit is not None:
        text = f"Done in {event.commit} ({name})."
    else:
        text = f"{name} changed nothing."
    return f"{text}\n\n{marker}"


def answer_marker(key: str) -> str:
    """Return the line by which an answer of draftsman is found."""
    return f"<!-- draftsman answer={key.replace('--', ZERO_WIDTH)} -->"


def _no_work(event: FollowUpEvent, tip: str, mention: str) -> str | None:
    """Return why an event starts no work; None if it does."""
    kind = EventKind(event.kind)
    if event.is_bot:
        return "written by a program"
    if kind in STATE:
        return None if event.commit == tip else "about an earlier commit"
    if event.is_message:
        return None
    command = command_of(event.text, mention)
    if kind is EventKind.COMMENT:
        if command is None:
            return "not addressed to draftsman"
        return None if command else "no text"
    if kind is EventKind.REVIEW and event.verdict == "approved" and not command:
        return "an approval"
    return None if event.text else "no text"


def _identity(event: FollowUpEvent) -> str:
    """Return the part of a key that all versions of a comment share."""
    return event.key if event.is_message else event.key.rpartition(":")[0]


def _has_commit(job: FamilyJob, pull: TrackedPull, event: FollowUpEvent) -> bool:
    """Return whether an unfinished job has the commit that an event is about.

    It does not have the commits that a person has pushed since it began.
    """
    return EventKind(event.kind) not in STATE or event.commit in (pull.head, *job.commits)


def _is_over(job: FamilyJob) -> bool:
    return job.status in TERMINAL
