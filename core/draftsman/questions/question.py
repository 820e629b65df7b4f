"""Questions of a run to people, and their resolutions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Generic

from typing_extensions import TypeVar

from draftsman.formats.amounts import counted
from draftsman.formats.json_data import HIDDEN, OPTIONAL
from draftsman.ids import job_name, question_name
from draftsman.jobs.status_display import Meaning
from draftsman.questions.answer_kind import AnswerKind, wanted_answer
from draftsman.questions.review_comment import ReviewComment, comments_of
from draftsman.text import STORED_SENTENCE

V = TypeVar("V", default=str | None)
BUDGET_KEY: Final = "agent:budget"
"""Key of the question about a budget; the functions of the database have the same."""
MAX_JOBS: Final = 10
"""Jobs that the text of identical questions names."""
ALLOW_ONCE: Final = "allow once"
"""Value of the choice that allows a call of an agent, also in functions of the database."""
POLICY_KEY: Final = "agent:limits"
"""Key of the first approval of published work; the others have a number, too."""


class QuestionKind(StrEnum):
    """`input` for an answer, `approval` for a decision."""

    INPUT = "input"
    APPROVAL = "approval"


def needed_answers(kinds: Sequence[object]) -> str:
    """Return what questions of these kinds need: `2 answers and 1 approval`."""
    approvals = kinds.count(QuestionKind.APPROVAL)
    answers = len(kinds) - approvals
    amounts = ((answers, "answer"), (approvals, "approval"))
    return " and ".join(counted(count, noun) for count, noun in amounts if count)


class QuestionStatus(StrEnum):
    """Status of a question."""

    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELED = "canceled"
    SUPERSEDED = "superseded"


MEANINGS: Final[Mapping[str, Meaning]] = {
    "open": Meaning.WAITING,
    "answered": Meaning.SUCCESS,
    "approved": Meaning.SUCCESS,
    "denied": Meaning.DENIED,
    "changes_requested": Meaning.WARNING,
    "expired": Meaning.FAILURE,
    "canceled": Meaning.NEUTRAL,
    "superseded": Meaning.NEUTRAL,
}
"""The meaning of each `Question.outcome`."""


class OnExpire(StrEnum):
    """Policy for a question that is not answered in time.

    The job expires, the default is the answer, the job continues, or the question escalates once.
    """

    EXPIRE = "expire"
    DEFAULT = "default"
    CONTINUE = "continue"
    ESCALATE = "escalate"


GATE_ENDS: Final = frozenset({OnExpire.EXPIRE, OnExpire.ESCALATE})
"""Policies of an approval: expiry is neither an approval nor a denial."""


class OnDeny(StrEnum):
    """Policy for a denial: the job fails, or the handler continues with it."""

    FAIL = "fail"
    CONTINUE = "continue"


class OnChanges(StrEnum):
    """Policy for a request for changes: it is refused, or the handler continues with it.

    With `tell`, the agent gets it as a message, and people are asked again about its new work.
    """

    REFUSE = "refuse"
    CONTINUE = "continue"
    TELL = "tell"


class Decision(StrEnum):
    """A verdict on an approval, as an answer stores it."""

    APPROVE = "approve"
    DENY = "deny"
    REQUEST_CHANGES = "request_changes"

    @property
    def outcome(self) -> str:
        """The outcome of an approval that it decides."""
        return OUTCOMES[self]


CHANGES_REQUESTED: Final = "changes_requested"
"""The outcome of a request for changes, also in functions of the database."""
OUTCOMES: Final[Mapping[Decision, str]] = {
    Decision.APPROVE: "approved",
    Decision.DENY: "denied",
    Decision.REQUEST_CHANGES: CHANGES_REQUESTED,
}


ENUMS: Final = {
    "answer_kind": AnswerKind,
    "question_kind": QuestionKind,
    "question_status": QuestionStatus,
    "on_expire": OnExpire,
    "on_deny": OnDeny,
    "on_changes": OnChanges,
}
"""Enums that are types of the database."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The resolution of a question.

    `outcome` is answered, approved, denied, changes_requested, expired, canceled or superseded;
    `via` is person, policy (a default, or continue), rule or system. `rule` is the permission rule
    that answered, and `reason` then its pattern. `comments` are those of a request for changes.
    """

    outcome: str
    via: str
    value: str | None = None
    text: str | None = None
    by: tuple[str, ...] = ()
    reason: str | None = None
    self_approved: bool = False
    rule: int | None = None
    comments: tuple[ReviewComment, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are set, as the column stores them."""
        fields: dict[str, Any] = {"outcome": self.outcome, "via": self.via}
        for name in ("value", "text", "reason", "rule"):
            if (value := getattr(self, name)) is not None:
                fields[name] = value
        if self.by:
            fields["by"] = list(self.by)
        if self.self_approved:
            fields["self_approved"] = True
        if self.comments:
            fields["comments"] = [comment.as_json() for comment in self.comments]
        return fields


