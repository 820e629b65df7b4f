"""Digests of questions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time

from draftsman.attention.digests import DigestHours, DigestQuestion
from draftsman.database.database import Connection, execute, fetch_all, fetch_one, rows
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor

_Q = load("digests")


async def choose(
    conn: Connection,
    person: str,
    hours: Sequence[time],
    timezone: str | None,
    default: str,
    actor: Actor,
) -> None:
    """Set the hours of a person's digests; none end them.

    Without a time zone it is that of the person, else the default.
    """
    params = {"person": person, "hours": list(hours), "timezone": timezone, "default": default}
    await execute(conn, _Q["choose"], params | {"actor": actor.name})


async def hours(conn: Connection, person: str) -> DigestHours | None:
    """Return the hours of a person's digests; None without digests."""
    return await fetch_one(conn, _Q["hours"], {"person": person}, DigestHours)


async def take_due(
    conn: Connection,
    term: LeaderTerm,
    limit: int,
    away: Sequence[str] = (),
    selection: Selection = ALL,
) -> list[DigestQuestion]:
    """Mark questions whose digest is due as sent; return those that are open, by person.

    Those of people who are `away` stay due.
    """
    params = term.params(limit) | {"away": list(away)} | selection.params
    return await fetch_all(conn, _Q["take_due"], params, DigestQuestion)


async def candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs of the questions whose digest is due."""
    params = term.params(limit) | {"away": []} | selection.params
    return sorted({row[0] for row in await rows(conn, _Q["candidates"], params)})
