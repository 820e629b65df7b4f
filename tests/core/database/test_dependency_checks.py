"""Constraints of the table of dependencies, and the hold of a job that waits for parents."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman_testing.factories import Factory
from tests.support.cases import cases
from tests.support.statements import CHANGE, CHECK, UNIQUE, refused, run

DEPENDENCY: Final = {"job": "2", "parent": "1", "ordinal": "1", "condition": "'any'"}
DEPENDENCIES: Final = [
    ({"ordinal": "0"}, "job_dependencies_ordinal_check"),
    ({"parent": "2"}, "job_dependencies_older"),
    ({"parent": "3"}, "job_dependencies_older"),
    ({"spawn_key": "'a'"}, "job_dependencies_spawned"),
    ({"parent": "3", "spawned": "true"}, "job_dependencies_spawned"),
    ({"parent": "2", "spawned": "true", "spawn_key": "'a'"}, "job_dependencies_older"),
]
TABLES: Final = (DEPENDENCIES,)


@cases(("wrong", "constraint"), DEPENDENCIES)
async def test_a_parent_is_older_than_its_child(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, _insert(DEPENDENCY | wrong))


async def test_a_job_spawns_a_single_job_under_a_key(conn: Connection) -> None:
    spawned = DEPENDENCY | {"parent": "3", "spawned": "true", "spawn_key": "'a'"}
    await run(conn, _insert(spawned))
    async with refused(UNIQUE, '"job_dependencies_keys"'):
        await run(conn, _insert(spawned | {"parent": "4"}))
    await run(conn, _insert(spawned | {"parent": "4", "spawn_key": "'b'"}))


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {}"])
async def test_a_job_keeps_its_parents(conn: Connection, statement: str) -> None:
    await run(conn, _insert(DEPENDENCY))
    async with refused(CHANGE, "jobs keep their parents"):
        await run(conn, statement.format("draftsman.job_dependencies"))


@cases("status", [Status.RESUMED, Status.RETRYING, Status.RUNNING])
async def test_only_a_new_job_waits_for_parents(
    make: Factory, conn: Connection, status: Status
) -> None:
    number = await make.job_in(status)
    async with refused(CHECK, '"job_states_hold"'):
        await run(conn, f"UPDATE draftsman.job_states SET hold = 'parents' WHERE number = {number}")


async def test_parents_are_given_once_and_only_to_a_new_job(
    make: Factory, conn: Connection
) -> None:
    parent = await make.queued()
    ready = await make.queued()
    child = await make.queued(after=(parent,))
    link = "SELECT draftsman.link_jobs(ARRAY[{}]::bigint[], ARRAY[{}]::bigint[], '{{any}}')"
    for job in (ready, child):
        async with refused("DM001", f"D-{job} is not a new job that waits for parents"):
            await run(conn, link.format(job, parent))


def _insert(columns: dict[str, str]) -> str:
    names = ", ".join(columns)
    values = ", ".join(columns.values())
    return f"INSERT INTO draftsman.job_dependencies ({names}) VALUES ({values})"