@dataclass(frozen=True, slots=True)
class Question:
    """A row of `job_questions`."""

    job: int
    ordinal: int
    run: int
    key: str
    kind: QuestionKind
    status: QuestionStatus
    text: str
    choices: list[dict[str, Any]]
    freeform_allowed: bool
    context_snippet: str | None
    approvers: list[str]
    quorum: int
    on_expire: OnExpire
    default_value: str | None
    on_deny: OnDeny
    digest: str
    action: dict[str, Any] | None
    resolution: dict[str, Any] | None = field(metadata=STORED_SENTENCE)
    asked_at: datetime
    expires_at: datetime | None
    answered_at: datetime | None
    reminders: int = 0
    escalate_to: str | None = None
    escalated_at: datetime | None = None
    patch_sha256: str | None = field(default=None, metadata=OPTIONAL)
    """SHA-256 of the patch shown with it, which is that of the run's saved tree."""
    critical: bool = False
    """Whether it may interrupt people in their quiet hours."""
    alternative_of: int | None = None
    """The first of several alternatives, of which the first that closes counts; else None."""
    on_changes: OnChanges = OnChanges.REFUSE
    answer_kind: AnswerKind = AnswerKind.TEXT
    """What a free answer has to be."""

    @property
    def free_answer(self) -> str:
        """What to enter as a free answer: `a whole number, such as 31`, or `free text`."""
        return wanted_answer(self.answer_kind) or "free text"

    @property
    def name(self) -> str:
        """Display name: `D-142/2`."""
        return question_name(self.job, self.ordinal)

    @property
    def verb(self) -> str:
        """The command that answers it: `answer`, or `approve` for an approval."""
        return "approve" if self.kind is QuestionKind.APPROVAL else "answer"

    @property
    def decisions(self) -> Sequence[str]:
        """The decisions that an approval takes, as words; none of a question."""
        if self.kind is not QuestionKind.APPROVAL:
            return ()
        changes = (Decision.REQUEST_CHANGES,) if self.takes_changes else ()
        return [item.replace("_", " ") for item in (Decision.APPROVE, *changes, Decision.DENY)]

    @property
    def takes_changes(self) -> bool:
        """Whether people may request changes instead of a decision."""
        return self.on_changes is not OnChanges.REFUSE

    @property
    def has_changes_requested(self) -> bool:
        """Whether it was closed by a request for changes."""
        return self.outcome == CHANGES_REQUESTED

    @property
    def comments(self) -> tuple[ReviewComment, ...]:
        """The comments of a request for changes."""
        return comments_of(self.resolution)

    @property
    def approved_action(self) -> dict[str, Any] | None:
        """The action that an approval would allow; None for a question."""
        return self.action if self.kind is QuestionKind.APPROVAL else None

    @property
    def rule_text(self) -> str:
        """The permission rule that answered: `rule 3 (pytest tests/*)`; "" for any other answer."""
        resolution = self.resolution or {}
        if resolution.get("via") != "rule":
            return ""
        return f"rule {resolution.get('rule')} ({resolution.get('reason')})"

    def values(self) -> Sequence[str]:
        """Return the values of the choices, in order."""
        return [str(choice["value"]) for choice in self.choices]

    def labels(self) -> Sequence[str]:
        """Return the labels of the choices, which people read, in order."""
        return [str(choice["label"]) for choice in self.choices]

    @property
    def numbered_choices(self) -> str:
        """The choices as people read and number them: `1 yes, 2 no`."""
        return ", ".join(f"{n} {label}" for n, label in enumerate(self.labels(), 1))

    @property
    def outcome(self) -> str:
        """The result as people read it, such as `denied` or `approved`; else the status."""
        return str((self.resolution or {}).get("outcome", self.status))

    @property
    def closed_at(self) -> datetime | None:
        """When it was answered, or expires or expired; None if it was canceled."""
        has_expired = self.status in (QuestionStatus.OPEN, QuestionStatus.EXPIRED)
        return self.answered_at or (self.expires_at if has_expired else None)

    def label_of(self, value: str) -> str:
        """Return the label of a choice; the value itself if no choice has it.

        Also the value if the label is its beginning: a choice without a label has such a label.
        """
        label = dict(zip(self.values(), self.labels(), strict=True)).get(value, value)
        return value if value.startswith(label) else label

    def answer_text(self, resolution: Mapping[str, Any] | None = None) -> str:
        """Return the answer in a resolution, by default its own, as people read it; or ""."""
        resolution = (self.resolution if resolution is None else resolution) or {}
        value = resolution.get("value")
        return str(resolution.get("text") or "") if value is None else self.label_of(str(value))


