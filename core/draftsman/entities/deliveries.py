"""Deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.deliveries.delivery import MEANINGS, Delivery, DeliveryStatus
from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, ListedEntity, Listing
from draftsman.entities.terms import Measure
from draftsman.jobs.details.sections.deliveries import error_line, subject_text, target_text
from draftsman.jobs.details.sections.section import Reader, plain

if TYPE_CHECKING:
    from datetime import datetime


def error_text(delivery: Delivery, now: datetime) -> str:
    """Return the last error, with the time of the next attempt."""
    return plain(error_line(delivery, Reader(now)))


DELIVERIES: Final[ListedEntity[Delivery]] = ListedEntity(
    empty="no deliveries",
    hint="to add a target: draftsman submit --notify log …",
    json_class="draftsman.deliveries.delivery:Delivery",
    listing=Listing(
        "deliveries",
        "Messages to targets, newest first.",
        read=lambda rt, limit: rt.outbox.all(limit=limit),
        key=lambda row: str(row.seq),
        opens=subject_text,
    ),
    columns=(
        Column(
            "ID",
            8,
            help="Its id.",
            cell=lambda row, _: Cell(str(row.seq), "key"),
            right=True,
            most=8,
            order=lambda row: row.seq,
            measure=Measure.NUMBER,
        ),
        Column(
            "JOB",
            9,
            help="The job, or its question.",
            cell=lambda row, _: Cell(subject_text(row)),
            most=9,
            order=lambda row: row.job,
            measure=Measure.NUMBER,
        ),
        Column(
            "KIND",
            9,
            help="Its kind.",
            cell=lambda row, _: Cell(str(row.kind)),
            order=lambda row: row.kind,
        ),
        Column(
            "TARGET",
            18,
            help="Where the message goes, as in submit --notify.",
            cell=lambda row, _: cells.text(target_text(row)),
            most=40,
            order=target_text,
        ),
        shared_columns.status(lambda row: cells.status_cell(row.status, MEANINGS[row.status]), 11),
        shared_columns.number(
            "ATTEMPTS", 8, help="Attempts to send it.", of=lambda row: row.attempts, from_width=90
        ),
        shared_columns.age(lambda row: row.created_at),
        Column(
            "ERROR",
            help="The last error.",
            cell=lambda row, now: cells.text(
                error_text(row, now), "bad" if row.status is DeliveryStatus.DEAD_LETTER else "dim"
            ),
            cut=True,
            optional=True,
        ),
    ),
)
