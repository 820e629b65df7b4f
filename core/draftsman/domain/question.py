"""Questions that a run asks people, and how they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from draftsman.domain.text import clean_fields, digest


class QuestionKind(StrEnum):
    """A question with an answer, or a gate with a decision."""

    INPUT = "input"
    APPROVAL = "approval"


class QuestionStatus(StrEnum):
    """Open, or how it ended."""

    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELED = "canceled"
    SUPERSEDED = "superseded"


class OnExpire(StrEnum):
    """What nobody answering means.

    The job expires, the default counts, it goes on without, or others are asked as well, once.
    """

    EXPIRE = "expire"
    DEFAULT = "default"
    CONTINUE = "continue"
    ESCALATE = "escalate"


GATE_ENDS: Final = frozenset({OnExpire.EXPIRE, OnExpire.ESCALATE})
"""What an approval may do: nobody deciding is neither an approval nor a denial."""


class OnDeny(StrEnum):
    """What a denied gate means: the job fails, or the handler is told."""

    FAIL = "fail"
    CONTINUE = "continue"


class Choice(BaseModel):
    """One thing to choose: `value` is what counts, `label` what is shown."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    value: str = Field(min_length=1, max_length=150)
    label: str = Field("", max_length=75)
    description: str | None = Field(None, max_length=500)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        if isinstance(data, str):
            data = {"value": data}
        if isinstance(data, dict) and not data.get("label"):
            data = {**data, "label": str(data.get("value", ""))[:75]}
        return data


class QuestionSpec(BaseModel):
    """What a handler asks; validated before it reaches the store."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    key: str = Field(min_length=1, max_length=200)
    kind: QuestionKind = QuestionKind.INPUT
    text: str = Field(min_length=1, max_length=3000)
    choices: tuple[Choice, ...] = Field((), max_length=500)
    freeform: bool = False
    context: str | None = Field(None, max_length=20_000)
    approvers: tuple[str, ...] | None = None
    """People and groups who may decide a gate; None: everybody with the role approver."""
    quorum: int = Field(1, ge=1, le=20)
    """Approvals that open a gate."""
    expires_in: float | None = Field(None, gt=0, le=86_400 * 366)
    """Seconds; None: the configured default."""
    never_expires: bool = False
    on_expire: OnExpire = OnExpire.EXPIRE
    default: str | None = None
    escalate_to: str | None = Field(None, min_length=1, max_length=200)
    """Group or person asked as well after `escalate`; None: the configured one."""
    on_deny: OnDeny = OnDeny.FAIL
    action: dict[str, Any] | None = None
    """What a gate allows: part of its digest, so that a changed action is asked again."""

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)

    @model_validator(mode="after")
    def _makes_sense(self) -> QuestionSpec:
        if self.escalate_to is not None and self.on_expire is not OnExpire.ESCALATE:
            raise ValueError("escalate_to goes with on_expire='escalate'")
        values = [choice.value for choice in self.choices]
        if len(values) != len({value.casefold() for value in values}):
            raise ValueError("two choices have the same value; make them differ")
        if self.kind is QuestionKind.APPROVAL:
            if self.choices or self.freeform or self.on_expire not in GATE_ENDS:
                raise ValueError("an approval takes approve or deny, and can expire or escalate")
            return self
        if not self.choices and not self.freeform:
            raise ValueError("a question needs choices, or freeform=True, or both")
        if (self.on_expire is OnExpire.DEFAULT) != (self.default is not None):
            raise ValueError("a default value goes with on_expire='default', and only with it")
        if self.default is not None and not self.freeform and self.default not in values:
            raise ValueError(f"the default {self.default!r} is not among the choices")
        return self

    @property
    def digest(self) -> str:
        """What an answer is bound to: ask the same key with another and it is asked anew."""
        return digest(
            {
                "kind": self.kind,
                "key": self.key,
                "text": self.text,
                "choices": sorted(choice.value for choice in self.choices),
                "freeform": self.freeform,
                "action": self.action,
            }
        )


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a question ended, and through whom.

    `outcome` is answered, approved, denied, expired, canceled or superseded; `via` is person,
    policy (a default or continue rule) or system.
    """

    outcome: str
    via: str
    value: str | None = None
    text: str | None = None
    by: tuple[str, ...] = ()
    reason: str | None = None
    self_approved: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return what the column keeps: only what is set."""
        fields: dict[str, Any] = {"outcome": self.outcome, "via": self.via}
        for name in ("value", "text", "reason"):
            if (value := getattr(self, name)) is not None:
                fields[name] = value
        if self.by:
            fields["by"] = list(self.by)
        if self.self_approved:
            fields["self_approved"] = True
        return fields


@dataclass(frozen=True, slots=True)
class Question:
    """One row of `job_questions`; called `D-142/2`."""

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
    resolution: dict[str, Any] | None
    asked_at: datetime
    expires_at: datetime | None
    answered_at: datetime | None
    reminders: int = 0
    escalate_to: str | None = None
    escalated_at: datetime | None = None
    patch_sha256: str | None = None
    """SHA-256 of the patch that was shown with it: of the tree that the run had saved."""

    @property
    def name(self) -> str:
        """What people call it."""
        return f"D-{self.job}/{self.ordinal}"

    def labels(self) -> Sequence[str]:
        """Return the values that may be chosen, in the order shown."""
        return [str(choice["value"]) for choice in self.choices]


@dataclass(frozen=True, slots=True)
class OpenQuestion(Question):
    """An open question with what people know its job by."""

    title: str = ""
    """The job's title, else its type."""
    repo: str | None = None
    """`owner/name`, or the name alone."""
    requester: str = ""
    """The person who asked for the job, else the channel's id of them."""
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What `ctx.ask` and `ctx.approve` return when there is an answer."""

    value: str | None
    text: str | None
    outcome: str
    via: str
    by: tuple[str, ...] = ()
    reason: str | None = None
    at: datetime | None = None

    @property
    def approved(self) -> bool:
        """Whether a gate was opened."""
        return self.outcome == "approved"


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """What `ctx.ask` returns when nobody answered and the question says `continue`."""

    outcome: str = "expired"
    approved: bool = False
    value: None = None
    text: None = None
