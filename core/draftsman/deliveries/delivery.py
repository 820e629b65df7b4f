"""Deliveries: messages to targets, and the decision after an attempt. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from draftsman.channels import LOG, ChannelName
from draftsman.errors import Failure
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import OPTIONAL
from draftsman.ids import job_name
from draftsman.jobs.job import RequestSummary, Status
from draftsman.jobs.retries import LONGEST_WAIT, ErrorClass, RetryPolicy, app_delay, classify
from draftsman.jobs.status_display import Meaning
from draftsman.metrics import DatabaseGauge
from draftsman.people.policy import Person
from draftsman.questions.question import Question

COPY_GONE: Final = "copy_gone"
"""Failure code: the copy to edit was deleted."""
TARGET_GONE: Final = "target_gone"
"""Failure code: the target no longer accepts messages."""
NOT_SERVED: Final = "not_served"
"""Failure code: this process cannot send to the target, and another may."""


class DeliveryKind(StrEnum):
    """Kind of a message; `question_closed` updates the copy of a closed question."""

    STATUS = "status"
    QUESTION = "question"
    QUESTION_CLOSED = "question_closed"
    RESULT = "result"
    NOTICE = "notice"
    REMINDER = "reminder"
    FILE = "file"
    DIGEST = "digest"


class DeliveryStatus(StrEnum):
    """Status of a delivery; an `unconfirmed` message may have arrived, which is checked first."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    UNCONFIRMED = "unconfirmed"
    SUPERSEDED = "superseded"
    DEAD_LETTER = "dead_letter"


MEANINGS: Final[Mapping[DeliveryStatus, Meaning]] = {
    DeliveryStatus.PENDING: Meaning.PENDING,
    DeliveryStatus.SENDING: Meaning.ACTIVE,
    DeliveryStatus.SENT: Meaning.SUCCESS,
    DeliveryStatus.UNCONFIRMED: Meaning.WARNING,
    DeliveryStatus.SUPERSEDED: Meaning.NEUTRAL,
    DeliveryStatus.DEAD_LETTER: Meaning.FAILURE,
}
ENUMS: Final = {
    "delivery_kind": DeliveryKind,
    "delivery_status": DeliveryStatus,
}
"""Enums that are types of the database."""
QUESTION_KINDS: Final = frozenset({DeliveryKind.QUESTION, DeliveryKind.REMINDER})
"""Kinds that are dropped or updated when their question is closed."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A snapshot of the job that a message is about."""

    number: int
    id: UUID
    type: str
    status: Status
    title: str
    request: RequestSummary | None = field(default=None, metadata=OPTIONAL)
    """What an agent is asked to do; None for other jobs."""
    group: str | None = None
    group_stop: str = ""
    """How its group stopped, which its result reports."""
    url: str | None = None
    invoker: str = ""
    error: str | None = None
    denied: bool = False
    """Whether the denial of an approval failed the job; `error` states it as text."""
    denied_by: tuple[str, ...] = ()
    denial_reason: str | None = None
    canceled_by: str | None = None
    cancel_reason: str | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    """Reason of the pause of the job; None: not paused."""
    failure_open: bool = False
    """Whether it failed, and was neither denied, nor retried, nor dismissed."""
    dismissed: str = ""
    """Who took its failure out of attention, and why: `by anna: fixed upstream`."""
    asks_with: str | None = None
    """The identical question that the target shows instead of that of the job: `D-141/1`."""
    next_retry_at: datetime | None = None
    result: dict[str, Any] | None = None
    usage: str = ""
    """Tokens and cost of the job so far: `1,020 tokens, $0.42`."""
    cost: float = 0.0
    """Cost of the job so far, in US dollars."""
    created_at: datetime | None = None
    finished_at: datetime | None = None
    ended_pull: str | None = field(default=None, metadata=OPTIONAL)
    """How its pull request ended: `merged` or `closed`; None: it has not."""

    @property
    def name(self) -> str:
        """Display name: `D-142`."""
        return job_name(self.number)

    @property
    def repo(self) -> str | None:
        """The repository of an agent's request: `owner/name`."""
        return None if self.request is None else self.request.repo


@dataclass(frozen=True, slots=True)
class Delegation:
    """A person asked another person to answer a question."""

    person: str
    by: str
    until: datetime

    @property
    def text(self) -> str:
        """Return `anna asked bob to answer`."""
        return f"{self.by} asked {self.person} to answer"


