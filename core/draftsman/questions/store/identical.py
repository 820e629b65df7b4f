"""Identical open questions of several jobs."""

from __future__ import annotations

from draftsman.database.database import Connection, fetch_all
from draftsman.database.named_queries import load
from draftsman.questions.question import IdenticalQuestion

_Q = load("identical")


async def others(conn: Connection, job: int, ordinal: int) -> list[IdenticalQuestion]:
    """Return the other open questions that are identical to a question, in the order asked."""
    params = {"job": job, "question": ordinal}
    return await fetch_all(conn, _Q["others"], params, IdenticalQuestion)
