"""Migrations: applied once, by the first process; edited files and newer databases are refused."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from draftsman import resources
from draftsman.database import migrate, migration_files
from draftsman.database.database import Connection
from draftsman.errors import (
    DatabaseUnreachable,
    DraftsmanError,
    SchemaOutdated,
)
from draftsman_testing.waits import until
from tests.support.cases import cases
from tests.support.server import Server
from tests.support.statements import rows, value

ROOT = Path(__file__).resolve().parents[3]
FILES = migration_files.available()
NUMBERED = [item.name for item in FILES if not item.has_functions]
FUNCTIONS = [item.name for item in FILES if item.has_functions]
NAMES = [*NUMBERED, *FUNCTIONS]
OF_CHANNELS = [item.name for item in FILES if item.source is not None]
"""Files of the packages of draftsman's own channels."""
Files = list[tuple[str, str]]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """Give a copy of this version's numbered files."""
    migrations = resources.migrations()
    monkeypatch.setattr(resources, "migrations", lambda: migrations)
    return migrations


async def test_pending_migrations_are_applied_beside_an_open_connection(empty_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(empty_url, autocommit=True) as conn:
        await migrate.migrate_pending(empty_url, conn)
        await migrate.check(empty_url)
        await migrate.migrate_pending(empty_url, conn)
        await until(lambda: no_advisory_lock(conn), "the end of the session with the lock")


async def no_advisory_lock(conn: Connection) -> bool:
    """Return whether no session of the database holds an advisory lock."""
    locks: int = await value(
        conn,
        "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database"
        " WHERE locktype = 'advisory' AND datname = current_database()",
    )
    return locks == 0


async def test_an_empty_database_gets_every_file_once(empty_url: str) -> None:
    assert [item.applied_at for item in await migrate.applied_migrations(empty_url)] == [
        None
    ] * len(NAMES)
    assert await migrate.migrate(empty_url) == NAMES
    assert await migrate.migrate(empty_url) == []
    state = await migrate.applied_migrations(empty_url)
    assert [item.name for item in state] == NAMES
    assert all(item.applied_at is not None for item in state)
    await migrate.check(empty_url)


async def test_each_file_is_recorded_with_its_checksum(conn: Connection) -> None:
    recorded = dict(
        await rows(conn, "SELECT name, checksum FROM draftsman.schema_migrations ORDER BY name")
    )
    assert recorded == {
        item.name: hashlib.sha256(item.sql.encode()).hexdigest()
        for item in FILES
        if not item.has_functions
    }


def test_files_are_numbered_without_gaps() -> None:
    numbers = dict[str, list[str]]()
    for name in NUMBERED:
        channel, _, number = name.split("_")[0].rpartition("/")
        numbers.setdefault(channel, []).append(number)
    assert numbers == {
        channel: [f"{number:04}" for number in range(1, len(found) + 1)]
        for channel, found in numbers.items()
    }


async def test_concurrent_migrations_apply_every_file_once(empty_url: str) -> None:
    applied = await asyncio.gather(*(migrate.migrate(empty_url) for _ in range(10)))
    assert sorted(applied, key=len) == [[]] * 9 + [NAMES]


async def test_pending_migrations_are_named(empty_url: str, files: Files) -> None:
    with pytest.raises(SchemaOutdated, match=f"migrations: {', '.join(NAMES)}; run: draftsman"):
        await migrate.check(empty_url)
    await migrate.migrate(empty_url)
    files.append(("9999_later", "INSERT INTO draftsman.schema_migrations VALUES ('9999_later')"))
    with pytest.raises(
        SchemaOutdated, match="pending migrations: 9999_later; run: draftsman migrate"
    ):
        await migrate.check(empty_url)
    assert await migrate.migrate(empty_url) == ["9999_later"]
    await migrate.check(empty_url)


async def test_a_file_that_was_edited_is_refused(database_url: str, files: Files) -> None:
    name, sql = files[1]
    files[1] = (name, sql + "\n-- a word")
    for action in (migrate.applied_migrations, migrate.migrate, migrate.check, migrate.start_epoch):
        with pytest.raises(SchemaOutdated, match=f"{name} was edited after it was applied"):
            await action(database_url)


async def test_a_database_that_is_newer_is_refused(database_url: str, conn: Connection) -> None:
    await conn.execute("INSERT INTO draftsman.schema_migrations (name) VALUES ('9999_later')")
    for action in (migrate.applied_migrations, migrate.migrate, migrate.check):
        with pytest.raises(SchemaOutdated, match=r"newer than this version \(it has 9999_later\)"):
            await action(database_url)


async def test_a_failed_file_is_rolled_back(empty_url: str, server: Server, files: Files) -> None:
    files.append(("9999_bad", "CREATE TABLE draftsman.half (); SELECT 1 / 0"))
    with pytest.raises(DraftsmanError, match="division by zero"):
        await migrate.migrate(empty_url)
    state = await migrate.applied_migrations(empty_url)
    own = [name for name in NUMBERED if "/" not in name]
    names = [*own, "9999_bad", *NUMBERED[len(own) :], *FUNCTIONS]
    assert [item.name for item in state if item.applied_at is None] == names, "all of it"
    files[-1] = ("9999_bad", "CREATE TABLE draftsman.half ()")
    assert await migrate.migrate(empty_url) == names


async def test_a_file_is_applied_only_with_the_rights_of_the_roles(
    database_url: str, conn: Connection, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = "INSERT INTO draftsman.schema_migrations (name) VALUES ('9999_later'); "
    failing = resources.functions()
    failing[0] = (
        failing[0][0],
        failing[0][1].replace("    RETURN missing;", "    RAISE 'no grant';"),
    )
    monkeypatch.setattr(resources, "functions", lambda: failing)
    files.append(("9999_later", record + "CREATE TABLE draftsman.later ()"))
    with pytest.raises(DraftsmanError, match="no grant"):
        await migrate.migrate(database_url)
    assert [
        item.name for item in await migrate.applied_migrations(database_url) if not item.applied_at
    ] == ["9999_later", "functions/database"]
    failing[0] = (failing[0][0], failing[0][1].replace("RAISE 'no grant';", "RETURN missing;"))
    assert await migrate.migrate(database_url) == ["9999_later"]
    query = "SELECT has_table_privilege('draftsman_reader', 'draftsman.later', 'SELECT')"
    assert await value(conn, query)


async def test_an_unreachable_database_is_reported_in_one_line() -> None:
    with pytest.raises(DatabaseUnreachable) as caught:
        await migrate.migrate("postgresql://nobody@127.0.0.1:1/none")
    assert "\n" not in str(caught.value)


def _psql(server: Server, url: str, name: str, sql: str, folder: Path) -> tuple[int, str]:
    file = folder / f"{name}.sql"
    file.write_text(sql, encoding="utf-8")
    command = [server.psql, "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", str(file), url]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    return done.returncode, done.stdout


async def test_psql_can_apply_the_migrations_repeatedly(
    empty_url: str, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "functions").mkdir()
    for name, sql in (*resources.migrations(), *resources.functions()):
        assert _psql(server, empty_url, name, sql, tmp_path)[0] == 0
    assert await migrate.migrate(empty_url) == OF_CHANNELS
    await migrate.check(empty_url)
    before = await migrate.applied_migrations(empty_url)
    for name, sql in resources.migrations():
        done = _psql(server, empty_url, name, sql, tmp_path)
        assert done == (0, f"{name} is already applied\n")
    assert await migrate.applied_migrations(empty_url) == before


def _psql_of_the_page(server: Server, url: str) -> str:
    page = (ROOT / "docs" / "rolling-deploys.md").read_text(encoding="utf-8")
    script = page[page.index("```sh\ncd migrations") + 6 :].partition("```")[0]
    path = f"{Path(server.psql).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "DRAFTSMAN_DATABASE_URL": url}
    command = ["sh", "-e", "-c", script]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, check=True, text=True
    )
    return done.stdout


async def test_psql_applies_all_files_in_one_transaction_as_the_page_says(
    empty_url: str, server: Server, database_url: str
) -> None:
    for output, applied in (("", OF_CHANNELS), ("is already applied", [])):
        assert output in _psql_of_the_page(server, empty_url)
        assert await migrate.migrate(empty_url) == applied
    privileges = "SELECT relname, relacl::text FROM pg_class WHERE relacl IS NOT NULL ORDER BY 1"
    found = []
    for url in (empty_url, database_url):
        with psycopg.connect(url) as conn:
            found.append(conn.execute(privileges).fetchall())
    assert found[0] == found[1]


async def test_files_that_draftsman_applied_are_left_alone_by_psql(
    database_url: str, server: Server, tmp_path: Path
) -> None:
    name, sql = resources.migrations()[0]
    assert _psql(server, database_url, name, sql, tmp_path) == (0, f"{name} is already applied\n")


@cases(("name", "sql"), resources.migrations())
def test_statements_have_no_commands_of_psql(name: str, sql: str) -> None:
    migration = migration_files.Migration(name, sql)
    assert f"\\if :applied \\echo '{name} is already applied' \\quit \\endif\nINSERT INTO" in sql
    assert not re.search(r"^\\|\\gset", migration.statements, re.MULTILINE)
    assert len(sql.splitlines()) - len(migration.statements.splitlines()) == 2


async def test_a_restored_database_starts_a_new_epoch(database_url: str, conn: Connection) -> None:
    assert await migrate.start_epoch(database_url) == 2
    assert await value(conn, "SELECT draftsman.current_epoch()") == 2


async def test_an_unmigrated_database_has_no_epoch(empty_url: str) -> None:
    with pytest.raises(SchemaOutdated, match="run: draftsman migrate"):
        await migrate.start_epoch(empty_url)


Edit = Callable[[str, Callable[[str], str]], None]


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch) -> Edit:
    """Give a function that changes the text of a file of functions."""
    texts = dict(resources.functions())
    monkeypatch.setattr(resources, "functions", lambda: list(texts.items()))

    def change(name: str, changed: Callable[[str], str]) -> None:
        texts[f"functions/{name}"] = changed(texts[f"functions/{name}"])

    return change


