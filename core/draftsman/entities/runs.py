"""Runs of all jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity
from draftsman.entities.terms import Measure
from draftsman.formats import times
from draftsman.ids import run_name, worker_name
from draftsman.jobs.runs.run import MEANINGS
from draftsman.text import first_line

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.jobs.runs.run import Run


def _took(run: Run, now: datetime) -> Cell:
    return Cell(times.span(((run.finished_at or now) - run.started_at).total_seconds()))


RUNS: Final[Entity[Run]] = Entity(
    empty="no runs yet",
    json_class="draftsman.jobs.runs.run:Run",
    columns=(
        Column(
            "RUN",
            11,
            help="Name of the run.",
            cell=lambda row, _: Cell(run_name(row.job, row.ordinal), "key"),
            most=11,
            order=lambda row: (row.job, row.ordinal),
        ),
        shared_columns.status(lambda row: cells.status_cell(row.status, MEANINGS[row.status]), 10),
        shared_columns.text(
            "TITLE",
            help="Title of the job, or its type.",
            of=lambda row: row.title,
            from_width=84,
            cut=True,
            optional=True,
        ),
        shared_columns.repo(lambda row: row.repo, width=12, most=24, from_width=84, optional=True),
        Column(
            "STARTED",
            8,
            help="Time since the start.",
            cell=lambda row, now: cells.age(row.started_at, now),
            right=True,
            order=lambda row: row.started_at,
            measure=Measure.TIME,
        ),
        Column(
            "TOOK",
            8,
            help="Time until the end, or until now.",
            cell=_took,
            right=True,
            order=lambda row: (row.finished_at or row.heartbeat_at) - row.started_at,
            measure=Measure.TIME,
        ),
        Column(
            "HEARTBEAT",
            9,
            help="Time since the last heartbeat.",
            cell=lambda row, now: cells.age(None if row.finished_at else row.heartbeat_at, now),
            right=True,
            from_width=120,
            order=lambda row: row.heartbeat_at,
            measure=Measure.TIME,
            optional=True,
        ),
        Column(
            "WORKER",
            9,
            help="Name of the worker.",
            cell=lambda row, _: Cell(worker_name(row.worker_id), "dim"),
            from_width=130,
        ),
        Column(
            "EXIT",
            4,
            help="Exit code of its program.",
            cell=lambda row, _: Cell("" if row.exit_code is None else str(row.exit_code)),
            right=True,
            from_width=130,
            optional=True,
        ),
        Column(
            "ERROR",
            20,
            help="The last error.",
            cell=lambda row, _: cells.text(first_line(row.error or "", 200), "bad"),
            most=60,
            cut=True,
            optional=True,
        ),
    ),
)
