"""Templates of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.schedules.template import Template
from draftsman_tui.dashboard.tables import cells
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Cell, Column, Query, Resource, Rows

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


class TemplatesResource(Resource[Template]):
    """Newest versions of the templates."""

    name = "templates"
    help = "Templates of jobs."
    fields = ("agent", "by", "age")
    empty = "No templates. To add a template: draftsman templates add NAME"
    columns = (
        Column[Template]("TEMPLATE", 20, most=40, order=lambda row: row.name.casefold()),
        Column[Template]("VERSION", 7, right=True, order=lambda row: row.version),
        Column[Template]("TYPE", 12, most=24, from_width=90),
        Column[Template]("PARAMETERS", 16, most=32),
        Column[Template]("DESCRIPTION", 0),
        Column[Template]("BY", 12, most=24, from_width=110, order=lambda row: row.created_by),
        Column[Template]("AGE", 6, right=True, order=lambda row: row.created_at),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Template]:
        return Rows(await rt.templates.all())

    def key(self, row: Template) -> str:
        return row.name

    def cells(self, row: Template, now: datetime) -> Sequence[Cell]:
        definition = row.definition
        parameters = definition.properties if definition else {}
        return (
            cells.text(row.name, "key"),
            Cell(str(row.version)),
            cells.text((definition and definition.type) or "run_agent"),
            cells.text(", ".join(parameters)),
            cells.text(_description(row)),
            cells.text(row.created_by),
            cells.age(row.created_at, now),
        )

    def filter_fields(self, row: Template) -> FilterFields:
        agent = row.definition.agent if row.definition else None
        text = f"{row.name} {_description(row)}"
        return FilterFields(text, agent=agent or "", by=row.created_by, at=row.created_at)


def _description(row: Template) -> str:
    definition = row.definition
    if definition is None:
        return ""
    return definition.description or definition.title or definition.text or ""
