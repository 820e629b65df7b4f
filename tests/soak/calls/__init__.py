"""A call of every named query, over a long history.

A key is `family.query: special case`; a call may run several queries, and is listed under each.
"""

from __future__ import annotations

from typing import Final

from tests.soak.calls import (
    archives,
    attachments,
    boards,
    browser_sessions,
    budgets,
    chat,
    checkpoints,
    claim,
    deliveries,
    dependencies,
    figures,
    forges,
    groups,
    job_control,
    job_messages,
    job_types,
    ladders,
    limits,
    metrics,
    pages,
    pending_decisions,
    questions,
    queues,
    read_model,
    reminders,
    repos,
    rules,
    schedules,
    settle,
    sweeps,
)
from tests.soak.calls.call import Call

CALLS: Final[dict[str, Call]] = {
    **archives.CALLS,
    **attachments.CALLS,
    **boards.CALLS,
    **budgets.CALLS,
    **chat.CALLS,
    **claim.CALLS,
    **deliveries.CALLS,
    **dependencies.CALLS,
    **figures.CALLS,
    **forges.CALLS,
    **groups.CALLS,
    **read_model.CALLS,
    **job_control.CALLS,
    **ladders.CALLS,
    **limits.CALLS,
    **metrics.CALLS,
    **job_messages.CALLS,
    **job_types.CALLS,
    **pages.CALLS,
    **pending_decisions.CALLS,
    **checkpoints.CALLS,
    **questions.CALLS,
    **queues.CALLS,
    **reminders.CALLS,
    **repos.CALLS,
    **rules.CALLS,
    **schedules.CALLS,
    **settle.CALLS,
    **sweeps.CALLS,
    **browser_sessions.CALLS,
}


def query_of(key: str) -> str:
    """Return `family.query` of a key."""
    return key.partition(":")[0]
