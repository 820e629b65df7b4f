"""The reason why a job waits, from the facts of its row and its questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from draftsman.database.database import Connection
from draftsman.jobs.details.wait_reason import JobFacts, WaitReason, expiring_question, explain
from draftsman.jobs.job import Status
from draftsman.questions.question import Question, QuestionStatus


async def wait_reason(
    conn: Connection, facts: JobFacts, questions: Sequence[Question]
) -> WaitReason:
    """Return the reason of the status of a job with these questions."""
    if facts.held_by is not None:
        from draftsman.queues import store as queues

        uses = await queues.limit_uses(conn, facts.held_by)
        facts = replace(facts, limit=next(iter(uses), None))
    if facts.hold == "key" or facts.parents:
        from draftsman.workflows import store as workflows

        _, cycle = await workflows.wait_cycle(conn, facts.number)
        facts = replace(facts, cycle=cycle)
    if facts.status is Status.EXPIRED:
        expired = expiring_question(questions)
        return explain(facts, [] if expired is None else [expired])
    return explain(
        facts, [question for question in questions if question.status is QuestionStatus.OPEN]
    )
