"""Cards of a board: their state, their moves by the status of a job, and comments. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from draftsman import text_template
from draftsman.jobs.job import Status


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


# Transition rules of a board, which move a card by the status or pull request of its job. Pure.
#
#     {"running": "5f1e…", "completed": {"to": "5f1e…", "from": ["5f1e…"]}, "merged": "5f1e…"}  # noqa: ERA001
#
# A rule has the id of a list; with `from` it moves a card only out of these lists, so that a card
# that a person moved elsewhere stays there.


ENDS: Final = ("merged", "closed")
"""Ends of a pull request, which have rules as statuses have."""
_LIST: Final = re.compile(r"[0-9a-f]{24}")


@dataclass(frozen=True, slots=True)
class CardMove:
    """A move to a list; `out_of` limits the lists that a card is moved from."""

    to: str
    out_of: tuple[str, ...] = ()

    def moves(self, now_in: str) -> bool:
        """Return whether a card in this list is to be moved."""
        return now_in != self.to and (not self.out_of or now_in in self.out_of)


def moves(rules: Mapping[str, Any], ready: str | None = None) -> dict[Status, CardMove]:
    """Parse the move of each status; `ready` is the default list of a completed job's card.

    Raises ValueError.
    """
    by_status = {
        _status(name): _move(name, rule) for name, rule in rules.items() if name not in ENDS
    }
    if ready is not None:
        by_status.setdefault(Status.COMPLETED, CardMove(ready))
    return by_status


def end_moves(rules: Mapping[str, Any]) -> dict[str, CardMove]:
    """Parse the move of each end of the pull request of a card's job; raises ValueError."""
    return {name: _move(name, rules[name]) for name in ENDS if name in rules}


def _status(name: str) -> Status:
    try:
        return Status(name)
    except ValueError:
        names = ", ".join((*Status, *ENDS))
        raise ValueError(f"transition rule {name[:40]!r}: unknown status; use {names}") from None


def _move(name: str, rule: Any) -> CardMove:
    to: Any = rule
    out_of: Any = ()
    if isinstance(rule, Mapping) and set(rule) <= {"to", "from"}:
        to = rule.get("to")
        out_of = rule.get("from", ())
    if not isinstance(out_of, list | tuple) or not all(map(_is_list, (to, *out_of))):
        raise ValueError(
            f"transition rule {name!r}: use the id of a list, 24 hexadecimal digits, or"
            ' {"to": ID, "from": [ID, …]}'
        )
    return CardMove(str(to), tuple(out_of))


def _is_list(value: Any) -> bool:
    return isinstance(value, str) and _LIST.fullmatch(value) is not None


# Templates of the comment with a result.


FIELDS: Final = (
    "job",
    "title",
    "status",
    "ending",
    "summary",
    "pr_url",
    "result",
    "repo",
    "agent",
    "invoker",
    "error",
)
"""Fields of a template."""


def check(template: str, *, name: str = "comment_template") -> str:
    """Validate a template; raises ValueError. `name` is that of the field or option."""
    return text_template.check(template, FIELDS, name=name, default="the default comment")
