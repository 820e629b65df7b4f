"""How many jobs finished in a period, how long they waited and ran."""

from __future__ import annotations

from typing import Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity
from draftsman.entities.terms import Measure
from draftsman.formats import times
from draftsman.formats.json_data import as_data
from draftsman.formats.sparklines import sparkline
from draftsman.jobs.details.throughput import Period, Throughput, ThroughputGroup


def _per_hour(row: Throughput) -> str:
    """Return the finished jobs in an hour, with two digits or more: a rare job has not 0.0."""
    if row.per_hour >= 9.95:
        return f"{row.per_hour:,.0f}"
    return f"{row.per_hour:.1f}" if row.per_hour >= 0.95 else f"{row.per_hour:.2g}"


def _time_column(
    head: str, help: str, seconds: str, from_width: int = 0, title: str = ""
) -> Column[Throughput]:
    """Return the column of a duration, the field `seconds`."""

    def cell(row: Throughput) -> Cell:
        value = getattr(row, seconds)
        return Cell("" if value is None else times.span(value))

    return Column(
        head,
        max(7, len(title or head)),
        help=help,
        cell=lambda row, _: cell(row),
        right=True,
        from_width=from_width,
        order=lambda row: getattr(row, seconds),
        measure=Measure.TIME,
        largest_first=True,
        title=title,
    )


def _kind(row: Throughput) -> str:
    return "" if row.by is ThroughputGroup.ALL else str(row.by)


THROUGHPUT: Final[Entity[Throughput]] = Entity(
    empty="no job finished in this time",
    data=lambda row: as_data(row) | {"per_hour": row.per_hour},
    json_class="draftsman.jobs.details.throughput:Throughput",
    json_more={"per_hour": {"type": "number"}},
    columns=(
        Column(
            "PERIOD",
            6,
            help="The last hour, day or week.",
            cell=lambda row, _: Cell(str(row.period), "dim"),
            order=lambda row: [*Period].index(row.period),
        ),
        Column(
            "KIND",
            6,
            help="Its kind.",
            cell=lambda row, _: Cell(_kind(row), "dim"),
            order=lambda row: [*ThroughputGroup].index(row.by),
        ),
        Column(
            "NAME",
            help="Whose figures these are.",
            cell=lambda row, _: cells.text(row.value or "all", "key"),
            cut=True,
            order=lambda row: row.value,
        ),
        shared_columns.number(
            "ENDED",
            8,
            help="Jobs that ended, with any status.",
            of=lambda row: row.finished,
            largest_first=True,
        ),
        Column(
            "FAILED",
            6,
            help="Jobs of these that failed or are dead letters, also if they were retried since.",
            cell=lambda row, _: Cell(f"{row.failed:,}", "bad" if row.failed else "dim"),
            right=True,
            order=lambda row: row.failed,
            measure=Measure.NUMBER,
            largest_first=True,
        ),
        Column(
            "HOURLY",
            6,
            help="Jobs that ended in an hour.",
            cell=lambda row, _: Cell(_per_hour(row)),
            right=True,
            from_width=110,
            order=lambda row: row.per_hour,
            measure=Measure.NUMBER,
            largest_first=True,
        ),
        _time_column("WAITED", "Median time in the queue before the last run.", "wait_p50"),
        _time_column("WAITED95", "95th percentile of WAITED.", "wait_p95", 104, "WAITED 95%"),
        _time_column("RAN", "Median time of all runs of a job.", "run_p50"),
        _time_column("RAN95", "95th percentile of RAN.", "run_p95", 104, "RAN 95%"),
        Column(
            "TREND",
            24,
            help="Jobs that ended in each 24th of the period, newest last.",
            cell=lambda row, _: Cell(sparkline(row.bars)),
            from_width=136,
        ),
    ),
)
