"""Reminders of open questions, some of which are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from draftsman.attention import store as attention
from draftsman.database.database import Connection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.question import QuestionKind
from tests.soak.calls.call import FEW, Call
from tests.soak.history import WORKER

HAND = LeaderTerm()
LEADER = LeaderTerm(WORKER, 1)


def _remind(later: timedelta | None) -> Call:
    """Send due reminders, or postpone them."""

    async def work(conn: Connection) -> object:
        due = await attention.due_reminders(conn, LEADER, 200)
        assert due
        assert {item.kind for item in due} <= {*QuestionKind}
        when = None if later is None else datetime.now(UTC) + later
        return await attention.remind(conn, LEADER, [(item, when) for item in due])

    return Call(work, 3 * FEW)


CALLS: Final[dict[str, Call]] = {
    "attention.due_reminders: by hand": Call(lambda conn: attention.due_reminders(conn, HAND, 200)),
    "attention.due_reminders: as leader": Call(
        lambda conn: attention.due_reminders(conn, LEADER, 200)
    ),
    "attention.remind: said": _remind(None),
    "attention.remind: put off": _remind(timedelta(hours=1)),
}
