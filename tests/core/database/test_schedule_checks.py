"""Constraints of the tables of templates and schedules."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.support.statements import CHANGE, CHECK, CONSISTENCY, UNIQUE, refused, run

TEMPLATES: Final = [
    ({"name": "'a b'"}, "job_templates_name_check"),
    ({"version": "0"}, "job_templates_version_check"),
    ({"definition": "'[]'"}, "job_templates_definition_check"),
    (
        {"definition": "('{\"text\": \"' || repeat('x', 1048577) || '\"}')::json"},
        "job_templates_definition_check",
    ),
    ({"definition": "NULL"}, "job_templates_first"),
    ({"created_by": "''"}, "job_templates_created_by_check"),
]
SCHEDULES: Final = [
    ({"name": "'a b'"}, "schedules_name_check"),
    ({"rule": "''"}, "schedules_rule_check"),
    ({"timezone": "''"}, "schedules_timezone_check"),
    ({"template": "''"}, "schedules_template_check"),
    ({"params": "'[]'"}, "schedules_params_check"),
    ({"request": "'[]'", "template": "NULL"}, "schedules_request_check"),
    ({"request": "'{}'"}, "schedules_target"),
    ({"template": "NULL"}, "schedules_target"),
    ({"misfire": "'some'"}, "schedules_misfire_check"),
    ({"misfire_limit": "0"}, "schedules_misfire_limit_check"),
    ({"misfire_limit": "1001"}, "schedules_misfire_limit_check"),
    ({"jitter": "-1"}, "schedules_jitter_check"),
    ({"jitter": "86401"}, "schedules_jitter_check"),
    ({"overlap": "'run'"}, "schedules_overlap_check"),
    ({"origin": "''"}, "schedules_origin_check"),
    ({"created_by": "''"}, "schedules_created_by_check"),
    ({"paused_at": "now()"}, "schedules_paused"),
    ({"pause_reason": "'x'"}, "schedules_paused"),
    ({"due_at": "now()"}, "schedules_due"),
    ({"due_at": "now()", "fire_at": "now() - interval '1 s'"}, "schedules_due"),
]
FIRES: Final = [
    ({"status": "'lost'"}, "schedule_fires_status_check"),
    ({"status": "'fired'"}, "schedule_fires_fired"),
    ({"reason": "NULL"}, "schedule_fires_reason"),
    ({"reason": "''"}, "schedule_fires_reason_check"),
]
TABLES: Final = (TEMPLATES, SCHEDULES, FIRES)
SCHEDULE: Final = {
    "name": "'nightly'",
    "rule": "'@daily'",
    "timezone": "'UTC'",
    "template": "'report'",
    "created_by": "'anna'",
}
FIRE: Final = {
    "schedule": "(SELECT max(id) FROM draftsman.schedules)",
    "due_at": "'2030-01-01'",
    "status": "'skipped'",
    "reason": "'missed'",
}
TEMPLATE: Final = {
    "name": "'report'",
    "version": "1",
    "definition": "'{}'",
    "created_by": "'anna'",
}


def insert(table: str, columns: dict[str, str]) -> str:
    return (
        f"INSERT INTO draftsman.{table} ({', '.join(columns)}) VALUES"
        f" ({', '.join(columns.values())})"
    )


@cases(("wrong", "constraint"), TEMPLATES)
async def test_a_template_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, constraint):
        await run(conn, insert("job_templates", TEMPLATE | wrong))


async def test_versions_follow_each_other_and_never_change(conn: Connection) -> None:
    await run(conn, insert("job_templates", TEMPLATE))
    async with refused(UNIQUE, "job_templates_pkey"):
        await run(conn, insert("job_templates", TEMPLATE))
    async with refused(CONSISTENCY, "version 3 does not follow"):
        await run(conn, insert("job_templates", TEMPLATE | {"version": "3"}))
    await run(conn, insert("job_templates", TEMPLATE | {"version": "2", "definition": "NULL"}))
    async with refused(CONSISTENCY, "version 3 does not follow"):
        await run(conn, insert("job_templates", TEMPLATE | {"version": "3", "definition": "NULL"}))
    for change in (
        "UPDATE draftsman.job_templates SET created_by = 'x'",
        "DELETE FROM draftsman.job_templates",
        "TRUNCATE draftsman.job_templates",
    ):
        async with refused(CHANGE, "a version of a template is immutable"):
            await run(conn, change)


@cases(("wrong", "constraint"), SCHEDULES)
async def test_a_schedule_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("schedules", SCHEDULE | wrong))


@pytest.mark.parametrize(("wrong", "constraint"), FIRES)
async def test_an_occurrence_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    await run(conn, insert("schedules", SCHEDULE))
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("schedule_fires", FIRE | wrong))


async def test_an_occurrence_has_one_outcome(conn: Connection, make: Factory) -> None:
    job = str(await make.queued())
    other = str(await make.queued())
    await run(conn, insert("schedules", SCHEDULE))
    await run(conn, insert("schedule_fires", FIRE | {"status": "'waiting'", "reason": "NULL"}))
    async with refused(UNIQUE, "schedule_fires_pkey"):
        await run(conn, insert("schedule_fires", FIRE))
    update = "UPDATE draftsman.schedule_fires SET "
    async with refused(CHANGE, "a single outcome"):
        await run(conn, f"{update} due_at = due_at + interval '1 h'")
    await run(conn, f"{update} status = 'fired', job = {job}")
    for change in ("status = 'skipped', job = NULL", f"job = {other}", "reason = 'x'"):
        async with refused(CHANGE, "a single outcome"):
            await run(conn, update + change)
    twice = {"due_at": "now() + interval '1 h'", "status": "'fired'", "job": job}
    async with refused(UNIQUE, "schedule_fires_job"):
        await run(conn, insert("schedule_fires", FIRE | twice))


async def test_names_of_schedules_are_unique(conn: Connection) -> None:
    await run(conn, insert("schedules", SCHEDULE))
    async with refused(UNIQUE, "schedules_name"):
        await run(conn, insert("schedules", SCHEDULE))
