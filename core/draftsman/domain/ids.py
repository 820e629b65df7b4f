"""Names of things: what a person types, and what the application makes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from uuid_utils.compat import uuid7

from draftsman.errors import UsageError

_NUMBER = re.compile(r"(?:[dD]-)?([1-9][0-9]{0,17})\Z")
_NONE = UUID(int=0)
_PREFIX = re.compile(r"[0-9a-fA-F-]{4,36}\Z")


@dataclass(frozen=True, slots=True)
class JobRef:
    """A job as it was named: by its number, or by the range of ids that a prefix covers."""

    text: str
    number: int | None
    lowest: UUID = _NONE
    highest: UUID = _NONE


def new_id() -> UUID:
    """Return a UUIDv7: unique, public, and in the order of time."""
    return uuid7()


def worker_name(id: UUID | str) -> str:
    """Return what people call a worker, everywhere: the end of its id, which is random."""
    return str(id)[-8:]


def actor_name(actor: str) -> str:
    """Return who did something, for people: `worker 6d0f9a1c`, `slack:U1`."""
    kind, _, id = actor.partition(":")
    return f"worker {worker_name(id)}" if kind == "worker" else actor


def parse_job(text: str) -> JobRef:
    """Read `D-142`, `142`, a UUID or a prefix of one with a letter or at least eight digits.

    Raises UsageError. A short all-digit text is always a number: numbers are what people say.
    """
    text = text.strip()
    if match := _NUMBER.match(text):
        return JobRef(text, int(match[1]))
    digits = text.replace("-", "").lower()
    if not _PREFIX.match(text) or not 4 <= len(digits) <= 32:
        wanted = "D-142, 142, or the job's id or its prefix"
        raise UsageError(f"{text[:60]!r} is not a job; give {wanted}")
    return JobRef(text, None, UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f")))


def parse_question(text: str) -> tuple[JobRef, int | None]:
    """Read `D-142/2`, or a job without a question number, which is None then.

    Raises UsageError.
    """
    job, slash, ordinal = text.strip().partition("/")
    if not slash:
        return parse_job(job), None
    if not re.fullmatch(r"[1-9][0-9]{0,8}", ordinal):
        raise UsageError(f"{text[:60]!r} is not a question; give D-142/2")
    return parse_job(job), int(ordinal)