@dataclass(frozen=True, slots=True)
class Message:
    """A message for a channel, which renders it and includes the marker.

    `root` is the reference of the job's status message at this target; `edits` is the reference of
    the copy to update; `thread` is the target's own. `payload` has the `text` of a notice, `to` for
    its only recipient, the `name` of a file, or the questions of a digest. `recipients` are the
    people who may answer the question, or the person of a digest.
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
    recipients: tuple[Person, ...] = ()
    changes: str = ""
    """Changes that people review with the question, as counts."""
    requested: tuple[str, str] | None = None
    """The request for changes of the last review, with its person; None without one."""
    unmentioned: frozenset[str] = frozenset()
    """Names of recipients who may not be interrupted by it."""
    delegation: Delegation | None = None
    """The delegation of the question that holds."""

    @property
    def mentions(self) -> tuple[Person, ...]:
        """The recipients; those who may not be interrupted have no accounts, only their name."""
        return tuple(
            replace(person, ids={}) if person.name in self.unmentioned else person
            for person in self.recipients
        )


@dataclass(frozen=True, slots=True)
class File:
    """A file to upload."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A token bucket: a token is added after `every` seconds, up to `burst`; a call takes one."""

    bucket: str
    every: float
    burst: int = 1


@dataclass(frozen=True, slots=True)
class Receipt:
    """The message was delivered; `ref` is the channel's reference of the copy, for updates.

    `absent` has targets of people who were asked and cannot see the copy; each gets another.
    """

    ref: str
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The message may have been delivered: the reply was lost or invalid."""

    reason: str


@dataclass(frozen=True, slots=True)
class Obsolete:
    """Nothing was sent: the message is obsolete."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Nothing was sent; try again after `seconds`.

    `limited` tells whether a rate limit delays the whole target, or only this delivery waits.
    """

    seconds: float
    reason: str | None = None
    limited: bool = True


SendResult = Receipt | Unconfirmed | Failure
"""Outcome of a channel's call."""
DeliveryOutcome = Receipt | Unconfirmed | Failure | Obsolete | Deferred


@dataclass(frozen=True, slots=True)
class UnservedTarget:
    """A target with due deliveries that no process sends, for `seconds`; `error` is one of them."""

    channel: ChannelName
    target: str
    count: int
    seconds: float
    error: str | None

    @property
    def text(self) -> str:
        """The sentence for people."""
        name = str(self.channel)
        if self.channel != LOG:
            name += f":{self.target}"
        waiting = counted(self.count, "delivery waits", "deliveries wait")
        return f"no running process sends to {name}: {waiting}"


UNSERVED_DELIVERIES: Final = DatabaseGauge(
    "unserved_deliveries",
    "Due deliveries to targets that no running process sends to.",
    ("channel", "target"),
)


def metrics_text(unserved: Iterable[UnservedTarget]) -> str:
    """Return the deliveries without a process in the text format of Prometheus."""
    samples = [({"channel": item.channel, "target": item.target}, item.count) for item in unserved]
    return UNSERVED_DELIVERIES.render(samples)


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that a dispatcher has claimed with a lease."""

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
    """Whether it goes first: by its kind, by the deliveries that wait for it, or by its age."""
    call_left: float
    """Seconds for which the call of an earlier sender, which has died, may still arrive."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A row of `job_deliveries`."""

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
    """The update after an attempt; `pending` is retried after `delay` seconds, or at `due`."""

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
    """Return the transition after an attempt; `attempts` includes it.

    The delay has full jitter below a growing limit; after `policy.max_retries` attempts the
    delivery is a dead letter. A failure with `retry_after` (429, or a closed bucket) does not
    count.
    """
    match outcome:
        case Receipt(ref):
            return DeliveryTransition(DeliveryStatus.SENT, ref=ref)
        case Obsolete():
            return DeliveryTransition(DeliveryStatus.SUPERSEDED)
        case Deferred(seconds, reason):
            return DeliveryTransition(DeliveryStatus.PENDING, seconds, spent=False, error=reason)
        case Unconfirmed(reason):
            retry = _retry(attempts, policy, jitter)
            return DeliveryTransition(
                retry.status, retry.delay, doubt=True, error=f"no reply: {reason}"
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
            retry = _retry(attempts, policy, jitter)
            return DeliveryTransition(retry.status, retry.delay, error=str(outcome))


def _retry(attempts: int, policy: RetryPolicy, jitter: Callable[[], float]) -> DeliveryTransition:
    if attempts >= policy.max_retries:
        return DeliveryTransition(DeliveryStatus.DEAD_LETTER)
    return DeliveryTransition(DeliveryStatus.PENDING, app_delay(policy, attempts, jitter))
