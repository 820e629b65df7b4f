"""Constraints of the tables of templates."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.store.postgres.database import Connection
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
TABLES: Final = (TEMPLATES,)
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


@pytest.mark.parametrize(("wrong", "constraint"), TEMPLATES)
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
