"""State of a card in Trello: checklists of questions, and its due date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class CardChecklist:
    """The checklist of a question; `items` has the number of the choice of each item."""

    card: str
    job: int
    question: int
    checklist: str
    items: dict[str, int]
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CardDueDate:
    """The due date of a card that shows the expiry of a question.

    `earlier` was there before. `shown` is on the card, or about to be while the card has
    `replaced`. A person `changed` it: it stays when the question closes.
    """

    card: str
    board: str
    earlier: datetime | None
    shown: datetime
    replaced: datetime | None
    changed: bool = False

    def is_ours(self, current: datetime | None) -> bool:
        """Return whether draftsman wrote this date, or was about to replace it."""
        return current in (self.shown, self.replaced)


@dataclass(frozen=True, slots=True)
class ExpiringQuestion:
    """An open question on a card, and when it expires."""

    job: int
    question: int
    expires_at: datetime

    @property
    def due(self) -> datetime:
        """The expiry as a due date, in whole seconds."""
        return (self.expires_at + timedelta(seconds=0.5)).replace(microsecond=0)
