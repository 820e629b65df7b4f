"""A migration that waits for a locked table does not block other work, and is retried."""

from __future__ import annotations

import asyncio

import pytest

from draftsman import resources
from draftsman.database import migrate
from draftsman.database.database import Connection, Database
from draftsman.errors import LostRace, SchemaOutdated
from draftsman_testing.factories import Factory
from draftsman_testing.waits import DEADLINE, background, until, wait_blocked
from tests.support.statements import run

NAME = "9999_wide"
SQL = f"""
INSERT INTO draftsman.schema_migrations (name) VALUES ('{NAME}');
ALTER TABLE draftsman.job_states ADD COLUMN test_extra int"""


@pytest.fixture(autouse=True)
def _one_more(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a migration that the database does not have."""
    migrations = [*resources.migrations(), (NAME, SQL)]
    monkeypatch.setattr(resources, "migrations", lambda: migrations)
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", 0.5)
    monkeypatch.setattr(migrate, "RETRY_DELAY", 0.1)


async def test_jobs_are_submitted_while_a_migration_waits_for_a_lock(
    db: Database, database_url: str, make: Factory, conn: Connection
) -> None:
    reader = await db.dedicated_connection()
    messages = list[str]()
    await run(reader, "BEGIN; SELECT FROM draftsman.jobs")
    async with background(migrate.migrate(database_url, messages.append)) as migrating:
        await wait_blocked(conn, by=reader.info.backend_pid)
        async with asyncio.timeout(DEADLINE):  # queued behind the migration, but not forever
            number = await make.queued()

        async def reported() -> bool:
            return bool(messages)

        await until(reported, "a report of the lock's holder")
        assert not migrating.done()
        await reader.close()
        async with asyncio.timeout(DEADLINE):
            assert await migrating == [NAME]
    assert messages[0].startswith(f"{NAME} is waiting for a table lock held by: pid ")
    assert "idle in transaction" in messages[0]
    assert len(messages) == 1
    await migrate.check(database_url)
    assert (await make.rt.read_model.job(number)).number == number


async def test_a_migration_without_its_lock_times_out_and_names_the_holder(
    db: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "MAX_ATTEMPTS", 2)
    reader = await db.dedicated_connection()
    await run(reader, "BEGIN; SELECT FROM draftsman.jobs")
    try:
        with pytest.raises(LostRace, match=f"{NAME} could not .*pid {reader.info.backend_pid} "):
            await migrate.migrate(database_url)
    finally:
        await reader.close()
    with pytest.raises(SchemaOutdated, match=f"pending migrations: {NAME}"):
        await migrate.check(database_url)


async def test_a_version_works_on_a_newer_and_not_on_an_older_schema(
    database_url: str, conn: Connection
) -> None:
    with pytest.raises(SchemaOutdated, match=f"pending migrations: {NAME}; run: draftsman migrate"):
        await migrate.check_compatible(database_url)
    await migrate.migrate(database_url)
    assert await migrate.check_compatible(database_url) is None
    await conn.execute("INSERT INTO draftsman.schema_migrations (name) VALUES ('9999_x_later')")
    assert await migrate.check_compatible(database_url) == "9999_x_later"
