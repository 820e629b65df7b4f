"""Digests of questions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time
from typing import Any

from psycopg.types.json import Jsonb

from draftsman.attention.digests import DigestHours, DigestQuestion
from draftsman.database.database import Connection, execute, fetch_all, fetch_one, rows
from draftsman.database.named_queries import load
from draftsman.database.selection import ALL, Selection
from draftsman.deliveries.target import Target
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


async def readers(conn: Connection, job: int, question: int) -> frozenset[str]:
    """Return the people who have a question in a digest."""
    params = {"job": job, "question": question}
    return frozenset(row[0] for row in await rows(conn, _Q["readers"], params))


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


async def send(
    conn: Connection,
    job: int,
    target: Target,
    key: str,
    text: str,
    *,
    to: str | None = None,
    rule: int | None = None,
) -> None:
    """Write the message of a digest, once for each key; `job` is that of a question in it.

    `to` is the account to mention where others read the target as well. Also the message about a
    proposed `rule`.
    """
    params = {"job": job, "channel": target.channel, "target": target.target, "key": key}
    payload: dict[str, Any] = {"text": text, "names_job": True}
    payload |= {} if to is None else {"to": to}
    payload |= {} if rule is None else {"rule": rule}
    await execute(conn, _Q["send"], params | {"payload": Jsonb(payload)})
