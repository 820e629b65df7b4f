"""Retries and cancels of jobs, and messages of people to jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from draftsman.database.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    rows,
    scalar,
)
from draftsman.database.named_queries import load
from draftsman.jobs.control.job_message import JobMessage
from draftsman.jobs.job_summary import Dismissal, Replacement
from draftsman.jobs.runs.run import Lease
from draftsman.people.actor import Actor

_Q = load(__name__)


async def retries(conn: Connection, jobs: Sequence[int]) -> dict[int, int]:
    """Return the retry of each of these finished jobs that was retried."""
    return dict(await rows(conn, _Q["retries"], {"jobs": list(jobs)}))


async def pause(conn: Connection, job: int, by: str, reason: str, event: str | None = None) -> bool:
    """Pause an unfinished job; False when it is already paused."""
    params = {"job": job, "by": by, "reason": reason, "event": event}
    return bool(await scalar(conn, _Q["pause"], params))


async def unpause(conn: Connection, job: int, by: str, event: str | None = None) -> bool:
    """End the pause of a job; False when it has none."""
    return bool(await scalar(conn, _Q["unpause"], {"job": job, "by": by, "event": event}))


async def has_control_event(conn: Connection, job: int, event: str) -> bool:
    """Return whether an event of a channel has paused or dismissed a locked job, or undone it."""
    return bool(await scalar(conn, _Q["has_control_event"], {"job": job, "event": event}))


async def paused(conn: Connection, before: int, limit: int) -> list[int]:
    """Return the numbers of paused jobs below `before`, newest first; some may have ended."""
    params = {"before": before, "limit": limit}
    return [row[0] for row in await rows(conn, _Q["paused"], params)]


async def dismiss(
    conn: Connection, job: int, by: str, reason: str | None, event: str | None = None
) -> bool:
    """Dismiss an open failure; False when the job is none."""
    params = {"job": job, "by": by, "reason": reason, "event": event}
    return bool(await scalar(conn, _Q["dismiss"], params))


async def undismiss(conn: Connection, job: int, by: str, event: str | None = None) -> bool:
    """Take back the dismissal of a failure; False when it has none."""
    return bool(await scalar(conn, _Q["undismiss"], {"job": job, "by": by, "event": event}))


async def dismissal(conn: Connection, job: int) -> Dismissal | None:
    """Return who dismissed a failure, when and why; None if it is not dismissed."""
    return await fetch_one(conn, _Q["dismissal"], {"job": job}, Dismissal)


async def open_failures(conn: Connection, before: int, limit: int) -> list[int]:
    """Return the open failures with numbers below `before`, newest first."""
    params = {"before": before, "limit": limit}
    return [row[0] for row in await rows(conn, _Q["open_failures"], params)]


async def refuse(conn: Connection, job: int, by: str, detail: dict[str, Any]) -> None:
    """Record a denied action on a locked job, once for each `event`."""
    await execute(conn, _Q["refuse"], {"job": job, "by": by, "detail": Jsonb(detail)})


async def request_columns(conn: Connection, job: int) -> tuple[dict[str, Any], int] | None:
    """Return all columns of the job as JSON, and the first job of its chain."""
    records = await rows(conn, _Q["request_columns"], {"job": job})
    return (records[0][0], records[0][1]) if records else None


async def copy_checkpoint(conn: Connection, old: int, new: int) -> bool:
    """Copy the newest checkpoint and work bundle; False when there is none."""
    return bool(await scalar(conn, _Q["copy_checkpoint"], {"old": old, "new": new}))


async def late_answer(conn: Connection, job: int) -> tuple[str, str] | None:
    """Return a question's key and the answer that arrived after it expired."""
    records = await rows(conn, _Q["late_answer"], {"job": job})
    return (records[0][0], records[0][1]) if records else None


async def replacement(conn: Connection, job: int) -> Replacement | None:
    """Return the unique key of a job, and the jobs that it replaced and that replaced it."""
    return await fetch_one(conn, _Q["replacement"], {"job": job}, Replacement)


# Messages of people to jobs.


Sent = tuple[int, int | None, bool, bool]
"""The job and the number of a message, whether it is new, and whether it has the text."""


async def send_message(
    conn: Connection, job: int, actor: Actor, event: str, text: str
) -> Sent | None:
    """Store a message; return its job and number, whether it is new, and whether it has this text.

    None if the job has finished; no number if it has the maximum of messages.
    """
    params = {
        "job": job,
        "source": actor.channel,
        "sender_id": actor.id,
        "display_name": actor.display_name,
        "sender": actor.voter,
        "event": event,
        "text": text,
    }
    records = await rows(conn, _Q["send_message"], params)
    if not records:
        return None
    stored_job, ordinal, is_new, is_equal = records[0]
    return stored_job, ordinal, is_new, is_equal


async def message_of_event(
    conn: Connection, job: int, actor: Actor, event: str, text: str
) -> Sent | None:
    """Return the message of an event, as `send_message`; None without one.

    That of an event that requested changes of an approval is the message that its agent is told.
    """
    params = {"job": job, "source": actor.channel, "event": event, "text": text}
    records = await rows(conn, _Q["message_of_event"], params)
    return (job, records[0][0], False, records[0][1]) if records else None


async def messages_of_job(conn: Connection, job: int) -> list[JobMessage]:
    """Return the messages of a job, oldest first."""
    return await fetch_all(conn, _Q["messages_of_job"], {"job": job}, JobMessage)


async def hand_messages(conn: Connection, lease: Lease, ordinals: Sequence[int]) -> bool:
    """Record that the agent of the run is given messages; False after a lost lease."""
    return await scalar(conn, _Q["hand_messages"], _of_run(lease, ordinals)) is not None


async def deliver_messages(conn: Connection, lease: Lease, ordinals: Sequence[int]) -> bool:
    """Record that messages are delivered; False after a lost lease."""
    return await scalar(conn, _Q["deliver_messages"], _of_run(lease, ordinals)) is not None


async def inherit_messages(conn: Connection, old: int, new: int) -> int:
    """Copy the undelivered messages of a job to its retry; return their number."""
    return int(await scalar(conn, _Q["inherit_messages"], {"old": old, "new": new}))


def _of_run(lease: Lease, ordinals: Sequence[int]) -> dict[str, object]:
    return {"job": lease.job, "token": lease.token, "ordinals": list(ordinals)}
