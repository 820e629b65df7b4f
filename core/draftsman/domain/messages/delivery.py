"""Deliveries: what is said to a target, and how saying it ended. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from draftsman.domain.job import Status
from draftsman.domain.people.policy import Person
from draftsman.domain.question import Question
from draftsman.domain.retries.error_classes import ErrorClass, classify
from draftsman.domain.retries.retry_policy import LONGEST_WAIT, RetryPolicy, app_delay
from draftsman.errors import Failure

COPY_GONE: Final = "copy_gone"
"""Code of a Failure to edit what somebody deleted."""
TARGET_GONE: Final = "target_gone"
"""Code of a Failure at a target where nothing can be said any more."""


class ChannelName(StrEnum):
    """Where messages can go."""

    LOG = "log"
    WEBHOOK = "webhook"
    SLACK = "slack"
    TRELLO = "trello"


class DeliveryKind(StrEnum):
    """What a message is about; `question_closed` updates the copy of a closed question."""

    STATUS = "status"
    QUESTION = "question"
    QUESTION_CLOSED = "question_closed"
    RESULT = "result"
    NOTICE = "notice"
    REMINDER = "reminder"
    FILE = "file"


class DeliveryStatus(StrEnum):
    """State of a delivery; `unconfirmed` may have arrived and is looked up before a repeat."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    UNCONFIRMED = "unconfirmed"
    SUPERSEDED = "superseded"
    DEAD_LETTER = "dead_letter"


QUESTION_KINDS: Final = frozenset({DeliveryKind.QUESTION, DeliveryKind.REMINDER})
"""Kinds that are unsaid, or rewritten, when their question is closed."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The job that a message is about, as it was when the message was made."""

    number: int
    id: UUID
    type: str
    status: Status
    title: str
    agent: str | None = None
    repo: str | None = None
    url: str | None = None
    invoker: str = ""
    error: str | None = None
    denied: bool = False
    """Whether a person denied it: `error` says who, and why."""
    canceled_by: str | None = None
    cancel_reason: str | None = None
    next_retry_at: datetime | None = None
    result: dict[str, Any] | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        return f"D-{self.number}"


@dataclass(frozen=True, slots=True)
class Message:
    """What a channel sends. It renders it in its own way, with the marker where it can find it.

    `root` is the reference of the job's status message at this target, for what belongs under it;
    `edits` that of the copy to rewrite; `thread` what the target named. `payload` is what a service
    said: `text` of a notice, and `to` whom alone, if so; `name` of a file. `asked` are the people
    whom a question is for: who may decide a gate, or answer because it is theirs.
    """

    marker: str
    seq: int
    kind: DeliveryKind
    target: str
    subject: Subject
    created_at: datetime
    thread: str | None = None
    root: str | None = None
    edits: str | None = None
    question: Question | None = None
    payload: dict[str, Any] | None = None
    asked: tuple[Person, ...] = ()


@dataclass(frozen=True, slots=True)
class File:
    """What is uploaded."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A bucket of which each call takes one: refilled every so many seconds, up to `burst`."""

    bucket: str
    every: float
    burst: int = 1


@dataclass(frozen=True, slots=True)
class Receipt:
    """It is there; `ref` is the channel's own name of the copy, by which it can be rewritten.

    `absent` are targets of people who were asked and cannot see it there: each gets a copy.
    """

    ref: str
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """It may be there: the reply was lost, or made no sense."""

    reason: str


@dataclass(frozen=True, slots=True)
class Obsolete:
    """There was nothing to say any more, and nothing was said."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Nothing was tried for so many seconds: a limit is reached.

    Without `limited` it is this delivery alone that waits, and not its target.
    """

    seconds: float
    reason: str | None = None
    limited: bool = True


SendResult = Receipt | Unconfirmed | Failure
"""How a channel's call ended."""
DeliveryOutcome = Receipt | Unconfirmed | Failure | Obsolete | Deferred


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery in the hands of a dispatcher, under a lease."""

    seq: int
    id: UUID
    job: int
    question: int | None
    original: int | None
    channel: ChannelName
    target: str
    thread: str | None
    thread_key: str
    kind: DeliveryKind
    version: int | None
    payload: dict[str, Any]
    attempts: int
    in_doubt: bool
    lease_token: int
    created_at: datetime
    due_at: datetime
    urgent: bool
    """Goes before others: by its kind, by what waits behind it, or by its age."""
    call_left: float
    """Seconds for which the call of an earlier sender, which ended meanwhile, may still arrive."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One row, as people look at it."""

    seq: int
    id: UUID
    job: int
    question: int | None
    original: int | None
    channel: ChannelName
    target: str
    thread: str | None
    kind: DeliveryKind
    status: DeliveryStatus
    attempts: int
    in_doubt: bool
    next_attempt_at: datetime | None
    external_ref: str | None
    last_error: str | None
    created_at: datetime
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryTransition:
    """What is written of a try; `pending` is tried again after `delay` seconds, or at `due`."""

    status: DeliveryStatus
    delay: float | None = None
    spent: bool = True
    doubt: bool = False
    ref: str | None = None
    error: str | None = None
    due: datetime | None = None


def after_attempt(
    outcome: DeliveryOutcome,
    attempts: int,
    policy: RetryPolicy,
    jitter: Callable[[], float] = random.random,
) -> DeliveryTransition:
    """Decide what follows a try. `attempts` counts this one.

    Full jitter below a growing limit; the last try of `policy.max_retries` is the end. A refusal
    that says when to come back (429, or a channel that is closed for a while) spends nothing.
    """
    match outcome:
        case Receipt(ref):
            return DeliveryTransition(DeliveryStatus.SENT, ref=ref)
        case Obsolete():
            return DeliveryTransition(DeliveryStatus.SUPERSEDED)
        case Deferred(seconds, reason):
            return DeliveryTransition(DeliveryStatus.PENDING, seconds, spent=False, error=reason)
        case Unconfirmed(reason):
            end = _again(attempts, policy, jitter)
            return DeliveryTransition(
                end.status, end.delay, doubt=True, error=f"no reply: {reason}"
            )
        case Failure():
            error = classify(outcome)
            if error in (ErrorClass.PERMANENT, ErrorClass.INVALID_OUTPUT):
                return DeliveryTransition(DeliveryStatus.DEAD_LETTER, error=str(outcome))
            if outcome.retry_after is not None:
                seconds = max(0.0, min(outcome.retry_after, LONGEST_WAIT))
                return DeliveryTransition(
                    DeliveryStatus.PENDING, seconds, spent=False, error=str(outcome)
                )
            end = _again(attempts, policy, jitter)
            return DeliveryTransition(end.status, end.delay, error=str(outcome))


def _again(attempts: int, policy: RetryPolicy, jitter: Callable[[], float]) -> DeliveryTransition:
    if attempts >= policy.max_retries:
        return DeliveryTransition(DeliveryStatus.DEAD_LETTER)
    return DeliveryTransition(DeliveryStatus.PENDING, app_delay(policy, attempts, jitter))