async def test_a_changed_text_of_functions_is_applied_alone(
    database_url: str, conn: Connection, edit: Edit
) -> None:
    edit("database", lambda text: text.replace("ELSE 'none' END;", "ELSE 'nobody' END;"))
    with pytest.raises(SchemaOutdated, match="pending migrations: functions/database; run"):
        await migrate.check(database_url)
    assert await migrate.migrate(database_url) == ["functions/database"]
    text = await value(conn, "SELECT pg_get_functiondef('draftsman.session_kind'::regproc)")
    assert "nobody" in text
    assert await migrate.migrate(database_url) == []


EXTRA = """
CREATE OR REPLACE FUNCTION draftsman.extra(a int, b text[] DEFAULT '{}') RETURNS int
LANGUAGE sql AS 'SELECT 1';
CREATE OR REPLACE VIEW draftsman.extra_view AS SELECT draftsman.extra(1) AS x;
CREATE OR REPLACE TRIGGER extra BEFORE DELETE ON draftsman.people
    FOR EACH ROW EXECUTE FUNCTION draftsman.refuse_change('x');
"""


async def test_objects_that_no_file_defines_any_more_are_dropped(
    database_url: str, conn: Connection, edit: Edit
) -> None:
    edit("people", lambda text: text + EXTRA)
    await migrate.migrate(database_url)
    edit("people", lambda text: text.removesuffix(EXTRA))
    moved = EXTRA.split("CREATE OR REPLACE VIEW")[0].replace("a int", "a integer")
    edit("costs", lambda text: text + moved)
    dropped: list[str] = []
    assert await migrate.migrate(database_url, dropped.append) == [
        "functions/costs",
        "functions/people",
    ]
    assert dropped == ["DROP TRIGGER extra ON draftsman.people", "DROP VIEW draftsman.extra_view"]
    assert await value(conn, "SELECT draftsman.extra(1)") == 1
    edit("costs", lambda text: text.removesuffix(moved))
    await migrate.migrate(database_url)
    assert await value(conn, "SELECT count(*) FROM pg_proc WHERE proname = 'extra'") == 0


