"""What happened to the alert of a question in a pager."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class PagerEvent:
    """A change of the alert of a question."""

    pager: str
    """Table of the pager."""
    id: str
    """Id of the event, the same when it is delivered again."""
    job: UUID
    question: int
    kind: str
    """`acknowledged`, `resolved` or `reopened`."""
    occurred_at: datetime
    users: tuple[str, ...] = ()
    """Ids and addresses of the person in lower case; none: no person, but an integration."""
    name: str = ""
    """Name of the person there."""
