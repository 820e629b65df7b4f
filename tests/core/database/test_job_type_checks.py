"""Constraints of the table of job types."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from tests.core.database.test_schedule_checks import insert
from tests.support.cases import cases
from tests.support.statements import CHANGE, CHECK, refused, run

TYPES: Final = [
    ({"name": "'1 x'"}, "job_types_name_check"),
    ({"version": "'1'"}, "job_types_version_check"),
    ({"place": "''"}, "job_types_place_check"),
    ({"title": "''"}, "job_types_title_check"),
    ({"queue": "'a b'"}, "job_types_queue_check"),
    ({"concurrency": "''"}, "job_types_concurrency_check"),
    ({"parameters": "'[]'"}, "job_types_parameters_check"),
    ({"payload_version": "0"}, "job_types_payload_version_check"),
    ({"limits": "'[]'"}, "job_types_limits_check"),
    ({"schedules": "'{}'"}, "job_types_schedules_check"),
]
TABLES: Final = (TYPES,)
TYPE: Final = {
    "name": "'report:weekly'",
    "version": "repeat('a', 64)",
    "place": "'company.jobs:weekly'",
    "description": "''",
    "parameters": "'{}'",
    "limits": "'{}'",
    "aliases": "'{}'",
}


@cases(("wrong", "constraint"), TYPES)
async def test_a_type_has_valid_columns(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, constraint):
        await run(conn, insert("job_types", TYPE | wrong))


async def test_a_description_never_changes(conn: Connection) -> None:
    await run(conn, insert("job_types", TYPE))
    for change in (
        "UPDATE draftsman.job_types SET title = 'x'",
        "DELETE FROM draftsman.job_types",
    ):
        async with refused(CHANGE, "the description of a job type is immutable"):
            await run(conn, change)
    await run(conn, "UPDATE draftsman.job_types SET served_at = draftsman.now()")
