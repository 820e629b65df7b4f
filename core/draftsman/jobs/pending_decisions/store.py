"""Pending decisions: answers, decisions and cancels in their undo window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from psycopg.types.json import Jsonb

from draftsman.database.database import Connection, fetch_all, fetch_one, scalar
from draftsman.database.named_queries import load, load_parts
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor

_Q = load(__name__)

DECISIONS_DUE: Final = load_parts(__name__)["decisions_due"]
"""Query of the time when the sweep is due."""


async def hold(
    conn: Connection,
    job: int,
    question: int | None,
    actor: Actor,
    event: str,
    decision: dict[str, Any],
    payload: dict[str, Any] | None,
    seconds: float,
) -> PendingDecision | None:
    """Store a decision that is due in `seconds`, once for each event.

    None if the person has another pending decision on the question or job.
    """
    params = {
        "job": job,
        "question": question,
        "source": actor.channel,
        "event": event,
        "actor_id": actor.id,
        "display_name": actor.display_name,
        "voter": actor.voter,
        "is_owner": actor.owner,
        "decision": Jsonb(decision),
        "payload": None if payload is None else Jsonb(payload),
        "seconds": seconds,
    }
    return await fetch_one(conn, _Q["hold"], params, PendingDecision)


async def of_question(
    conn: Connection, job: int, question: int, voter: str
) -> PendingDecision | None:
    """Return the decision of a person on a question; None without one."""
    params = {"job": job, "question": question, "voter": voter}
    return await fetch_one(conn, _Q["of_question"], params, PendingDecision)


async def of_jobs(conn: Connection, jobs: Sequence[int]) -> list[PendingDecision]:
    """Return of each job the decision that takes effect first."""
    return await fetch_all(conn, _Q["of_jobs"], {"jobs": list(jobs)}, PendingDecision)


async def newest_of(conn: Connection, voter: str, job: int | None) -> PendingDecision | None:
    """Return the newest decision of a person, also of a single job; None without one."""
    return await fetch_one(conn, _Q["newest_of"], {"voter": voter, "job": job}, PendingDecision)


async def has_leader(conn: Connection) -> bool:
    """Return whether a leader holds its lease."""
    return bool(await scalar(conn, _Q["has_leader"]))


async def take(conn: Connection, id: int, *, early: bool) -> bool:
    """Lock a due decision for this transaction; False if it was applied or undone.

    With `early`, its own person also takes it before it is due.
    """
    return bool(await scalar(conn, _Q["take"], {"id": id, "early": early}))


async def finish(conn: Connection, id: int) -> bool:
    """Delete the decision that this transaction has taken."""
    return bool(await scalar(conn, _Q["finish"], {"id": id}))


async def undo(conn: Connection, id: int) -> bool:
    """Delete a decision that has not taken effect; False if it has."""
    return bool(await scalar(conn, _Q["undo"], {"id": id}))


async def due(
    conn: Connection, term: LeaderTerm, limit: int, without: Sequence[int] = ()
) -> list[PendingDecision]:
    """Return the decisions that are due, except for those `without`."""
    params = term.params(limit) | {"without": list(without)}
    return await fetch_all(conn, _Q["due"], params, PendingDecision)
