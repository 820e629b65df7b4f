"""Ladders of questions, and delegations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from draftsman.attention.attention import AttentionRow, QuestionNotification
from draftsman.attention.ladder import DueStep, StepPlan
from draftsman.database.database import Connection, fetch_all, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor

_Q = load("ladders")


async def profile_ladders(conn: Connection, job: int) -> dict[str, str]:
    """Return the ladders that the profile of a job's repository names, by kind of question."""
    return dict(await scalar(conn, _Q["profile_ladders"], {"job": job}) or {})


async def due(
    conn: Connection, term: LeaderTerm, limit: int, without: Sequence[int] = ()
) -> list[DueStep]:
    """Return the steps that are due, the longest overdue first, except for jobs `without`."""
    params = term.params(limit) | {"without": list(without)}
    return await fetch_all(conn, _Q["due"], params, DueStep)


async def take(conn: Connection, term: LeaderTerm, due: DueStep, plan: StepPlan) -> bool:
    """Take or postpone a step; False if another session did, or the term has ended."""
    params = {
        "job": due.job,
        "question": due.question,
        "step": due.step,
        "due_at": due.due_at,
        "later": plan.later,
        "notices": Jsonb([notice.as_json() for notice in plan.notices]),
        "names": list(plan.names),
        "seconds": plan.seconds,
    }
    return bool(await scalar(conn, _Q["take"], term.params(0) | params))


async def attention(conn: Connection, jobs: Sequence[int]) -> list[AttentionRow]:
    """Return the state of the open questions of these jobs."""
    return await fetch_all(conn, _Q["attention"], {"jobs": list(jobs)}, AttentionRow)


async def notifications(conn: Connection, jobs: Sequence[int]) -> list[QuestionNotification]:
    """Return the notifications about the questions of these jobs, oldest first."""
    return await fetch_all(conn, _Q["notifications"], {"jobs": list(jobs)}, QuestionNotification)


async def delegate(
    conn: Connection,
    job: int,
    question: int,
    actor: Actor,
    seconds: float,
    delegate: str,
    target: str | None,
) -> datetime:
    """Ask another person to answer; `target` is that person's Slack user. Return until when."""
    params: dict[str, Any] = {"job": job, "question": question, "seconds": seconds}
    params |= {"source": actor.channel, "actor_id": actor.id, "person": actor.voter}
    params |= {"delegate": delegate, "target": target}
    return await scalar(conn, _Q["delegate"], params)  # type: ignore[no-any-return]
