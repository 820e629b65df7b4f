"""Throughput, waiting time and run time of the jobs that ended, with their charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from draftsman.entities.cells import Cell
from draftsman.entities.throughput import FAILED_TOO, THROUGHPUT
from draftsman.jobs.details.throughput import Period, Throughput, ThroughputGroup
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.stats.charts import charts
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows


class StatsResource(Resource[Throughput]):
    """Jobs that ended in the last hour, day and week."""

    name = "stats"
    help = (
        "Jobs that ended in the last hour, day and week, with their waiting and run times;"
        " filters: kind:queue status:day."
    )
    note = FAILED_TOO
    statuses = tuple(map(str, Period))
    kinds = tuple(map(str, ThroughputGroup))
    fields = ("status",)
    groups: ClassVar[Mapping[str, Callable[[Any], str]]] = {
        "period": lambda row: f"last {row.period}",
    }
    group_order: ClassVar[Mapping[str, Sequence[str]]] = {
        "period": tuple(f"last {period}" for period in Period),
    }
    default_group = "period"
    has_charts = True
    entity = THROUGHPUT
    poll_interval = 60.0
    follows_events = False

    async def read(self, rt: Runtime, query: Query) -> Rows[Throughput]:
        wanted = query.filter.statuses
        periods = [period for period in Period if period in wanted] or [*Period]
        kinds = [kind for kind in ThroughputGroup if kind in wanted] or [*ThroughputGroup]
        rows = [row for period in periods for row in await rt.throughput.read(period)]
        return Rows([row for row in rows if row.by in kinds and row.finished])

    def key(self, row: Throughput) -> str:
        return f"{row.period}:{row.by}:{row.value}"

    def table(self, row: Throughput) -> tuple[str, Filter] | None:
        """Return the jobs of a repository."""
        return ("jobs", Filter(repo=row.value)) if row.by is ThroughputGroup.REPO else None

    def charts(self, row: Throughput, width: int, height: int) -> Sequence[Sequence[Cell]]:
        return charts(row, width, height)

    def filter_fields(self, row: Throughput) -> FilterFields:
        text = f"{row.value} {row.by} {row.period}"
        return FilterFields(text, str(row.period), second_status=str(row.by))
