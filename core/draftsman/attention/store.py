"""Acknowledgments, ladders, reminders, digests and figures of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from typing import TYPE_CHECKING, Any, Final

from psycopg.types.json import Jsonb

from draftsman.attention.attention import (
    AttentionRow,
    QuestionAttention,
    QuestionNotification,
    ReminderDelay,
    attention_of,
)
from draftsman.attention.digests import DigestHours, DigestQuestion
from draftsman.attention.figures import AttentionFigures, FigureGroup, Interruption
from draftsman.attention.ladder import DueStep, StepPlan
from draftsman.database.database import Connection, execute, fetch_all, fetch_one, rows, scalar
from draftsman.database.named_queries import load, load_parts
from draftsman.database.selection import ALL, Selection
from draftsman.deliveries.target import Target
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.question import QuestionKind

if TYPE_CHECKING:
    pass

_Q = load(__name__)

LADDERS_DUE: Final = load_parts(__name__)["ladders_due"]
REMIND_DUE: Final = load_parts(__name__)["remind_due"]
"""Queries of the times when sweeps are due."""


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


def _params(job: int, question: int, actor: Actor, seconds: float) -> dict[str, Any]:
    return {
        "job": job,
        "question": question,
        "source": actor.channel,
        "actor_id": actor.id,
        "person": actor.voter,
        "seconds": seconds,
    }


# Ladders of questions, and delegations.


async def profile_ladders(conn: Connection, job: int) -> dict[str, str]:
    """Return the ladders that the profile of a job's repository names, by kind of question."""
    return dict(await scalar(conn, _Q["profile_ladders"], {"job": job}) or {})


async def due_steps(
    conn: Connection, term: LeaderTerm, limit: int, without: Sequence[int] = ()
) -> list[DueStep]:
    """Return the steps that are due, the longest overdue first, except for jobs `without`."""
    params = term.params(limit) | {"without": list(without)}
    return await fetch_all(conn, _Q["due_steps"], params, DueStep)


async def take_step(conn: Connection, term: LeaderTerm, due: DueStep, plan: StepPlan) -> bool:
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
    return bool(await scalar(conn, _Q["take_step"], term.params(0) | params))


async def ladder_attention(conn: Connection, jobs: Sequence[int]) -> list[AttentionRow]:
    """Return the state of the open questions of these jobs."""
    return await fetch_all(conn, _Q["ladder_attention"], {"jobs": list(jobs)}, AttentionRow)


async def notifications(conn: Connection, jobs: Sequence[int]) -> list[QuestionNotification]:
    """Return the notifications about the questions of these jobs, oldest first."""
    return await fetch_all(conn, _Q["notifications"], {"jobs": list(jobs)}, QuestionNotification)


async def attention(
    conn: Connection, jobs: Sequence[int]
) -> dict[tuple[int, int], QuestionAttention]:
    """Return the notifications and delays of the open questions of jobs, by job and ordinal."""
    states = await ladder_attention(conn, jobs)
    sent = await notifications(conn, jobs) if states else []
    return {
        (row.job, row.question): attention_of(row, sent, await delays(conn, row.job, row.question))
        for row in states
    }


async def delegate(
    conn: Connection,
    job: int,
    question: int,
    actor: Actor,
    seconds: float,
    delegate: str,
    target: Target | None,
) -> datetime:
    """Ask another person to answer; `target` reaches that person. Return until when."""
    params: dict[str, Any] = {"job": job, "question": question, "seconds": seconds}
    params |= {"source": actor.channel, "actor_id": actor.id, "person": actor.voter}
    params |= {"delegate": delegate, "channel": None, "target": None}
    if target is not None:
        params |= {"channel": target.channel, "target": target.target}
    return await scalar(conn, _Q["delegate"], params)  # type: ignore[no-any-return]


# Reminders of open questions.


