"""Boards: which labels of a Trello board make jobs, and what was seen of them on its cards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from draftsman.domain.job import Mode, Status
from draftsman.domain.text import clean_fields
from draftsman.domain.trello.card_moves import CardMove, moves
from draftsman.domain.trello.comment_template import check
from draftsman.field_errors import matching

OBJECT: Final = r"[0-9a-f]{24}"
"""How Trello's ids look."""
ObjectId = Annotated[str, matching(OBJECT, "give an id of Trello: 24 hexadecimal digits")]


class LabelRule(BaseModel):
    """What a label asks for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field("", max_length=200)
    """What it was called; a label is known by its id, and may be renamed."""
    mode: Mode = Mode.FIX
    agent: str | None = Field(None, min_length=1, max_length=100)

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)


class BoardConfig(BaseModel):
    """A board that is watched."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    board_id: ObjectId
    name: str = Field(min_length=1, max_length=500)
    url: str = Field("", max_length=2000)
    labels: dict[ObjectId, LabelRule] = Field({}, max_length=100)
    """By the labels' ids."""
    ignored_list_ids: tuple[ObjectId, ...] = Field((), max_length=500)
    queued_label_id: ObjectId | None = None
    """Takes the place of a label that made a job; None: that one is merely taken off."""
    ready_for_review_list_id: ObjectId | None = None
    transition_rules: dict[str, Any] = {}
    comment_template: str | None = Field(None, max_length=16_000)
    take_existing: bool = False
    """Whether labels that were there before the first look make jobs as well."""
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
    def _can_be_filled(cls, value: str | None) -> str | None:
        return None if value is None else check(value)

    @field_validator("transition_rules")
    @classmethod
    def _can_be_followed(cls, value: dict[str, Any]) -> dict[str, Any]:
        moves(value)
        return value

    @model_validator(mode="after")
    def _swaps_for_another(self) -> Self:
        if self.queued_label_id in self.labels:
            raise ValueError("the queued label may not be one that makes jobs")
        return self

    @property
    def moves(self) -> dict[Status, CardMove]:
        """Where a card goes in each status."""
        return moves(self.transition_rules, self.ready_for_review_list_id)


class EpisodeStage(StrEnum):
    """What became of an episode."""

    PENDING = "pending"
    """It is to become a job."""
    SUBMITTED = "submitted"
    """It became one, or joined one, and its label is to be swapped."""
    DONE = "done"


@dataclass(frozen=True, slots=True)
class LabelSighting:
    """A label that was, or was not, on a card; `at` is Trello's latest word on the card."""

    card: str
    label: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """A label on a card from when it was seen there, after it was seen absent."""

    card: str
    label: str
    board: str
    episode: int
    present: bool
    stage: EpisodeStage
    job: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "stage", EpisodeStage(self.stage))  # the store's is text

    @property
    def key(self) -> str:
        """The idempotency key of its job."""
        return f"trello:lbl:{self.card}:{self.label}:{self.episode}"


@dataclass(frozen=True, slots=True)
class BoardCursor:
    """How far a board was read; `age` in seconds since it was looked at."""

    board: str
    actions_until: datetime
    baseline_at: datetime
    polled_at: datetime
    age: float


def card_subject_key(card: str) -> str:
    """Return what the work on a card is about: one live job at a time."""
    return f"trello:card:{card}"