@dataclass(frozen=True, slots=True)
class OpenQuestion(Question):
    """An open question with the title, repository and requester of its job."""

    title: str = ""
    """The job's title, else its type."""
    repo: str | None = field(default=None, metadata=OPTIONAL)
    """`owner/name`, or the name alone."""
    repo_host: str | None = field(default=None, metadata=OPTIONAL)
    requester: str = ""
    """The person who requested the job, else the account."""
    agent: str | None = field(default=None, metadata=OPTIONAL)
    decided_by: str | None = None
    """The person whose answer or decision is in its undo window, which ends at `applies_at`."""
    applies_at: datetime | None = None
    added: int | None = field(default=None, metadata=OPTIONAL)
    """Lines that the changes under review add; None: not counted."""
    removed: int | None = field(default=None, metadata=OPTIONAL)
    acknowledged_by: str | None = None
    """The person who works on the answer."""
    delegated_to: str | None = None
    """The person to whom the answer was delegated."""
    others: list[int] = field(default_factory=list)
    """The other jobs that ask the same; an answer counts for all."""
    other_requesters: list[str] = field(default_factory=list)
    """The requesters of the other jobs, in the order of their names."""
    is_first: bool = True
    """Whether no identical question of the same requester was asked before it."""
    approved_by: list[str] = field(default_factory=list)
    """The people who approved so far, of an approval that needs several."""
    for_viewer: bool = field(default=False, metadata=HIDDEN)
    """Whether it waits for the person for whom it was read."""
    decided_by_viewer: bool = field(default=False, metadata=HIDDEN)
    """Whether the decision in its undo window is that of this person."""

    @property
    def holders(self) -> tuple[str, ...]:
        """The people who work on the answer or were asked for it: others wait for them."""
        return tuple(filter(None, (self.acknowledged_by, self.delegated_to)))


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Open questions that the same people may answer and hold, and their number."""

    kind: QuestionKind
    key: str
    """That of the question about a budget; "" for all others."""
    approvers: list[str]
    requester: str
    decided_by: str | None
    holders: list[str]
    approved_by: list[str]
    count: int
    expiring_soon: int
    """Those that expire within an hour."""
    next_expiry: datetime | None


@dataclass(frozen=True, slots=True)
class QuestionCounts:
    """The number of open questions, and of those that wait for a person."""

    open: int
    for_you: int


@dataclass(frozen=True, slots=True)
class IdenticalQuestion:
    """A question of another job that is answered together with a question."""

    job: int
    question: int
    is_earlier: bool
    """Whether it has the same requester and was asked before: people are notified of that one."""

    @property
    def name(self) -> str:
        """Display name: `D-142/2`."""
        return question_name(self.job, self.question)


@dataclass(frozen=True, slots=True)
class Answered(Generic[V]):
    """Result of `ctx.ask` and `ctx.approve` with an answer.

    `value` has the `type` of the question; without one, it is the value of a choice, else None.
    """

    value: V
    text: str | None
    outcome: str
    via: str
    by: tuple[str, ...] = ()
    reason: str | None = None
    at: datetime | None = None
    comments: tuple[ReviewComment, ...] = ()
    """The comments of a request for changes, whose text is the `reason`."""

    @property
    def approved(self) -> bool:
        """Whether an approval was granted."""
        return self.outcome == "approved"


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Result of `ctx.ask` without an answer in time, for a question with `on_expire="continue"`."""

    outcome: str = "expired"
    approved: bool = False
    value: None = None
    text: None = None


def replacement_of(question: Question, of_job: Sequence[Question]) -> Question | None:
    """Return the question that has replaced a superseded one: the newest with its key."""
    if question.outcome != QuestionStatus.SUPERSEDED:
        return None
    same = [item for item in of_job if (item.job, item.key) == (question.job, question.key)]
    return same[-1] if same[-1:] != [question] else None


def asking_text(job: int, other_jobs: Sequence[int]) -> str:
    """Return `2 jobs ask this: D-12, D-13. An answer counts for all.`; "" for a single job."""
    if not other_jobs:
        return ""
    names = list(map(job_name, sorted([job, *other_jobs])))
    omission = f" and {len(names) - MAX_JOBS:,} more" if len(names) > MAX_JOBS else ""
    listed = ", ".join(names[:MAX_JOBS])
    return f"{len(names):,} jobs ask this: {listed}{omission}. An answer counts for all."


def derived_key(kind: str, content: Sequence[str]) -> str:
    """Return the key of a question that a program asks: the same for the same question."""
    digest = hashlib.sha256(json.dumps([*content]).encode()).hexdigest()
    return f"{kind}-{digest[:16]}"
