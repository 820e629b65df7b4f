"""The contract of the tables of packages, for those of draftsman and of its channels."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.database.migration_files import available
from draftsman_testing.tables import check_tables, tables_of
from tests.support.statements import run


async def test_the_tables_of_our_packages_keep_the_contract(conn: Connection) -> None:
    """The ids in events of pagers are limited by their parser (`MAX_ID`) alone."""
    channels = {item.source.channel for item in available() if item.source is not None}
    owners = {channel for channel in channels if tables_of(channel)}
    assert "trello" in owners
    for channel in owners:
        await check_tables(conn, channel, sizes=channel != "pager")


async def test_the_tables_of_the_core_keep_it(conn: Connection) -> None:
    """Their sizes are tested in `test_size_checks.py`: many texts refer to others."""
    await check_tables(conn, None, sizes=False)


async def test_each_problem_is_named(conn: Connection) -> None:
    table = tables_of("trello")[0]
    async with conn.transaction(force_rollback=True):
        await run(
            conn, f"ALTER TABLE draftsman.{table} ADD COLUMN note text, ADD COLUMN data jsonb"
        )
        await run(conn, f"COMMENT ON TABLE draftsman.{table} IS NULL")
        await run(conn, f"GRANT SELECT ON draftsman.{table} TO PUBLIC")
        with pytest.raises(AssertionError) as caught:
            await check_tables(conn, "trello")
    assert sorted(str(caught.value).splitlines()) == [
        f"{table}.data: it has no comment",
        f"{table}.data: no CHECK refuses a jsonb that is too large",
        f"{table}.note: it has no comment",
        f"{table}.note: no CHECK refuses a text that is too large",
        f"{table}: PUBLIC has the privilege SELECT; revoke it",
        f"{table}: it has no comment",
    ]
