"""Plans of the triggers that write deliveries, which a session makes once, for empty tables."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection, Database
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.store import deliveries
from draftsman.deliveries.target import parse
from draftsman_testing.factories import Factory
from tests.support.planner import plan_tables, planned
from tests.support.statements import rows, run

ALIASES = {"d", "deliveries", "e", "j", "new_deliveries", "new_targets"}
"""Names of the tables in the statements of the triggers."""
FINISH = """
UPDATE draftsman.deliveries
   SET status = 'sent', sent_at = now(), external_ref = 'r', next_attempt_at = NULL
 WHERE seq = %(seq)s"""
DUE = """
SELECT seq, job, kind::text FROM draftsman.deliveries
 WHERE next_attempt_at IS NOT NULL AND job = ANY (%(jobs)s) ORDER BY seq"""


@pytest.mark.machine_clock("with an offset, the clock itself reads a table")
async def test_no_trigger_of_deliveries_reads_a_whole_table(
    db: Database, conn: Connection, make: Factory
) -> None:
    target = parse("slack:C1/1700000000.000100")
    async with db.connection() as session, planned(session) as plans:
        for size in (1, 20):
            jobs = [await make.queued() for _ in range(size)]
            await deliveries.add_targets(session, [(job, [target]) for job in jobs])
            await deliveries.enqueue(session, jobs[0], DeliveryKind.NOTICE, "n", {})
            due = await rows(conn, DUE, {"jobs": jobs})
            assert [(job, kind) for _, job, kind in due] == [(job, "status") for job in jobs]
            await run(session, FINISH, {"seq": due[0][0]})
            (after,) = await rows(conn, DUE, {"jobs": jobs[:1]})
            assert after[1:] == (jobs[0], "notice")
    reading = [tree for tree in plans.trees if plan_tables(tree) & ALIASES]
    assert len(reading) > 5
    assert [plan_tables(tree) for tree in reading if "{SEQSCAN" in tree] == []
