"""Pull requests of jobs, events of people on forges, and follow-ups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import timedelta
from typing import Any, Final

from psycopg.rows import dict_row
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
from draftsman.forges.follow_up import (
    STATE,
    AnswerDue,
    Family,
    FamilyJob,
    FollowedPull,
    FollowUpEvent,
    TrackedPull,
)
from draftsman.forges.forge_event import EventKind, ForgeEvent, StoredEvent
from draftsman.forges.issue_target import CHANNEL
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.text import clean

_Q = load(__name__)

MAX_PULLS: Final = 1000
"""Maximum number of open pull requests of a forge that are read, the newest first."""
MAX_CLOSED: Final = 200
CLOSED_AGE: Final = timedelta(days=30)
"""Time after its end in which a closed pull request is read, to see whether it is open again."""


async def receive(conn: Connection, forge: str, events: Sequence[ForgeEvent]) -> list[int]:
    """Store the events that are not known; return their ids."""
    columns = [clean(asdict(event) | {"at": event.at and event.at.isoformat()}) for event in events]
    params = {"forge": forge, "channel": CHANNEL, "events": Jsonb(columns)}
    return [int(row[0]) for row in await rows(conn, _Q["receive"], params)]


async def open_pulls(conn: Connection, forge: str) -> list[TrackedPull]:
    """Return the open pull requests of jobs on a forge, the newest first."""
    params = {"forge": forge, "limit": MAX_PULLS}
    return await fetch_all(conn, _Q["open_pulls"], params, TrackedPull)


async def closed_pulls(conn: Connection, forge: str) -> list[TrackedPull]:
    """Return the pull requests of jobs on a forge that were closed in the last 30 days."""
    params = {"forge": forge, "age": CLOSED_AGE, "limit": MAX_CLOSED}
    return await fetch_all(conn, _Q["closed_pulls"], params, TrackedPull)


async def note_tip(conn: Connection, pull: TrackedPull, tip: str) -> None:
    """Record the commit of a branch that was read after `pull` was."""
    await execute(conn, _Q["note_tip"], {"root": pull.root, "head": pull.head, "tip": tip})


# Events of people on forges: requests and answers.


MAX_UNPROCESSED: Final = 100
"""Maximum number of events read at once."""
MAX_QUESTIONS: Final = 500
"""Maximum number of open questions whose issues are read."""
_FIELDS: Final = tuple(field.name for field in fields(ForgeEvent))


async def unprocessed(
    conn: Connection, forges: Sequence[str], paused: Sequence[int] = ()
) -> list[StoredEvent]:
    """Return the oldest requests and answers on these forges that had no effect yet.

    Those that are `paused` are left out, so that they do not hold up the others.
    """
    async with conn.cursor(row_factory=dict_row) as cursor:
        params = {"forges": list(forges), "paused": list(paused), "limit": MAX_UNPROCESSED}
        await cursor.execute(_Q["unprocessed"], params)
        records = await cursor.fetchall()
    return [
        StoredEvent(
            row["id"],
            row["forge"],
            ForgeEvent(**{name: row[name] for name in _FIELDS} | {"kind": EventKind(row["kind"])}),
        )
        for row in records
    ]


async def finish(conn: Connection, id: int, outcome: str) -> bool:
    """Record the outcome of a request or answer; False if it has one."""
    return bool(await scalar(conn, _Q["finish"], {"id": id, "outcome": outcome}))


async def asked_targets(conn: Connection) -> list[str]:
    """Return the issues and pull requests on which questions are open, as targets."""
    params = {"channel": CHANNEL, "limit": MAX_QUESTIONS}
    return [str(row[0]) for row in await rows(conn, _Q["asked_targets"], params)]


# Follow-ups on pull requests of jobs.


LIMIT: Final = 200
"""Maximum number of answers and branches in one round."""
MAX_EVENTS: Final = 500
"""Maximum number of new events of a pull request in one transaction."""
MAX_MEMBERS: Final = 1000
"""Maximum number of jobs of a pull request."""


async def due_follow_ups(
    conn: Connection, term: LeaderTerm, limit: int, without: Sequence[int] = ()
) -> list[int]:
    """Return the first jobs of the pull requests with new events, except for those `without`."""
    params = term.params(limit) | {"without": list(without)}
    return [int(row[0]) for row in await rows(conn, _Q["due_follow_ups"], params)]


async def lock_pull(conn: Connection, root: int) -> TrackedPull | None:
    """Lock a pull request, by its first job."""
    return await fetch_one(conn, _Q["lock_pull"], {"root": root}, TrackedPull)


async def new_events(conn: Connection, pull: TrackedPull) -> list[FollowUpEvent]:
    """Return the events of a pull request that had no effect yet, in order."""
    params = {"forge": pull.forge, "project": pull.project, "number": pull.number}
    return await fetch_all(conn, _Q["new_events"], params | {"limit": MAX_EVENTS}, FollowUpEvent)


async def members(conn: Connection, root: int) -> list[FamilyJob]:
    """Return the first job of a pull request and its follow-ups, in order."""
    params = {"root": root, "about_commits": [*map(str, STATE)], "limit": MAX_MEMBERS}
    return await fetch_all(conn, _Q["members"], params, FamilyJob)


async def ignore(conn: Connection, ids: Sequence[int], reason: str) -> int:
    """Record that events have no effect."""
    return await execute(conn, _Q["ignore"], {"ids": list(ids), "reason": reason})


async def ignore_others(conn: Connection, limit: int) -> int:
    """Ignore old events of pull requests that no job opened."""
    params = {"limit": limit, "reason": "no job opened this pull request"}
    return await execute(conn, _Q["ignore_others"], params)


async def send(conn: Connection, event: int, job: int, sender: str, text: str) -> int | None:
    """Send an event to a job; None if it had an effect, or the job takes no message."""
    params = {"event": event, "job": job, "sender": sender, "text": text}
    number = await scalar(conn, _Q["send"], params)
    return None if number is None else int(number)


async def reopen(conn: Connection, limit: int) -> int:
    """Reopen events that a completed job did not get."""
    return await execute(conn, _Q["reopen"], {"limit": limit})


async def add(conn: Connection, job: int, root: int, ordinal: int, parent: int) -> None:
    """Record that a new job follows up on a pull request."""
    params = {"job": job, "root": root, "ordinal": ordinal, "parent": parent}
    await execute(conn, _Q["add"], params)


async def end(conn: Connection, root: int, state: str, event: int) -> bool:
    """Record the end of a pull request; False if it has ended."""
    params = {"root": root, "state": state, "event": event}
    return await execute(conn, _Q["end"], params) > 0


async def reopen_pull(conn: Connection, root: int, event: int) -> bool:
    """Record that a closed pull request is open again; False if it was not closed."""
    return await execute(conn, _Q["reopen_pull"], {"root": root, "event": event}) > 0


async def merges(conn: Connection, jobs: Sequence[int]) -> list[int]:
    """Return the unfinished jobs that ask for the merge of the work of these jobs."""
    return [int(row[0]) for row in await rows(conn, _Q["merges"], {"jobs": list(jobs)})]


async def event(conn: Connection, job: int, kind: str, payload: dict[str, Any]) -> None:
    """Write an event of a job."""
    await execute(conn, _Q["event"], {"job": job, "kind": kind, "payload": Jsonb(payload)})


async def of_job(conn: Connection, job: int) -> FollowedPull | None:
    """Return the pull request that a job follows up on; None for another job."""
    return await fetch_one(conn, _Q["of_job"], {"job": job}, FollowedPull)


async def jobs_of_pull(conn: Connection, forge: str, project: str, number: int) -> list[int]:
    """Return the jobs of a pull request, the newest first; none if no job opened it."""
    params = {"forge": forge, "project": project, "number": number, "limit": MAX_MEMBERS}
    return [int(row[0]) for row in await rows(conn, _Q["jobs_of_pull"], params)]


async def request(conn: Connection, job: int, actor: Actor, event: str, text: str) -> str | None:
    """Store a message to a finished job; return its open pull request, None without."""
    params = {
        "job": job,
        "source": actor.channel,
        "sender_id": actor.id,
        "display_name": actor.display_name,
        "event": event,
        "text": text,
    }
    url = await scalar(conn, _Q["request"], params)
    return None if url is None else str(url)


async def is_open(conn: Connection, job: int) -> bool:
    """Return whether a job has a pull request that is open and followed up."""
    followed = await family(conn, job)
    return followed is not None and followed.pull.state == "open"


async def unanswered(conn: Connection, forge: str, limit: int = LIMIT) -> list[AnswerDue]:
    """Return the events whose job has ended, and that have no answer."""
    return await fetch_all(conn, _Q["unanswered"], {"forge": forge, "limit": limit}, AnswerDue)


async def answered(conn: Connection, ids: Sequence[int]) -> int:
    """Record that events are answered, or need no answer."""
    return await execute(conn, _Q["answered"], {"ids": list(ids)})


async def ended_branches(conn: Connection, forge: str, limit: int = LIMIT) -> list[TrackedPull]:
    """Return the pull requests that ended lately, and whose branch draftsman did not delete."""
    params = {"forge": forge, "limit": limit}
    return await fetch_all(conn, _Q["ended_branches"], params, TrackedPull)


async def branch_deleted(conn: Connection, root: int) -> bool:
    """Record that the branch of a pull request that has ended is deleted, or stays."""
    return await execute(conn, _Q["branch_deleted"], {"root": root}) > 0


async def family(conn: Connection, job: int) -> Family | None:
    """Return the pull request of a job, with its first job and all follow-ups."""
    records = await rows(conn, _Q["family"], {"job": job})
    if not records:
        return None
    return Family(TrackedPull(*records[0][:10]), tuple(int(row[10]) for row in records))
