"""Rows of what is said in threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg.types.json import Jsonb

from draftsman.store.postgres.database import Connection, fetch_all, rows, scalar
from draftsman.store.queries import load

_Q = load("threads")
MAX_JOBS: Final = 20
"""Jobs of one thread that are looked at."""
MAX_OPEN_QUESTIONS: Final = 100
"""Open questions among which those of a channel are looked for."""


@dataclass(frozen=True, slots=True)
class ThreadTopic:
    """A job that a thread is about; `question` where the thread hangs under a question of it."""

    job: int
    question: int | None


@dataclass(frozen=True, slots=True)
class QuestionMessage:
    """The message of an open question.

    `ref` is its reference in a Receipt, `thread` the thread of its target, and `root` the reference
    of the job's status message, below which it stands where the target names no thread.
    """

    job: int
    question: int
    ref: str
    thread: str | None
    root: str | None


@dataclass(frozen=True, slots=True)
class CardTopic:
    """A job that a card hears of, and a question of it that is asked there.

    `ref` is that of the question's comment, None where it is not known whether there is one.
    """

    job: int
    question: int | None
    ref: str | None


async def slack(conn: Connection, channel: str, thread: str) -> list[ThreadTopic]:
    """Return what a Slack thread is about, the newest first."""
    params = {"target": channel, "thread": thread, "ref": f"{channel}/{thread}", "limit": MAX_JOBS}
    return await fetch_all(conn, _Q["slack"], params, ThreadTopic)


async def has_pending_message(conn: Connection, targets: Sequence[str], thread: str) -> bool:
    """Return whether a thread may hang under a message whose place is not written down yet."""
    params = {"targets": list(targets), "thread": thread}
    return bool(await scalar(conn, _Q["has_pending_message"], params))


async def trello(conn: Connection, card: str) -> list[CardTopic]:
    """Return the jobs that a card hears of, with the questions asked there, the newest first."""
    return await fetch_all(conn, _Q["trello"], {"card": card, "limit": MAX_JOBS}, CardTopic)


async def is_own_comment(conn: Connection, ref: str) -> bool:
    """Return whether a comment is one of ours."""
    return bool(await scalar(conn, _Q["is_own_comment"], {"ref": ref}))


async def open_questions_in(
    conn: Connection, channel: str, seconds: float
) -> list[tuple[int, int]]:
    """Return job and ordinal of what the newest jobs asked in a Slack channel, and is open."""
    params = {"target": channel, "seconds": seconds, "limit": MAX_OPEN_QUESTIONS}
    return [(row[0], row[1]) for row in await rows(conn, _Q["open_questions_in"], params)]


async def question_messages(conn: Connection) -> list[QuestionMessage]:
    """Return the messages in Slack of what the newest jobs wait for."""
    return await fetch_all(
        conn, _Q["question_messages"], {"limit": MAX_OPEN_QUESTIONS}, QuestionMessage
    )


async def record_answer_change(
    conn: Connection,
    job: int,
    question: int,
    event: str,
    kind: str,
    actor: str,
    detail: dict[str, Any],
) -> bool:
    """Note what became of an accepted answer; False where there is none, or it was noted."""
    params = {"job": job, "question": question, "event": event, "kind": kind, "actor": actor}
    return (
        await scalar(conn, _Q["record_answer_change"], params | {"detail": Jsonb(detail)})
        is not None
    )
