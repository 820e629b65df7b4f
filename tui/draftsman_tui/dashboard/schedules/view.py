"""Schedules with the outcomes of their newest occurrences, and templates."""

from __future__ import annotations

from draftsman.entities.schedules import SCHEDULES, TEMPLATES, description
from draftsman.schedules.schedule import Schedule
from draftsman.schedules.template import Template
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import ListedResource


class SchedulesResource(ListedResource[Schedule]):
    """Schedules by name."""

    help = "Schedules, which submit jobs at their times."
    fields = ("by", "age")
    entity = SCHEDULES

    def filter_fields(self, row: Schedule) -> FilterFields:
        text = f"{row.name} {row.rule} {row.timezone} {row.target} {row.last_reason or ''}"
        return FilterFields(text, by=row.created_by, at=row.created_at)


class TemplatesResource(ListedResource[Template]):
    """Newest versions of the templates."""

    fields = ("agent", "by", "age")
    entity = TEMPLATES

    def filter_fields(self, row: Template) -> FilterFields:
        agent = row.definition.agent if row.definition else None
        text = f"{row.name} {description(row)}"
        return FilterFields(text, agent=agent or "", by=row.created_by, at=row.created_at)
