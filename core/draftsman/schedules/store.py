"""Schedules and what they started, and versions of templates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from psycopg.types.json import Json, Jsonb

from draftsman.database.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    rows,
    scalar,
)
from draftsman.database.named_queries import load, load_parts
from draftsman.database.selection import ALL, Selection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.schedules.schedule import Fire, FireStatus, Schedule, ScheduleSpec
from draftsman.schedules.template import Template, TemplateDefinition

_Q = load(__name__)

SCHEDULES_DUE: Final = load_parts(__name__)["schedules_due"]
"""Query of the time when the sweep is due."""

MAX_SCHEDULES: Final = 20_000
"""Maximum number of schedules read."""


class Outcome(NamedTuple):
    """The outcome of an occurrence."""

    schedule: int
    due_at: datetime
    status: FireStatus
    job: int | None = None
    reason: str | None = None


async def all_schedules(conn: Connection, limit: int = MAX_SCHEDULES) -> list[Schedule]:
    """Return the schedules, by name."""
    return await fetch_all(conn, _Q["all_schedules"], {"limit": limit}, Schedule)


async def of_origin(conn: Connection, origin: str, limit: int = MAX_SCHEDULES) -> list[Schedule]:
    """Return the schedules of an origin, by name."""
    return await fetch_all(conn, _Q["of_origin"], {"origin": origin, "limit": limit}, Schedule)


async def by_name(conn: Connection, name: str) -> Schedule | None:
    """Return a schedule."""
    return await fetch_one(conn, _Q["by_name"], {"name": name}, Schedule)


async def lock(conn: Connection, name: str) -> Schedule | None:
    """Return a schedule, locked until the end of the transaction."""
    return await fetch_one(conn, _Q["lock"], {"name": name}, Schedule)


async def add(
    conn: Connection, spec: ScheduleSpec, created_by: str, origin: str | None
) -> int | None:
    """Insert a schedule that is not due yet; None if its name is taken."""
    params = _columns(spec) | {"created_by": created_by, "origin": origin}
    return await scalar(conn, _Q["add"], params)  # type: ignore[no-any-return]


async def change(
    conn: Connection, id: int, spec: ScheduleSpec, created_by: str, origin: str | None
) -> None:
    """Replace the definition of a schedule."""
    params = _columns(spec) | {"id": id, "created_by": created_by, "origin": origin}
    await execute(conn, _Q["change"], params)


async def set_next(
    conn: Connection, id: int, due_at: datetime | None, fire_at: datetime | None
) -> None:
    """Store the next occurrence."""
    await execute(conn, _Q["set_next"], {"id": id, "due_at": due_at, "fire_at": fire_at})


async def pause(conn: Connection, id: int, by: str, reason: str | None) -> None:
    """Pause a schedule."""
    await execute(conn, _Q["pause"], {"id": id, "by": by, "reason": reason})


async def resume(
    conn: Connection, id: int, due_at: datetime | None, fire_at: datetime | None
) -> None:
    """Resume a schedule with its next occurrence."""
    await execute(conn, _Q["resume"], {"id": id, "due_at": due_at, "fire_at": fire_at})


async def remove(conn: Connection, id: int) -> bool:
    """Delete a schedule with its history."""
    return await scalar(conn, _Q["remove"], {"id": id}) is not None


async def latest(conn: Connection, limit: int) -> list[Fire]:
    """Return the occurrences of all schedules, newest first."""
    return await fetch_all(conn, _Q["latest"], {"limit": limit}, Fire)


async def history(conn: Connection, name: str, limit: int) -> list[Fire]:
    """Return the occurrences of a schedule, newest first."""
    return await fetch_all(conn, _Q["history"], {"name": name, "limit": limit}, Fire)


async def of_job(conn: Connection, job: int) -> Fire | None:
    """Return the occurrence that submitted a job."""
    return await fetch_one(conn, _Q["of_job"], {"job": job}, Fire)


async def due(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> list[Schedule]:
    """Lock and return schedules with an occurrence that is due."""
    return await fetch_all(conn, _Q["due"], term.params(limit) | selection.params, Schedule)


async def ready(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> list[Schedule]:
    """Lock and return schedules whose oldest waiting occurrence may fire."""
    return await fetch_all(conn, _Q["ready"], term.params(limit) | selection.params, Schedule)


async def recorded(
    conn: Connection, since: Sequence[tuple[int, datetime]]
) -> list[tuple[int, datetime, str]]:
    """Return the recorded occurrences (schedule, time, status) from a time on, or waiting."""
    schedules, times = zip(*since, strict=True)
    params = {"schedules": list(schedules), "since": list(times)}
    return [(id, at, status) for id, at, status in await rows(conn, _Q["recorded"], params)]


async def unfinished(conn: Connection, jobs: Sequence[int]) -> set[int]:
    """Return those of the jobs that have not finished."""
    return {row[0] for row in await rows(conn, _Q["unfinished"], {"jobs": list(jobs)})}


async def record(conn: Connection, outcomes: Sequence[Outcome]) -> int:
    """Insert occurrences; a second outcome of an occurrence is an error."""
    return len(await rows(conn, _Q["record"], _arrays(outcomes)))


async def resolve(conn: Connection, outcomes: Sequence[Outcome]) -> int:
    """Store the outcomes of occurrences that waited; return their number."""
    return len(await rows(conn, _Q["resolve"], _arrays(outcomes)))


async def advance(
    conn: Connection,
    following: Sequence[tuple[int, datetime | None, datetime | None, int | None]],
) -> None:
    """Store the next occurrence of each schedule (id, due, fire) and its newest job."""
    ids, due_at, fire_at, jobs = (list(column) for column in zip(*following, strict=True))
    params = {"schedules": ids, "due": due_at, "fire": fire_at, "jobs": jobs}
    await execute(conn, _Q["advance"], params)


async def forget(conn: Connection, schedules: Sequence[int]) -> int:
    """Delete old occurrences of these schedules; return their number."""
    return len(await rows(conn, _Q["forget"], {"schedules": list(schedules)}))


def _arrays(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    schedules, due_at, statuses, jobs, reasons = zip(*outcomes, strict=True)
    return {
        "schedules": list(schedules),
        "due": list(due_at),
        "statuses": [str(status) for status in statuses],
        "jobs": list(jobs),
        "reasons": list(reasons),
    }


def _columns(spec: ScheduleSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "rule": spec.rule,
        "timezone": spec.timezone,
        "template": spec.template,
        "params": Jsonb(dict(spec.params or {})),
        "request": None if spec.request is None else Jsonb(dict(spec.request)),
        "misfire": str(spec.misfire),
        "misfire_limit": spec.misfire_limit,
        "jitter": spec.jitter,
        "overlap": str(spec.overlap),
    }


# Versions of job templates.


MAX_TEMPLATES: Final = 5000
"""Maximum number of templates, or of versions of a template, read."""


async def newest_templates(conn: Connection, limit: int = MAX_TEMPLATES) -> list[Template]:
    """Return the newest version of each template, by name."""
    return [_template(row) for row in await rows(conn, _Q["newest_templates"], {"limit": limit})]


async def template_versions(
    conn: Connection, name: str, version: int | None = None, limit: int = 1
) -> list[Template]:
    """Return the versions of a template, newest first, up to `version`."""
    params = {"name": name, "version": version, "limit": limit}
    return [_template(row) for row in await rows(conn, _Q["template_versions"], params)]


async def add_template(
    conn: Connection, name: str, version: int, definition: TemplateDefinition | None, actor: str
) -> Template | None:
    """Store a version; None if it exists."""
    data = None if definition is None else Json(definition.as_data())
    params = {"name": name, "version": version, "definition": data, "actor": actor}
    added = await rows(conn, _Q["add_template"], params)
    return _template(added[0]) if added else None


def _template(row: Sequence[Any]) -> Template:
    name, version, definition, created_by, created_at = row
    # stored by this or a newer version: an unknown field must not hide the other templates
    fields = (
        {key: definition[key] for key in TemplateDefinition.model_fields if key in definition}
        if definition is not None
        else None
    )
    model = None if fields is None else TemplateDefinition(**fields)
    return Template(name, version, model, created_by, created_at)
