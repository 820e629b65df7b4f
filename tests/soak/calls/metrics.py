"""Metrics, which count a limited number of rows of each status and no finished job."""

from __future__ import annotations

from typing import Final

from draftsman.database_metrics import store
from tests.soak.calls.call import ALIVE, Call

MOST: Final = 300
STATUSES: Final = 8
"""Statuses of jobs that have not ended."""
WHY: Final = "the first rows of each status"
CALLS: Final[dict[str, Call]] = {
    "database_metrics.jobs": Call(lambda conn: store.jobs(conn, MOST), STATUSES * MOST, WHY),
    "database_metrics.questions": Call(lambda conn: store.questions(conn, MOST)),
    "database_metrics.deliveries": Call(lambda conn: store.deliveries(conn, MOST), 3 * MOST, WHY),
    "database_metrics.workers": Call(lambda conn: store.workers(conn, ALIVE)),
    "database_metrics.leader": Call(store.leader),
    "database_metrics.model_use": Call(lambda conn: store.model_use(conn, MOST)),
}
