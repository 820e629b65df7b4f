"""Ladders of questions, over a history in which an open question has a ladder."""

from __future__ import annotations

from typing import Final

from draftsman.attention import store as attention
from draftsman.attention.ladder import DueStep, LadderNotice, NotificationOutcome, StepPlan
from draftsman.database.database import Connection
from draftsman.jobs.job import Source
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from tests.soak.calls.call import FEW, NEWEST, Call, last_of
from tests.soak.history import WORKER

HAND = LeaderTerm()
LEADER = LeaderTerm(WORKER, 1)
ANNA: Final = Actor(Source.CLI, "anna", "Anna")
OPEN: Final = last_of("waiting_for_input")
BEGIN: Final = """
    INSERT INTO draftsman.question_ladders (job, question, name, steps, due_at)
    VALUES (%s, 1, 'default',
            '[{"notify": ["ben"], "after": 0, "when_away": "next", "escalate": true}]',
            draftsman.now())
"""


async def _due(conn: Connection) -> list[DueStep]:
    """Begin the ladder of a question, and return its due step."""
    await conn.execute(BEGIN, (OPEN,))
    return await attention.due_steps(conn, HAND, 200)


async def _take(conn: Connection) -> object:
    (step,) = await _due(conn)
    plan = StepPlan(None, (LadderNotice("ben", NotificationOutcome.INBOX),), ("ben",), None)
    return await attention.take_step(conn, HAND, step, plan)


CALLS: Final[dict[str, Call]] = {
    "attention.profile_ladders": Call(lambda conn: attention.profile_ladders(conn, NEWEST)),
    "attention.due_steps: by hand": Call(_due, FEW),
    "attention.due_steps: as leader": Call(lambda conn: attention.due_steps(conn, LEADER, 200)),
    "attention.take_step": Call(_take, FEW),
    "attention.ladder_attention": Call(lambda conn: attention.ladder_attention(conn, [OPEN])),
    "attention.notifications": Call(lambda conn: attention.notifications(conn, [OPEN])),
    "attention.delegate": Call(
        lambda conn: attention.delegate(conn, OPEN, 1, ANNA, 60, "ben", None), FEW
    ),
}
