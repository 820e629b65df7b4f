"""Threads of Slack, and the messages of questions in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.database.database import Connection, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman_bots.slack.records.thread import QuestionMessage, ThreadTopic

_Q = load(__name__)
MAX_JOBS: Final = 20
"""Maximum number of jobs read for a thread."""
MAX_OPEN_QUESTIONS: Final = 100
"""Maximum number of open questions read for a channel."""


async def topics(conn: Connection, channel: str, thread: str) -> list[ThreadTopic]:
    """Return the topics of a thread, newest first."""
    params = {"target": channel, "thread": thread, "ref": f"{channel}/{thread}", "limit": MAX_JOBS}
    return await fetch_all(conn, _Q["topics"], params, ThreadTopic)


async def question_of_message(conn: Connection, channel: str, ts: str) -> tuple[int, int] | None:
    """Return (job, ordinal) of the question that a message asks; None for another message."""
    records = await rows(conn, _Q["question_of_message"], {"ref": f"{channel}/{ts}"})
    return (records[0][0], records[0][1]) if records else None


async def has_pending_message(conn: Connection, targets: Sequence[str], thread: str) -> bool:
    """Return whether the thread's root may be a message whose posting is not recorded yet.

    `targets` are the conversations to look at. On True, the caller asks again later.
    """
    params = {"targets": list(targets), "thread": thread}
    return bool(await scalar(conn, _Q["has_pending_message"], params))


async def open_questions_in(
    conn: Connection, channel: str, seconds: float
) -> list[tuple[int, int]]:
    """Return (job, ordinal) of open questions of the newest jobs in a channel."""
    params = {"target": channel, "seconds": seconds, "limit": MAX_OPEN_QUESTIONS}
    return [(row[0], row[1]) for row in await rows(conn, _Q["open_questions_in"], params)]


async def question_messages(conn: Connection) -> list[QuestionMessage]:
    """Return the messages of open questions of the newest jobs."""
    return await fetch_all(
        conn, _Q["question_messages"], {"limit": MAX_OPEN_QUESTIONS}, QuestionMessage
    )
