"""Schedules, their occurrences, and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity, ListedEntity, Listing
from draftsman.entities.terms import Measure
from draftsman.formats import times
from draftsman.formats.json_data import as_data
from draftsman.ids import account_name, job_name

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.schedules.schedule import Fire, FireStatus, Schedule
    from draftsman.schedules.template import Template


def _outcome(status: FireStatus, more: str = "") -> Cell:
    from draftsman.schedules.schedule import MEANINGS

    return cells.text(f"{status}{more}", cells.ROLES[MEANINGS[status]])


def _next(schedule: Schedule, now: datetime) -> Cell:
    if schedule.paused_at is not None:
        return Cell("paused", "asks")
    if schedule.fire_at is None:
        return Cell("never", "dim")
    return Cell(times.due((schedule.fire_at - now).total_seconds()))


def _last(schedule: Schedule) -> Cell:
    if schedule.last_status is None:
        return Cell("")
    due = schedule.last_due_at
    at = "" if due is None else f" {times.in_zone(due, schedule.timezone)}"
    reason = f": {schedule.last_reason}" if schedule.last_reason else ""
    return _outcome(schedule.last_status, f"{at}{reason}")


def _job(number: int | None) -> Cell:
    return Cell("" if number is None else job_name(number))


SCHEDULES: Final[ListedEntity[Schedule]] = ListedEntity(
    empty="no schedules",
    hint="to add a schedule: draftsman schedules add --help",
    json_class="draftsman.schedules.schedule:Schedule",
    listing=Listing(
        "schedules",
        "Schedules, and what they do next.",
        read=lambda rt, _: rt.schedules.all(),
        key=lambda row: row.name,
        opens=lambda row: "" if row.newest_job is None else job_name(row.newest_job),
    ),
    columns=(
        shared_columns.text(
            "SCHEDULE",
            16,
            help="Name of the schedule.",
            of=lambda row: row.name,
            role="key",
            most=32,
        ),
        Column(
            "RULE",
            16,
            help="When it submits a job.",
            cell=lambda row, _: cells.text(row.rule),
            most=28,
        ),
        shared_columns.text(
            "ZONE", 13, help="Its time zone.", of=lambda row: row.timezone, most=24, from_width=110
        ),
        shared_columns.text(
            "SUBMITS",
            14,
            help="The template or type of its jobs.",
            of=lambda row: row.target,
            most=24,
            cut=True,
            from_width=90,
        ),
        Column(
            "NEXT",
            9,
            help="What is next, or when; the error of a failed job.",
            cell=_next,
            order=lambda row: row.fire_at,
            measure=Measure.TIME,
        ),
        Column(
            "LAST",
            help="Outcome of the newest occurrence: waiting, fired, skipped or refused.",
            cell=lambda row, _: _last(row),
            cut=True,
        ),
        Column(
            "JOB",
            9,
            help="The job, or its question.",
            cell=lambda row, _: _job(row.newest_job),
            from_width=90,
            order=lambda row: row.newest_job or 0,
            measure=Measure.NUMBER,
            optional=True,
        ),
        shared_columns.by(lambda row: account_name(row.created_by), from_width=130),
    ),
)
FIRES: Final[Entity[Fire]] = Entity(
    empty="no occurrence was due yet",
    json_class="draftsman.schedules.schedule:Fire",
    columns=(
        Column(
            "SCHEDULE",
            help="Name of the schedule.",
            cell=lambda row, _: cells.text(row.schedule, "key"),
        ),
        Column(
            "DUE",
            help="When it was due, in the time zone of the schedule.",
            cell=lambda row, _: Cell(times.in_zone(row.due_at, row.timezone)),
        ),
        Column("ZONE", help="Its time zone.", cell=lambda row, _: cells.text(row.timezone)),
        Column("OUTCOME", help="Its outcome.", cell=lambda row, _: _outcome(row.status)),
        Column("JOB", help="The job, or its question.", cell=lambda row, _: _job(row.job)),
        Column("REASON", help="Its reason.", cell=lambda row, _: cells.text(row.reason), cut=True),
    ),
)
"""Occurrences of schedules."""


def template_data(template: Template) -> Any:
    """Return the JSON object of a template."""
    definition = template.definition and template.definition.as_data()
    return as_data(template) | {"definition": definition}


def description(template: Template) -> str:
    """Return the description of a template, or else the title or text of its jobs."""
    definition = template.definition
    if definition is None:
        return ""
    return definition.description or definition.title or definition.text or ""


def _parameters(template: Template) -> str:
    return ", ".join(template.definition.inputs.properties if template.definition else ())


TEMPLATES: Final[ListedEntity[Template]] = ListedEntity(
    empty="no templates",
    hint="to add a template: draftsman templates add --help",
    data=template_data,
    json_class="draftsman.schedules.template:Template",
    listing=Listing(
        "templates",
        "Templates of jobs.",
        read=lambda rt, _: rt.templates.all(),
        key=lambda row: row.name,
    ),
    columns=(
        shared_columns.text(
            "TEMPLATE",
            20,
            help="Name of the template.",
            of=lambda row: row.name,
            role="key",
            most=40,
        ),
        shared_columns.number("VERSION", 7, help="Its version.", of=lambda row: row.version),
        Column(
            "TYPE",
            12,
            help="Type of its jobs.",
            cell=lambda row, _: cells.text((row.definition and row.definition.type) or "run_agent"),
            most=24,
            from_width=90,
        ),
        Column(
            "PARAMETERS",
            16,
            help="Values that a job gives.",
            cell=lambda row, _: cells.text(_parameters(row)),
            most=32,
            cut=True,
        ),
        Column(
            "DESCRIPTION",
            help="Its description, or else the title or text of its jobs.",
            cell=lambda row, _: cells.text(description(row)),
            cut=True,
        ),
        shared_columns.by(lambda row: account_name(row.created_by)),
        shared_columns.age(lambda row: row.created_at),
    ),
)
