"""Acknowledgments and snoozes of questions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from draftsman.attention.attention import ReminderDelay
from draftsman.database.database import Connection, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.people.actor import Actor

if TYPE_CHECKING:
    from uuid import UUID

    from draftsman.attention.pager_event import PagerEvent

_Q = load("acknowledgments")


async def acknowledge(
    conn: Connection, job: int, question: int, actor: Actor, seconds: float
) -> ReminderDelay:
    """Acknowledge a question; return the acknowledgment that holds, maybe of another person."""
    params = _params(job, question, actor, seconds)
    ((holder, until),) = await rows(conn, _Q["acknowledge"], params)
    return ReminderDelay(holder, until, acknowledged=True)


async def snooze(
    conn: Connection, job: int, question: int, actor: Actor, seconds: float
) -> datetime:
    """Pause the reminders of the actor; return until when."""
    params = _params(job, question, actor, seconds)
    return await scalar(conn, _Q["snooze"], params)  # type: ignore[no-any-return]


async def delays(conn: Connection, job: int, question: int) -> list[ReminderDelay]:
    """Return what delays the reminders of a question, the acknowledgment first."""
    return await fetch_all(conn, _Q["delays"], {"job": job, "question": question}, ReminderDelay)


async def paged(conn: Connection, id: UUID, question: int) -> tuple[int, int] | None:
    """Return the question of an alert, by the id of its job; None if there is none."""
    records = await rows(conn, _Q["paged"], {"id": id, "question": question})
    return (records[0][0], records[0][1]) if records else None


async def record_page(conn: Connection, job: int, question: int, event: PagerEvent) -> bool:
    """Record an event of a pager; return whether it is new, and the newest of its question."""
    params = {
        "pager": event.pager,
        "id": event.id,
        "job": job,
        "question": question,
        "kind": event.kind,
        "occurred_at": event.occurred_at,
    }
    return await scalar(conn, _Q["record_page"], params)  # type: ignore[no-any-return]


def _params(job: int, question: int, actor: Actor, seconds: float) -> dict[str, Any]:
    return {
        "job": job,
        "question": question,
        "source": actor.channel,
        "actor_id": actor.id,
        "person": actor.voter,
        "seconds": seconds,
    }
