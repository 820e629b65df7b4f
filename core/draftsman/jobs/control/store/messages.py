"""Messages of people to jobs."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.database.database import Connection, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.control.job_message import JobMessage
from draftsman.jobs.runs.run import Lease
from draftsman.people.actor import Actor

_Q = load("job_messages")


async def send(
    conn: Connection, job: int, actor: Actor, event: str, text: str
) -> tuple[int, int | None, bool, bool] | None:
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
    records = await rows(conn, _Q["send"], params)
    if not records:
        return None
    stored_job, ordinal, is_new, is_equal = records[0]
    return stored_job, ordinal, is_new, is_equal


async def of_job(conn: Connection, job: int) -> list[JobMessage]:
    """Return the messages of a job, oldest first."""
    return await fetch_all(conn, _Q["of_job"], {"job": job}, JobMessage)


async def hand(conn: Connection, lease: Lease, ordinals: Sequence[int]) -> bool:
    """Record that the agent of the run is given messages; False after a lost lease."""
    return await scalar(conn, _Q["hand"], _of_run(lease, ordinals)) is not None


async def deliver(conn: Connection, lease: Lease, ordinals: Sequence[int]) -> bool:
    """Record that messages are delivered; False after a lost lease."""
    return await scalar(conn, _Q["deliver"], _of_run(lease, ordinals)) is not None


async def inherit(conn: Connection, old: int, new: int) -> int:
    """Copy the undelivered messages of a job to its retry; return their number."""
    return int(await scalar(conn, _Q["inherit"], {"old": old, "new": new}))


def _of_run(lease: Lease, ordinals: Sequence[int]) -> dict[str, object]:
    return {"job": lease.job, "token": lease.token, "ordinals": list(ordinals)}
