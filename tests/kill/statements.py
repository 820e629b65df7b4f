"""Queries that no other script reaches, each in a transaction of its own.

They belong to bots, agents and follow-ups, whose own campaigns inject faults between their steps.
Here the fault hits the query alone: the process that is started again executes it once more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from draftsman.attention import store as attention
from draftsman.attention.ladder import LadderNotice, NotificationOutcome, StepPlan
from draftsman.costs import store as budgets
from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind, DeliveryStatus
from draftsman.deliveries.store import deliveries
from draftsman.deliveries.target import parse as parse_target
from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.ids import new_id
from draftsman.jobs.pending_decisions import store as pending_decisions
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.store import questions
from draftsman.runtime import open_runtime
from draftsman.settings import Settings
from draftsman.workflows import store as workflows
from draftsman_bots.pagers.records import store as pagers
from draftsman_bots.pagers.records.pager_event import PagerEvent
from draftsman_bots.trello.records import store as trello
from draftsman_bots.trello.records.cards import CardChecklist
from tests.kill.notifications import OWNER
from tests.soak.calls import CALLS, query_of

ASKED: Final = "asked"
"""The name of a job with an open question; the other names are those of queries."""
PLAN: Final = StepPlan(None, (LadderNotice("ben", NotificationOutcome.INBOX),), ("ben",), None)
BEGIN_LADDER: Final = """
INSERT INTO draftsman.question_ladders (job, question, name, steps, due_at)
VALUES (%s, 1, 'default', '[{"notify": ["ben"], "after": 0}]', draftsman.now())
    ON CONFLICT (job, question) DO UPDATE SET step = 1, due_at = draftsman.now()"""


async def statements(settings: Settings, jobs: dict[str, int]) -> None:
    """Execute each of these queries, first those that need a question of this database."""
    async with open_runtime(settings) as rt:
        calls = _calls(jobs[ASKED])
        calls += [call.work for key, call in CALLS.items() if query_of(key) in jobs]
        for call in calls:
            try:
                # a call may expect rows of its history, after its query
                with suppress(AssertionError, LookupError):
                    await rt.db.run_transaction(call)
            except DatabaseUnreachable:
                raise
            except DraftsmanError:  # executed before, or rows of its history are absent
                pass


def _calls(job: int) -> list[Callable[[Connection], Awaitable[object]]]:
    """Return calls about a job with an open question."""

    async def take_step(conn: Connection) -> object:
        await conn.execute(BEGIN_LADDER, (job,))
        (step,) = [
            due for due in await attention.due_steps(conn, LeaderTerm(), 200) if due.job == job
        ]
        return await attention.take_step(conn, LeaderTerm(), step, PLAN)

    async def warn(conn: Connection) -> None:
        sent, *_ = await deliveries.page(conn, list(DeliveryStatus), 1)
        await deliveries.warn(conn, sent.seq, "no")

    page = PagerEvent("ops", "event", new_id(), 1, "acknowledged", datetime.now(UTC))
    checklist = CardChecklist("c" * 24, job, 1, "f" * 24, {"e" * 24: 1})
    return [
        lambda conn: attention.acknowledge(conn, job, 1, OWNER, 60),
        lambda conn: attention.snooze(conn, job, 1, OWNER, 60),
        lambda conn: pagers.record(conn, job, 1, page),
        lambda conn: attention.delegate(conn, job, 1, OWNER, 60, "ben", None),
        take_step,
        lambda conn: deliveries.post(
            conn, job, parse_target("log"), "digest", DeliveryKind.DIGEST, {}
        ),
        lambda conn: pending_decisions.hold(
            conn, job, None, OWNER, "held", {"force": False, "reason": None}, None, 5.0
        ),
        lambda conn: trello.save_checklist(conn, checklist),
        warn,
        budgets.uses,
        lambda conn: workflows.completed_spawn(conn, job, "a", "0"),
        workflows.lock_waits,
        lambda conn: workflows.waiting_count(conn, job),
        lambda conn: deliveries.group_stop(conn, 1),
        lambda conn: questions.count_refused(conn, job, 1, OWNER.name, "no"),
    ]
