"""Trello boards: label rules that create jobs, and episodes of labels on cards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.jobs.job import Mode, Status
from draftsman.schedules.names import NAME, NAMES
from draftsman.text import clean_fields
from draftsman_bots.trello.records.cards import CardMove, check, end_moves, moves

FORM_REF: Final = re.compile(
    rf"(?:template/)?{NAME.pattern}(?:@[1-9][0-9]{{0,8}})?|type/[^\s/@]{{1,100}}"
)
"""A template, optionally in a version, or a job type."""
OBJECT: Final = r"[0-9a-f]{24}"
"""Pattern of Trello's ids."""
ObjectId = Annotated[str, matching(OBJECT, "must be a Trello id: 24 hexadecimal digits")]


class LabelRule(BaseModel):
    """The job that a label creates."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    name: str = Field("", max_length=200)
    """Name of the label when it was added; a label is identified by its id."""
    mode: Mode = Mode.FIX
    agent: str | None = Field(None, min_length=1, max_length=100)
    template: str | None = None
    """What the job is made from, instead of mode and agent: `NAME`, `NAME@3`, `type/NAME`.

    A name alone is that of a template or of a described job type.
    """

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)

    @field_validator("template")
    @classmethod
    def _check_template(cls, value: str | None) -> str | None:
        if value is not None and FORM_REF.fullmatch(value) is None:
            raise ValueError(f"template: {NAMES}; NAME@3 for a version, type/NAME for a type")
        return value

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.template is not None and self.agent is not None:
            raise ValueError("a template sets the agent itself")
        return self

    @property
    def text(self) -> str:
        """The jobs that the label creates: `fix by tidy`, `template bump`, `type report:weekly`."""
        if self.template is not None:
            kind, _, name = self.template.rpartition("/")
            return f"{kind or 'template'} {name}"
        return f"{self.mode} by {self.agent}" if self.agent else str(self.mode)


class ChecklistUse(StrEnum):
    """Questions whose choices are also a checklist of the card."""

    OFF = "off"
    QUESTIONS = "questions"
    ALL = "all"
    """Questions and approvals."""


class FieldUse(StrEnum):
    """The use of a custom field."""

    STATUS = "status"
    COST = "cost"


class BoardConfig(BaseModel):
    """Configuration of a watched board."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    board_id: ObjectId
    name: str = Field(min_length=1, max_length=500)
    url: str = Field("", max_length=2000)
    labels: dict[ObjectId, LabelRule] = Field({}, max_length=100)
    """Rules by the ids of their labels."""
    ignored_list_ids: tuple[ObjectId, ...] = Field((), max_length=500)
    queued_label_id: ObjectId | None = None
    """Label that replaces the label of a created job; None: the label is only removed."""
    ready_for_review_list_id: ObjectId | None = None
    transition_rules: dict[str, Any] = {}
    comment_template: str | None = Field(None, max_length=16_000)
    include_existing: bool = False
    """Whether labels that existed before the first poll create jobs."""
    checklists: ChecklistUse = ChecklistUse.OFF
    due_dates: bool = False
    """Whether the due date of a card shows when its question expires, and extends it."""
    custom_fields: dict[FieldUse, ObjectId] = {}
    digest_card_id: ObjectId | None = None
    """Card whose comments are the digests of people."""
    webhook_id: ObjectId | None = None

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        plain = {key: value for key, value in data.items() if key != "labels"}
        return {**data, **clean_fields(plain)}

    @field_validator("comment_template")
    @classmethod
    def _check_template(cls, value: str | None) -> str | None:
        return None if value is None else check(value)

    @field_validator("transition_rules")
    @classmethod
    def _check_rules(cls, value: dict[str, Any]) -> dict[str, Any]:
        moves(value)
        end_moves(value)
        return value

    @model_validator(mode="after")
    def _check_queued_label(self) -> Self:
        if self.queued_label_id in self.labels:
            raise ValueError("the queued label may not be a label that creates jobs")
        return self

    @property
    def moves(self) -> dict[Status, CardMove]:
        """The move of a card for each status."""
        return moves(self.transition_rules, self.ready_for_review_list_id)

    @property
    def end_moves(self) -> dict[str, CardMove]:
        """The move of a card for each end of the pull request of its job."""
        return end_moves(self.transition_rules)


class EpisodeStage(StrEnum):
    """Progress of an episode."""

    PENDING = "pending"
    """The job is not yet created."""
    SUBMITTED = "submitted"
    """The job was created or joined; the label is not yet replaced."""
    DONE = "done"


@dataclass(frozen=True, slots=True)
class LabelSighting:
    """An observed label on a card, or its absence.

    `at` is the card's last activity in Trello, `by` the member who added the label, if known.
    """

    card: str
    label: str
    at: datetime | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Episode:
    """The time of a label on a card, from its first observation after an absence.

    `added_by` is the id of the member who added it, None while it is not known.
    """

    card: str
    label: str
    board: str
    episode: int
    present: bool
    stage: EpisodeStage
    job: int | None
    added_by: str | None
    seen_at: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "stage", EpisodeStage(self.stage))  # a row has text

    @property
    def key(self) -> str:
        """Idempotency key of the job."""
        return f"trello:lbl:{self.card}:{self.label}:{self.episode}"


@dataclass(frozen=True, slots=True)
class BoardCursor:
    """Position up to which a board was read; `age` is in seconds since the last poll."""

    board: str
    actions_until: datetime
    baseline_at: datetime
    polled_at: datetime
    age: float


def card_subject_key(card: str) -> str:
    """Return the subject key of a card, which allows one unfinished job at a time."""
    return f"trello:card:{card}"