@dataclass(frozen=True, slots=True)
class DueReminder:
    """An open question with a due reminder; `now` is the database's time."""

    job: int
    question: int
    remind_at: datetime
    kind: QuestionKind
    approvers: list[str]
    invoker: str
    repo: str
    now: datetime
    snoozed: list[str] = field(default_factory=list)
    """People who snoozed it, and until when."""
    snoozed_until: list[datetime] = field(default_factory=list)
    direct: list[str] = field(default_factory=list)
    """Keys of the threads that reach a single known person."""
    owners: list[str] = field(default_factory=list)
    """The person of each direct thread."""
    shared: bool = True
    """Whether it has another target."""
    acknowledged_until: datetime | None = None
    approved_by: list[str] = field(default_factory=list)
    """The people who approved so far, of an approval that needs several."""


async def due_reminders(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> list[DueReminder]:
    """Return due reminders, the longest overdue first."""
    return await fetch_all(
        conn, _Q["due_reminders"], term.params(limit) | selection.params, DueReminder
    )


async def remind(
    conn: Connection,
    term: LeaderTerm,
    reminders: Sequence[tuple[DueReminder, datetime | None]],
    silent: Sequence[str] = (),
) -> int:
    """Send these reminders, or postpone them to the given time; return how many were still due.

    `silent` are the keys of threads that get none.
    """
    params = {
        "jobs": [reminder.job for reminder, _ in reminders],
        "questions": [reminder.question for reminder, _ in reminders],
        "seen": [reminder.remind_at for reminder, _ in reminders],
        "later": [postponed_to for _, postponed_to in reminders],
        "silent": list(silent),
    }
    return len(await rows(conn, _Q["remind"], term.params(0) | params))


# Digests of questions.


async def choose_digest_hour(
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
    params = {
        "person": person,
        "hours": list(hours),
        "timezone": timezone,
        "default": default,
    }
    await execute(conn, _Q["choose_digest_hour"], params | {"actor": actor.name})


async def digest_hours(conn: Connection, person: str) -> DigestHours | None:
    """Return the hours of a person's digests; None without digests."""
    return await fetch_one(conn, _Q["digest_hours"], {"person": person}, DigestHours)


async def take_due_digests(
    conn: Connection,
    term: LeaderTerm,
    limit: int,
    away: Sequence[str] = (),
    people_repos: Mapping[str, Sequence[str]] | None = None,
    selection: Selection = ALL,
) -> list[DigestQuestion]:
    """Mark questions whose digest is due as sent; return those that are open, by person.

    Those of people who are `away` stay due. `people_repos` are the visible repositories of people
    who may not see all.
    """
    people = {"away": list(away), "people_repos": Jsonb(people_repos or {})}
    params = term.params(limit) | people | selection.params
    return await fetch_all(conn, _Q["take_due_digests"], params, DigestQuestion)


async def digest_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs of the questions whose digest is due."""
    params = term.params(limit) | {"away": []} | selection.params
    return sorted({row[0] for row in await rows(conn, _Q["digest_candidates"], params)})


# Views of questions, and the figures of people's time.


async def record_views(conn: Connection, refs: Sequence[tuple[int, int]], actor: Actor) -> int:
    """Record the first view of these open questions; return the number of new views."""
    params = {
        "jobs": [job for job, _ in refs],
        "questions": [ordinal for _, ordinal in refs],
        "source": actor.channel,
        "actor_id": actor.id,
        "person": actor.voter,
    }
    return int(await scalar(conn, _Q["record_views"], params))


async def figures(
    conn: Connection, seconds: float, limit: int, until: float = 0
) -> list[AttentionFigures]:
    """Return the figures of the newest questions, without pings in quiet hours."""
    params = {"seconds": seconds, "until": until, "limit": limit}
    rows = await fetch_all(conn, _Q["figures"], params, AttentionFigures)
    return [replace(row, by=FigureGroup(row.by)) for row in rows]


async def interruptions(
    conn: Connection, seconds: float, limit: int, until: float = 0
) -> list[Interruption]:
    """Return the interruptions of people by these questions."""
    params = {"seconds": seconds, "until": until, "limit": limit}
    return await fetch_all(conn, _Q["interruptions"], params, Interruption)
