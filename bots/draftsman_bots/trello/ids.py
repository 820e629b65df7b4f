"""Names on the wire: the keys of what comes in, and what Trello's ids tell. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

SECOND: Final = timedelta(seconds=1)
"""What an id tells of a time: not more."""
_OBJECT: Final = re.compile(r"[0-9a-f]{24}")


def is_id(value: object) -> bool:
    """Return whether this is an id of Trello's."""
    return isinstance(value, str) and _OBJECT.fullmatch(value) is not None


def action_key(action: str) -> str:
    """Return the key of an action, the same by whichever way it comes."""
    return f"trello:act:{action}"


def edit_key(comment: str, action: str) -> str:
    """Return the key of a comment as it was changed by an action."""
    return f"{action_key(comment)}:{action}"


def card_target(card: str) -> str:
    """Return how a card is written as a target."""
    return f"trello:{card}"


def created_at(id: str) -> datetime:
    """Return the second in which an id was made, by Trello's clock."""
    return datetime.fromtimestamp(int(id[:8], 16), UTC)


def just_after(id: str) -> str:
    """Return the first moment, as Trello writes it, that is surely later than an id."""
    return format_time(created_at(id) + SECOND)


def format_time(when: datetime) -> str:
    """Return a time as Trello writes it."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def parse_time(value: object) -> datetime | None:
    """Return the time of a text that Trello wrote, None for any other thing."""
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
