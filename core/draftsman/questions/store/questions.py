"""Questions and answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

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
from draftsman.database.named_queries import load, load_parts
from draftsman.database.selection import ALL, Selection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm, Lease
from draftsman.people.actor import Actor
from draftsman.questions.answer import Answer, LockedQuestion
from draftsman.questions.question import (
    BUDGET_KEY,
    IdenticalQuestion,
    OpenQuestion,
    Question,
    QuestionGroup,
    QuestionStatus,
    Resolution,
)

if TYPE_CHECKING:
    from draftsman.questions.asked_question import QuestionLadder
    from draftsman.questions.question_spec import Choice, QuestionSpec

_Q = load(__name__)

EXPIRE_DUE: Final = load_parts(__name__)["expire_due"]
"""Query of the time when the sweep is due."""

QuestionCursor = tuple[datetime | None, int, int]
"""Position among the open questions: expiry (None: never), job and ordinal."""
_END = 2**62
"""Above every job number."""


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question to store, with all that its service decided.

    `expires_in` is in seconds, None for a question that never expires; `alternative_to` is the
    place, from 1, of the first of the alternatives that it belongs to. `choices` are those shown.
    """

    item: QuestionSpec
    approvers: Sequence[str]
    expires_in: float | None
    escalate_to: str | None = None
    ladder: QuestionLadder | None = None
    alternative_to: int | None = None
    choices: Sequence[Choice] = ()

    def as_json(self, position: int, owners: Sequence[str]) -> dict[str, Any]:
        """Return the columns of the question; `owners` are those of its ladder."""
        item = self.item
        ladder = self.ladder
        return dict(item) | {
            "place": position,
            "choices": [choice.model_dump() for choice in self.choices],
            "approvers": list(self.approvers),
            "digest": item.digest,
            "expires_in": self.expires_in,
            "escalate_to": self.escalate_to,
            "ladder": None if ladder is None else ladder.name,
            "steps": list(ladder.steps) if ladder else [],
            "owners": list(owners),
            "alternative_to": self.alternative_to,
        }


async def ask(
    conn: Connection,
    lease: Lease,
    questions: Sequence[NewQuestion],
    *,
    grace: float = 0,
    owners: Sequence[str] = (),
) -> Sequence[int] | None:
    """Insert the questions and park the run; `grace` are the seconds that its agent is kept.

    `owners` are the people who own the changed code, for their ladders. Return the ordinals of the
    questions: none when the job was canceled instead, and None when the run no longer owned it.
    """
    params = {
        "job": lease.job,
        "token": lease.token,
        "questions": Jsonb(
            [question.as_json(position, owners) for position, question in enumerate(questions, 1)]
        ),
        "grace": grace,
        "detail": json.dumps(_asked_detail([question.item for question in questions])),
    }
    records = await rows(conn, _Q["ask"], params)
    return [record[1] for record in records if record[1] is not None] if records else None


def _asked_detail(questions: Sequence[QuestionSpec]) -> dict[str, Any]:
    """Return the payload of the event: the first question, and the others if there are several."""
    first, *other_questions = [
        {"key": item.key, "text": item.text[:500], "kind": item.kind} for item in questions
    ]
    return _shorten(first | ({"others": other_questions} if other_questions else {}))


async def of_key(conn: Connection, job: int, key: str) -> Question | None:
    """Return the current question with this key, not a superseded question."""
    return await fetch_one(conn, _Q["of_key"], {"job": job, "key": key}, Question)


async def get(conn: Connection, job: int, ordinal: int) -> Question | None:
    """Return a question."""
    return await fetch_one(conn, _Q["get"], {"job": job, "ordinal": ordinal}, Question)


async def of_job(conn: Connection, job: int) -> list[Question]:
    """Return the questions of a job, in the order asked."""
    return await fetch_all(conn, _Q["of_job"], {"job": job}, Question)


async def open_questions(
    conn: Connection, limit: int, after: QuestionCursor | None = None, viewer: str | None = None
) -> list[OpenQuestion]:
    """Return open questions after a cursor, soonest expiry first.

    For a viewer, of identical questions only the first, and the first of the viewer's own. A viewer
    who may answer them all is "".
    """
    expires_at, job, ordinal = after or (None, 0, 0)
    never_expires = after is not None and expires_at is None
    params = {
        "expires_at": "infinity" if never_expires else expires_at or "-infinity",
        "job": _END if never_expires else job,
        "ordinal": ordinal,
        "never_job": job if never_expires else 0,
        "never_ordinal": ordinal if never_expires else 0,
        "limit": limit,
        "folded": viewer is not None,
        "viewer": viewer or "",
    }
    return await fetch_all(conn, _Q["open"], params, OpenQuestion)


async def counts(conn: Connection, viewer: str, most: int) -> list[QuestionGroup]:
    """Return the number of open questions by who may answer; `viewer` as in `open_questions`."""
    params = {"folded": True, "viewer": viewer, "most": most, "budget_key": BUDGET_KEY}
    return await fetch_all(conn, _Q["counts"], params, QuestionGroup)


async def open_of(conn: Connection, jobs: Sequence[int]) -> list[OpenQuestion]:
    """Return the open questions of these jobs, soonest expiry first."""
    return await fetch_all(conn, _Q["open_of"], {"jobs": list(jobs)}, OpenQuestion)


async def asked(conn: Connection, jobs: Sequence[int]) -> Sequence[tuple[Any, ...]]:
    """Return job, start of the text, action and expiry of the open questions of these jobs."""
    return await rows(conn, _Q["asked"], {"jobs": list(jobs)})


