"""Constraints of the tables of groups, and jobs that cannot be added to one."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.support.statements import CHANGE, CHECK, UNIQUE, refused, run

GROUP: Final = {
    "name": "'g'",
    "kind": "'parallel'",
    "on_failure": "'stop'",
    "created_by": "'a'",
}
CANCELED: Final = {"canceled_at": "now()", "canceled_by": "'a'"}
GROUPS: Final = [
    ({"name": "'-'"}, "job_groups_name_check"),
    ({"kind": "'other'"}, "job_groups_kind_check"),
    ({"on_failure": "'skip'"}, "job_groups_on_failure_check"),
    ({"created_by": "''"}, "job_groups_created_by_check"),
    ({"canceled_at": "now()"}, "job_groups_canceled"),
    ({"canceled_by": "'a'"}, "job_groups_canceled"),
    ({"cancel_reason": "'a'"}, "job_groups_canceled"),
    (CANCELED | {"cancel_reason": "''"}, "job_groups_cancel_reason_check"),
]
MEMBER: Final = {"job": "1", "group_id": "(SELECT id FROM draftsman.job_groups)", "ordinal": "1"}
MEMBERS: Final = [
    ({"ordinal": "0"}, "job_group_members_ordinal_check"),
    ({"skipped_by": "1"}, "job_group_members_skipped"),
]
TABLES: Final = (GROUPS, MEMBERS)


def insert(table: str, columns: dict[str, str]) -> str:
    """Return a statement that inserts a row."""
    names = ", ".join(columns)
    values = ", ".join(columns.values())
    return f"INSERT INTO draftsman.{table} ({names}) VALUES ({values})"


@cases(("wrong", "constraint"), GROUPS)
async def test_a_group_is_complete(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("job_groups", GROUP | wrong))


async def test_a_name_is_that_of_a_single_group(conn: Connection) -> None:
    await run(conn, insert("job_groups", GROUP))
    async with refused(UNIQUE, '"job_groups_name"'):
        await run(conn, insert("job_groups", GROUP))


@pytest.mark.parametrize(("wrong", "constraint"), MEMBERS)
async def test_a_member_has_a_place(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    await run(conn, insert("job_groups", GROUP))
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert("job_group_members", MEMBER | wrong))


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {}"])
async def test_a_job_keeps_its_group(conn: Connection, statement: str) -> None:
    await run(conn, insert("job_groups", GROUP))
    await run(conn, insert("job_group_members", MEMBER))
    async with refused(CHANGE, "jobs keep their group"):
        await run(conn, statement.format("draftsman.job_group_members"))


async def test_only_a_new_job_that_waits_is_added(make: Factory, conn: Connection) -> None:
    await run(conn, insert("job_groups", GROUP))
    job = await make.queued()
    async with refused("DM001", "only new jobs that wait for parents can be added"):
        await run(
            conn,
            "SELECT draftsman.add_to_group(g.id, ARRAY[%s]::bigint[], '{}', true)"
            " FROM draftsman.job_groups g",
            [job],
        )
