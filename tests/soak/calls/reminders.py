"""Reminders of open questions, some of which are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from draftsman.attention.store import reminders
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
        due = await reminders.due(conn, LEADER, 200)
        assert due
        assert {item.kind for item in due} <= {*QuestionKind}
        when = None if later is None else datetime.now(UTC) + later
        return await reminders.remind(conn, LEADER, [(item, when) for item in due])

    return Call(work, 3 * FEW)


CALLS: Final[dict[str, Call]] = {
    "reminders.due: by hand": Call(lambda conn: reminders.due(conn, HAND, 200)),
    "reminders.due: as leader": Call(lambda conn: reminders.due(conn, LEADER, 200)),
    "reminders.remind: said": _remind(None),
    "reminders.remind: put off": _remind(timedelta(hours=1)),
}