async def answers(conn: Connection, job: int, ordinal: int | None = None) -> list[Answer]:
    """Return all answers, also refused answers, in order."""
    return await fetch_all(conn, _Q["answers"], {"job": job, "ordinal": ordinal}, Answer)


async def lock(conn: Connection, job: int, ordinal: int) -> LockedQuestion | None:
    """Lock the job, then the question; None when it does not exist."""
    job_records = await rows(conn, _Q["lock_job"], {"job": job})
    if not job_records:
        return None
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_Q["lock"], {"job": job, "ordinal": ordinal})
        row = await cursor.fetchone()
    if row is None:
        return None
    due, paused, again = bool(row.pop("due")), row.pop("paused"), row.pop("asked_again")
    status, invoker = job_records[0][:2]
    return LockedQuestion(
        Question(**row), due, paused, job_status=status, invoker=invoker, asked_again=again
    )


async def stays_open(conn: Connection, job: int, ordinal: int, seconds: float) -> bool:
    """Return whether a question is open and takes answers for so many seconds."""
    params = {"job": job, "ordinal": ordinal, "seconds": seconds}
    return bool(await scalar(conn, _Q["stays_open"], params))


async def previous_answer(conn: Connection, job: int, ordinal: int, event: str) -> Answer | None:
    """Return the answer of the same source event."""
    params = {"job": job, "ordinal": ordinal, "event": event}
    return await fetch_one(conn, _Q["previous_answer"], params, Answer)


async def record(
    conn: Connection,
    question: Question,
    actor: Actor,
    voter: str,
    event: str,
    payload: dict[str, Any],
    refused: str | None,
) -> None:
    """Store an answer, accepted or refused for the given reason."""
    params = {
        "job": question.job,
        "ordinal": question.ordinal,
        "kind": question.kind,
        "source": actor.channel,
        "event": event,
        "responder": actor.id,
        "name": actor.display_name,
        "voter": voter,
        "payload": Jsonb(payload),
        "accepted": refused is None,
        "reason": refused,
    }
    await execute(conn, _Q["record"], params)


async def votes(conn: Connection, job: int, ordinal: int) -> list[str]:
    """Return the people who approved so far."""
    return [row[0] for row in await rows(conn, _Q["votes"], {"job": job, "ordinal": ordinal})]


async def resolve(
    conn: Connection,
    question: Question,
    resolution: Resolution,
    *,
    actor: str,
    status: QuestionStatus,
    job_status: Status,
    kind: str,
    error: str | None = None,
) -> Status | None:
    """Close the question and update its job, both locked by the caller; return its status.

    `error` is the job's error, if it fails; for a denial the database adds the approver and the
    reason.
    """
    detail = {"question": question.ordinal, "key": question.key, **resolution.as_json()}
    params = {
        "job": question.job,
        "ordinal": question.ordinal,
        "status": status,
        "resolution": Jsonb(resolution.as_json()),
        "job_status": job_status,
        "actor": actor,
        "detail": json.dumps(_shorten(detail)),
        "kind": kind,
        "error": error,
    }
    return await scalar(conn, _Q["resolve"], params)  # type: ignore[no-any-return]


async def extend(
    conn: Connection, job: int, ordinal: int, seconds: float | None, actor: str
) -> tuple[bool, datetime | None]:
    """Set the expiry (None: never); return whether the question was open, and the new expiry."""
    params = {"job": job, "ordinal": ordinal, "seconds": seconds, "actor": actor}
    records = await rows(conn, _Q["extend"], params)
    return (True, records[0][0]) if records else (False, None)


async def refused(conn: Connection, job: int, ordinal: int, voter: str) -> tuple[int, int]:
    """Return the number of stored refused answers: of this voter, and in total."""
    records = await rows(conn, _Q["refused"], {"job": job, "ordinal": ordinal, "voter": voter})
    return int(records[0][0]), int(records[0][1])


async def count_refused(conn: Connection, job: int, ordinal: int, voter: str, reason: str) -> int:
    """Count a refused answer that is not stored; return the question's count."""
    params = {"job": job, "ordinal": ordinal, "voter": voter[:200], "reason": reason[:1000]}
    return int(await scalar(conn, _Q["count_refused"], params))


def _shorten(payload: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value[:1000] if isinstance(value, str) else value for key, value in payload.items()
    }


# Identical open questions of several jobs.


async def identical_questions(conn: Connection, job: int, ordinal: int) -> list[IdenticalQuestion]:
    """Return the other open questions that are identical to a question, in the order asked."""
    params = {"job": job, "question": ordinal}
    return await fetch_all(conn, _Q["identical_questions"], params, IdenticalQuestion)


async def get_with_identical(
    conn: Connection, job: int, ordinal: int
) -> tuple[Question | None, list[IdenticalQuestion]]:
    """Return a question, and the other open questions that are identical to it."""
    params = {"job": job, "question": ordinal}
    question = await fetch_one(conn, _Q["get"], params | {"ordinal": ordinal}, Question)
    return question, await fetch_all(conn, _Q["identical_questions"], params, IdenticalQuestion)


# Questions whose time is over.


async def expire(conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL) -> int:
    """Close expired questions; return their number."""
    return len(await rows(conn, _Q["expire"], term.params(limit) | selection.params))


async def expire_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs of the questions that `expire` would close."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["expire_candidates"], params)]


async def escalate(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Escalate expired questions, once; return their number."""
    return len(await rows(conn, _Q["escalate"], term.params(limit) | selection.params))


async def escalate_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs of the questions that `escalate` would change."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["escalate_candidates"], params)]
