"""Trello ids, times and idempotency keys. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

SECOND: Final = timedelta(seconds=1)
"""Resolution of the creation time in an id."""
_OBJECT: Final = re.compile(r"[0-9a-f]{24}")


def is_id(value: object) -> bool:
    """Return whether a value is a Trello id."""
    return isinstance(value, str) and _OBJECT.fullmatch(value) is not None


def action_key(action: str) -> str:
    """Return the idempotency key of an action, the same for webhook and poll."""
    return f"trello:act:{action}"


def edit_key(comment: str, action: str) -> str:
    """Return the idempotency key of a comment as edited by an action."""
    return f"{action_key(comment)}:{action}"


def card_target(card: str) -> str:
    """Return a card as a delivery target."""
    return f"trello:{card}"


def created_at(id: str) -> datetime:
    """Return the second in which an id was created, by Trello's clock."""
    return datetime.fromtimestamp(int(id[:8], 16), UTC)


def just_after(id: str) -> str:
    """Return the earliest time, in Trello's format, that is certainly later than an id."""
    return format_time(created_at(id) + SECOND)


def format_time(when: datetime) -> str:
    """Return a time in Trello's format."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def parse_time(value: object) -> datetime | None:
    """Return the time in a Trello timestamp, or None if it is not valid."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    try:
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (OverflowError, ValueError):
        return None
