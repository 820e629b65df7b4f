"""Job types that workers have described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.entity import Column, ListedEntity, Listing
from draftsman.text import first_line

if TYPE_CHECKING:
    from draftsman.job_types.published.description import PublishedType


JOB_TYPES: Final[ListedEntity[PublishedType]] = ListedEntity(
    empty="no job types yet: a worker publishes those of its code a moment after its start",
    hint="to start one with your code: draftsman up --app MODULE",
    json_class="draftsman.job_types.published.description:PublishedType",
    listing=Listing(
        "types",
        "Job types that workers have described.",
        read=lambda rt, _: rt.published_types.all(),
        key=lambda row: row.name,
        jobs=lambda row: {"type": row.name},
    ),
    columns=(
        shared_columns.text(
            "TYPE", 20, help="Type of its jobs.", of=lambda row: row.name, role="key", most=40
        ),
        Column(
            "PARAMETERS",
            16,
            help="Values that a job gives.",
            cell=lambda row, _: cells.text(", ".join(row.inputs.properties)),
            most=32,
            cut=True,
        ),
        shared_columns.text(
            "QUEUE",
            10,
            help="Name of the queue.",
            of=lambda row: row.queue or "default",
            most=20,
            from_width=90,
        ),
        shared_columns.number(
            "WORKERS", 7, help="Live workers that serve it.", of=lambda row: row.workers
        ),
        Column(
            "DESCRIPTION",
            help="Its description, or else the title or text of its jobs.",
            cell=lambda row, _: cells.text(first_line(row.description) or row.title),
            cut=True,
        ),
        shared_columns.text(
            "PLACE",
            16,
            help="Module and function of its code.",
            of=lambda row: row.place,
            most=40,
            cut=True,
            from_width=110,
        ),
    ),
)
