"""Groups of jobs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, ListedEntity, Listing
from draftsman.entities.terms import Measure
from draftsman.ids import account_name
from draftsman.workflows.groups import MEANINGS

if TYPE_CHECKING:
    from draftsman.workflows.groups import JobGroup


def group_data(group: JobGroup) -> dict[str, Any]:
    """Return the JSON object of a group."""
    return asdict(group) | {"state": group.state, "progress": group.progress}


GROUPS: Final[ListedEntity[JobGroup]] = ListedEntity(
    empty="no groups yet",
    hint="to create a group: draftsman submit --batch FILE --group NAME --sequential",
    data=group_data,
    json_class="draftsman.workflows.groups:JobGroup",
    json_more={"state": {"type": "string"}, "progress": {"type": "string"}},
    listing=Listing(
        "groups",
        "Groups of jobs, newest first.",
        read=lambda rt, limit: rt.workflows.groups.all(limit),
        key=lambda row: row.name,
        jobs=lambda row: {"group": row.name},
    ),
    columns=(
        shared_columns.text(
            "GROUP", 16, help="Name of the group.", of=lambda row: row.name, role="key", most=30
        ),
        shared_columns.status(lambda row: cells.status_cell(row.state, MEANINGS[row.state]), 9),
        Column(
            "KIND",
            10,
            help="Its kind.",
            cell=lambda row, _: Cell(row.kind),
            from_width=90,
            order=lambda row: row.kind,
        ),
        Column(
            "JOBS",
            help="How many of its jobs succeeded, run, wait, failed or were canceled.",
            cell=lambda row, _: Cell(row.progress),
            cut=True,
            order=lambda row: row.total,
            measure=Measure.NUMBER,
        ),
        Column(
            "FAILURE",
            10,
            help="What the group does when a job fails.",
            cell=lambda row, _: Cell(row.on_failure),
            from_width=110,
            order=lambda row: row.on_failure,
        ),
        shared_columns.by(lambda row: account_name(row.created_by)),
        shared_columns.age(lambda row: row.created_at),
    ),
)