async def test_objects_that_a_numbered_file_dropped_are_created_again(
    database_url: str, conn: Connection, files: Files
) -> None:
    record = "INSERT INTO draftsman.schema_migrations (name) VALUES ('9999_later'); "
    files.append(("9999_later", record + "DROP VIEW draftsman.jobs CASCADE"))
    gone = "SELECT count(*) FROM pg_proc WHERE proname = 'may_submit'"
    before = await value(conn, "SELECT oid::bigint FROM pg_proc WHERE proname = 'person_of'")
    assert await migrate.migrate(database_url) == ["9999_later"]
    assert await value(conn, gone) == 1
    assert await value(conn, "SELECT count(*) FROM draftsman.jobs") == 0
    after = await value(conn, "SELECT oid::bigint FROM pg_proc WHERE proname = 'person_of'")
    assert after == before
    assert await migrate.migrate(database_url) == []


async def test_an_older_program_never_replaces_functions(
    database_url: str, conn: Connection, edit: Edit
) -> None:
    await conn.execute("INSERT INTO draftsman.schema_migrations (name) VALUES ('9999_later')")
    edit("jobs", lambda text: text + "-- an older text")
    assert await migrate.check_compatible(database_url) == "9999_later"
    with pytest.raises(SchemaOutdated, match="newer than this version"):
        await migrate.migrate(database_url)


def test_the_objects_of_a_file_are_named_as_drop_names_them() -> None:
    item = migration_files.Migration("functions/x", EXTRA)
    assert item.objects == [
        "FUNCTION draftsman.extra(int, text[])",
        "VIEW draftsman.extra_view",
        "TRIGGER extra ON draftsman.people",
    ]


async def test_every_object_of_the_files_is_recorded(conn: Connection) -> None:
    recorded = await value(
        conn,
        "SELECT count(DISTINCT o) FROM draftsman.schema_functions, unnest(objects) o",
    )
    assert recorded == sum(len(file.objects) for file in FILES if file.has_functions)
    existing = await value(  # numbered files call limit_sizes, so one of them has it
        conn,
        "SELECT (SELECT count(*) FROM pg_proc WHERE pronamespace = 'draftsman'::regnamespace"
        "           AND proname <> 'limit_sizes')"
        " + (SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid"
        "     WHERE relnamespace = 'draftsman'::regnamespace AND NOT tgisinternal"
        "       AND tgparentid = 0"
        "       AND relname !~ '_[0-9]{4}_[0-9]{2}$')"
        " + (SELECT count(*) FROM pg_policy)"
        " + (SELECT count(*) FROM pg_class"
        "     WHERE relnamespace = 'draftsman'::regnamespace AND relkind = 'v')",
    )
    assert recorded == existing
