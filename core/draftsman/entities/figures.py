"""How soon questions are seen and answered, by person, channel and kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from draftsman.attention.figures import AttentionFigures, FigureGroup
from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity
from draftsman.entities.terms import Measure
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import as_data

KINDS = {"input": "questions", "approval": "approvals"}


def name_text(figures: AttentionFigures) -> str:
    """Return the person, channel or kind of question."""
    if figures.by is FigureGroup.KIND:
        return KINDS.get(figures.value, figures.value)
    return figures.value or "all"


def time_text(seconds: float | None) -> str:
    """Return a duration; empty without one."""
    return "" if seconds is None else times.span(seconds)


def ratio_text(value: float | None) -> str:
    """Return pings per answer; empty without an answer."""
    return "" if value is None else f"{value:.1f}"


def summary_text(figures: AttentionFigures) -> str:
    """Describe the figures of all: `20 questions of 8 jobs, 2.5 per job`."""
    if not figures.jobs:
        return f"{figures.answers:,} answers"
    per_job = figures.questions / figures.jobs
    questions = counted(figures.questions, "question")
    jobs = counted(figures.jobs, "job")
    return (
        f"{questions} of {jobs}, {per_job:.1f} per job;"
        f" interruptions in quiet hours: {figures.quiet_pings}"
    )


@dataclass(frozen=True, slots=True)
class FigureRow:
    """The figures of a person, channel or kind of question, read at a time."""

    figures: AttentionFigures
    at: datetime


def _kind(figures: AttentionFigures) -> str:
    return "" if figures.by is FigureGroup.ALL else str(figures.by)


FIGURES: Final[Entity[FigureRow]] = Entity(
    empty="no questions in this time",
    data=lambda row: as_data(row.figures),
    json_class="draftsman.attention.figures:AttentionFigures",
    columns=(
        Column(
            "KIND",
            8,
            help="Its kind.",
            cell=lambda row, _: Cell(_kind(row.figures), "dim"),
            order=lambda row: row.figures.by,
        ),
        Column(
            "NAME",
            help="Whose figures these are.",
            cell=lambda row, _: cells.text(name_text(row.figures), "key"),
            cut=True,
            order=lambda row: row.figures.value,
        ),
        shared_columns.number(
            "ANSWERS",
            8,
            help="Accepted answers and votes.",
            of=lambda row: row.figures.answers,
            largest_first=True,
        ),
        Column(
            "SEEN",
            8,
            help="Median time until a question was first opened or answered.",
            cell=lambda row, _: Cell(time_text(row.figures.seen_p50)),
            right=True,
            order=lambda row: row.figures.seen_p50,
            measure=Measure.TIME,
            largest_first=True,
        ),
        Column(
            "SEEN95",
            8,
            title="SEEN 95%",
            help="95th percentile of SEEN.",
            cell=lambda row, _: Cell(time_text(row.figures.seen_p95)),
            right=True,
            from_width=112,
            order=lambda row: row.figures.seen_p95,
            measure=Measure.TIME,
            largest_first=True,
        ),
        Column(
            "ANSWERED",
            9,
            help="Median time until the answer.",
            cell=lambda row, _: Cell(time_text(row.figures.answer_p50)),
            right=True,
            order=lambda row: row.figures.answer_p50,
            measure=Measure.TIME,
            largest_first=True,
        ),
        Column(
            "ANSWERED95",
            12,
            title="ANSWERED 95%",
            help="95th percentile of ANSWERED.",
            cell=lambda row, _: Cell(time_text(row.figures.answer_p95)),
            right=True,
            from_width=92,
            order=lambda row: row.figures.answer_p95,
            measure=Measure.TIME,
            largest_first=True,
        ),
        shared_columns.number(
            "PINGS",
            7,
            help="Questions and reminders that were sent.",
            of=lambda row: row.figures.pings,
            largest_first=True,
        ),
        Column(
            "RATIO",
            10,
            title="PER ANSWER",
            help="Pings for each answer.",
            cell=lambda row, _: Cell(ratio_text(row.figures.pings_per_answer), "dim"),
            right=True,
            from_width=104,
            order=lambda row: row.figures.pings_per_answer,
            measure=Measure.NUMBER,
            largest_first=True,
        ),
        Column(
            "QUIET",
            9,
            title="OFF HOURS",
            help="Pings in quiet hours.",
            cell=lambda row, _: Cell(
                f"{row.figures.quiet_pings:,}", "bad" if row.figures.quiet_pings else "dim"
            ),
            right=True,
            order=lambda row: row.figures.quiet_pings,
            measure=Measure.NUMBER,
            largest_first=True,
        ),
    ),
)
