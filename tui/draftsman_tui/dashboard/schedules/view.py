"""Schedules, and the outcomes of their newest occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.formats import times
from draftsman.schedules.schedule import MEANINGS, Schedule
from draftsman.schedules.template import Template
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@table_view
class SchedulesResource(Resource[Schedule]):
    """Schedules by name."""

    name = "schedules"
    help = "Schedules, which submit jobs at their times."
    fields = ("by", "age")
    empty = "No schedules. To add a schedule: draftsman schedules add NAME"
    columns = (
        Column[Schedule]("SCHEDULE", 16, most=32, order=lambda row: row.name.casefold()),
        Column[Schedule]("RULE", 16, most=28),
        Column[Schedule]("ZONE", 13, most=24, from_width=110, order=lambda row: row.timezone),
        Column[Schedule]("SUBMITS", 14, most=24, from_width=90, order=lambda row: row.target),
        Column[Schedule]("NEXT", 9, order=lambda row: (row.fire_at is None, row.fire_at)),
        Column[Schedule]("LAST", 0),
        Column[Schedule]("BY", 10, most=20, from_width=130, order=lambda row: row.created_by),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Schedule]:
        return Rows(await rt.schedules.all())

    def key(self, row: Schedule) -> str:
        return row.name

    def job(self, row: Schedule) -> int | None:
        return row.newest_job

    def cells(self, row: Schedule, now: datetime) -> Sequence[Cell]:
        last = Cell("")
        if row.last_status is not None:
            at = f" {times.in_zone(row.last_due_at, row.timezone)}" if row.last_due_at else ""
            reason = f": {row.last_reason}" if row.last_reason else ""
            role = cells.ROLES[MEANINGS[row.last_status]]
            last = cells.text(f"{row.last_status}{at}{reason}", role)
        return (
            cells.text(row.name, "key"),
            cells.text(row.rule),
            cells.text(row.timezone),
            cells.text(row.target),
            _next(row, now),
            last,
            cells.text(row.created_by),
        )

    def filter_fields(self, row: Schedule) -> FilterFields:
        text = f"{row.name} {row.rule} {row.timezone} {row.target} {row.last_reason or ''}"
        return FilterFields(text, by=row.created_by, at=row.created_at)


def _next(row: Schedule, now: datetime) -> Cell:
    if row.paused_at is not None:
        return Cell("paused", "asks")
    if row.fire_at is None:
        return Cell("never", "dim")
    return Cell(times.due((row.fire_at - now).total_seconds()))


# Templates of jobs.


@table_view
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
