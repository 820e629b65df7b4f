"""Ids and display names of jobs, runs, questions, workers and actors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from draftsman.errors import CommandHint, NotFound, UsageError

_NUMBER = re.compile(r"(?:[dD]-)?([1-9][0-9]{0,17})\Z")
_RANGE = re.compile(r"(?:[dD]-)?([1-9][0-9]{0,17})\.\.(?:[dD]-)?([1-9][0-9]{0,17})\Z")
MAX_RANGE = 1000
"""The most jobs of a range."""
MAX_JOB = 10**18 - 1
"""The highest number of a job."""
_QUESTION = re.compile(r"((?:[dD]-)?[1-9][0-9]{0,17})/[1-9][0-9]{0,8}\Z")
_NONE = UUID(int=0)
_MACHINES: Final = frozenset({"worker", "schedule", "internal", "system"})
"""Channels of actors that are no people."""
_PREFIX = re.compile(r"[0-9a-fA-F-]{4,36}\Z")


@dataclass(frozen=True, slots=True)
class JobRef:
    """A reference to a job: its number, or the range of ids that share a prefix."""

    text: str
    number: int | None
    lowest: UUID = _NONE
    highest: UUID = _NONE
    in_range: bool = False
    """Whether it is one of a range, in which jobs may be missing."""


def new_id() -> UUID:
    """Return a UUIDv7, which sorts by time."""
    return uuid7()


def job_name(number: int) -> str:
    """Return the display name of a job: `D-142`."""
    return f"D-{number}"


def job_number(text: str) -> int | None:
    """Return the number of a display name, `D-142` or `142`; None for any other text."""
    match = _NUMBER.match(text.strip())
    return int(match[1]) if match else None


def run_name(job: int, ordinal: int) -> str:
    """Return the display name of a run: `D-142.1`."""
    return f"{job_name(job)}.{ordinal}"


def run_text(ordinal: int, job: int | None = None) -> str:
    """Return a run in prose: `run 1`, or `run 1 of D-142` where the job is not clear."""
    return f"run {ordinal}" if job is None else f"run {ordinal} of {job_name(job)}"


def question_name(job: int, ordinal: int) -> str:
    """Return the display name of a question: `D-142/1`."""
    return f"{job_name(job)}/{ordinal}"


def worker_name(id: UUID | str) -> str:
    """Return the display name of a worker: the random end of its id."""
    return str(id)[-8:]


def actor_name(actor: str) -> str:
    """Return the display name of an actor: `worker 6d0f9a1c`, `cli:anna`."""
    kind, _, id = actor.partition(":")
    return f"worker {worker_name(id)}" if kind == "worker" else actor


def is_machine(actor: str) -> bool:
    """Return whether an actor is no person: a worker, a schedule or draftsman itself."""
    return actor.partition(":")[0] in _MACHINES


def account_name(actor: str) -> str:
    """Return an actor without its channel: `anna`, `worker 6d0f9a1c`, `schedule nightly`."""
    kind, separator, id = actor.partition(":")
    match kind:
        case "worker":
            return actor_name(actor)
        case "schedule":
            return f"schedule {id}"
        case "system" | "internal":
            return id if id.startswith("D-") else "draftsman"
    return id if separator else actor


def unknown_job(number: int) -> NotFound:
    """Return the error for a job that does not exist."""
    return NotFound(f"there is no job {job_name(number)}", hint=CommandHint("jobs"))


def unknown_question(job: int, ordinal: int) -> NotFound:
    """Return the error for a question that does not exist."""
    return NotFound(
        f"there is no question {question_name(job, ordinal)}", hint=CommandHint("questions")
    )


def parse_job(text: str) -> JobRef:
    """Parse `D-142`, `142`, a UUID, or a prefix of a UUID.

    A text of digits only is a job number if it has at most 18. Raises UsageError.
    """
    text = text.strip()
    if match := _NUMBER.match(text):
        return JobRef(text, int(match[1]))
    if match := _QUESTION.match(text):
        raise UsageError(f"{text} is a question, and this is about a job; use {match[1]}")
    digits = text.replace("-", "").lower()
    if not _PREFIX.match(text) or not 4 <= len(digits) <= 32:
        forms = "D-142, 142, or the job's id or a prefix of it"
        raise UsageError(f"{text[:60]!r} is not a job; use {forms}")
    return JobRef(text, None, UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f")))


def parse_jobs(text: str) -> tuple[JobRef, ...]:
    """Parse a job, or a range of at most a thousand, `D-10..D-20`. Raises UsageError."""
    if (match := _RANGE.match(text.strip())) is None:
        return (parse_job(text),)
    first, last = int(match[1]), int(match[2])
    if not first <= last < first + MAX_RANGE:
        raise UsageError(
            f"{text.strip()[:60]!r} is not a range of jobs; use D-10..D-20, the lower number first,"
            f" of at most {MAX_RANGE:,} jobs"
        )
    numbers = range(first, last + 1)
    return tuple(JobRef(job_name(number), number, in_range=True) for number in numbers)


def parse_question(text: str) -> tuple[JobRef, int | None]:
    """Parse `D-142/2`, or a job, whose question number is None.

    Raises UsageError.
    """
    job, slash, ordinal = text.strip().partition("/")
    if not slash:
        return parse_job(job), None
    if not re.fullmatch(r"[1-9][0-9]{0,8}", ordinal):
        raise UsageError(f"{text[:60]!r} is not a question; use a name such as D-142/2")
    return parse_job(job), int(ordinal)


def pause_name(queue: str, type: str | None) -> str:
    """Return the text for people of a queue or type."""
    return f"queue {queue!r}" if type is None else f"type {type!r} in the queue {queue!r}"
