"""Events of the alerts of questions."""

from __future__ import annotations

from uuid import UUID

from draftsman.database.database import Connection, rows, scalar
from draftsman.database.named_queries import load
from draftsman_bots.pagers.records.pager_event import PagerEvent

_Q = load(__name__)


async def question(conn: Connection, id: UUID, ordinal: int) -> tuple[int, int] | None:
    """Return the question of an alert, by the id of its job; None if there is none."""
    records = await rows(conn, _Q["question"], {"id": id, "question": ordinal})
    return (records[0][0], records[0][1]) if records else None


async def record(conn: Connection, job: int, question: int, event: PagerEvent) -> bool:
    """Record an event of a pager; return whether it is new, and the newest of its question."""
    params = {
        "pager": event.pager,
        "id": event.id,
        "job": job,
        "question": question,
        "kind": event.kind,
        "occurred_at": event.occurred_at,
    }
    return await scalar(conn, _Q["record"], params)  # type: ignore[no-any-return]
