"""Migrations of the packages of channels, with a second package that is installed for the test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import psycopg
import pytest

from draftsman.database import migrate
from draftsman.database.database import Connection
from draftsman.errors import SchemaOutdated
from tests.support.distributions import CHANNEL, Distribution, channel_source, installed
from tests.support.statements import rows, run, value

SQL: Final = "acme_fax_sql"
BOXES: Final = "CREATE TABLE draftsman.mail_boxes (address text PRIMARY KEY);"
COUNT: Final = """
CREATE OR REPLACE FUNCTION draftsman.count_mail_boxes() RETURNS bigint
LANGUAGE sql AS 'SELECT count(*) FROM draftsman.mail_boxes';
CREATE OR REPLACE FUNCTION draftsman.grant_mail() RETURNS void LANGUAGE sql AS $$
    SELECT draftsman.grant_to('bot', 'INSERT ON draftsman.mail_boxes');
    SELECT draftsman.grant_to('bot', 'EXECUTE ON FUNCTION draftsman.count_mail_boxes()')
$$;
"""
FILES: Final = {"0001_boxes": BOXES, "functions/boxes": COUNT}
NAMES: Final = ["fax/0001_boxes", "functions/fax/channel", "functions/fax/boxes"]
FACTS: Final = (
    "ChannelFacts(accounts='account', has_bot=True, takes_answers=True, person_target='^.*$')"
)
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    """Give a function that installs a version of the package, instead of the one before."""
    stack = ExitStack()

    def replace(files: Mapping[str, str] = FILES, version: str = "1.2", facts: str = FACTS) -> None:
        remove()
        folder = tmp_path / f"{version}-{len(list(tmp_path.iterdir()))}"
        for name, text in files.items():
            path = folder / SQL / f"{name}.sql"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        more = f", migrations={SQL!r}, facts={facts}"
        source = CHANNEL.format(name="fax", label="Fax", more=more)
        source = source.replace("import ChannelPlugin", "import ChannelFacts, ChannelPlugin")
        entries = {"fax": "acme_fax:CHANNEL"}
        package = Distribution("acme-fax", version, entries, {"acme_fax": source})
        stack.enter_context(installed(folder, package))

    def remove() -> None:
        stack.close()
        sys.modules.pop(SQL, None)

    replace.remove = remove  # type: ignore[attr-defined]
    yield replace
    remove()


@pytest.fixture
def reports() -> list[str]:
    """Give a list for the lines that a migration reports."""
    return []


async def test_a_package_is_migrated_after_draftsman(
    empty_url: str, install: Install, reports: list[str]
) -> None:
    install()
    applied = await migrate.migrate(empty_url, reports.append)
    assert applied[-3:] == NAMES
    assert reports == []
    assert await migrate.migrate(empty_url) == []
    await migrate.check(empty_url)
    assert await migrate.warn_of_schema(empty_url) == frozenset()
    async with await psycopg.AsyncConnection.connect(empty_url) as conn:
        query = "SELECT package, version, has_bot, is_chat, person_target FROM draftsman.channels"
        assert await rows(conn, f"{query} WHERE name = 'fax'") == [
            ("acme-fax", "1.2", True, False, "^.*$")
        ]
        for role, privilege, granted in (
            ("reader", "SELECT", True),
            ("worker", "INSERT", False),
            ("bot", "INSERT", True),
        ):
            asked = f"has_table_privilege('draftsman_{role}', 'draftsman.mail_boxes', %s)"
            assert await value(conn, f"SELECT {asked}", (privilege,)) is granted
        asked = "has_function_privilege('draftsman_reader', 'draftsman.count_mail_boxes()'"
        assert await value(conn, f"SELECT {asked}, 'EXECUTE')") is False


async def test_the_printed_sql_applies_the_package(empty_url: str, install: Install) -> None:
    install()
    script = await migrate.script(empty_url)
    assert [name for name, _ in script if "fax" in name] == NAMES
    with psycopg.connect(empty_url) as conn:
        for _, sql in script:
            conn.execute(sql.encode())
    await migrate.check(empty_url)
    assert await migrate.migrate(empty_url) == []
    (fax,) = [item for item in await migrate.packages(empty_url) if item.channel == "fax"]
    assert fax.version == "1.2"


async def test_a_new_version_of_a_package_applies_what_it_adds(
    database_url: str, conn: Connection, install: Install, reports: list[str]
) -> None:
    install()
    assert await migrate.migrate(database_url) == NAMES
    more = {"0002_more": "ALTER TABLE draftsman.mail_boxes ADD COLUMN name text"}
    fewer = COUNT.replace("count_mail_boxes", "mail_box_count")
    install(FILES | more | {"functions/boxes": fewer}, "1.3", "ChannelFacts(is_chat=True)")
    with pytest.raises(SchemaOutdated, match="fax/0002_more, functions/fax/channel, functions"):
        await migrate.check(database_url)
    names = ["fax/0002_more", "functions/fax/channel", "functions/fax/boxes"]
    assert await migrate.migrate(database_url, reports.append) == names
    assert reports == ["DROP FUNCTION draftsman.count_mail_boxes()"]
    query = "SELECT version, is_chat, accounts FROM draftsman.channels WHERE name = 'fax'"
    assert await rows(conn, query) == [("1.3", True, None)]


async def test_a_version_without_other_files_needs_no_migration(
    database_url: str, install: Install
) -> None:
    install()
    await migrate.migrate(database_url)
    install(version="1.2.1")
    await migrate.check(database_url)
    (fax,) = [item for item in await migrate.packages(database_url) if item.channel == "fax"]
    assert (fax.version, fax.installed) == ("1.2", "1.2.1")
    assert await migrate.migrate(database_url) == []
    (fax,) = [item for item in await migrate.packages(database_url) if item.channel == "fax"]
    assert fax.version == "1.2.1"


async def test_the_tables_of_an_absent_package_are_kept(
    database_url: str, conn: Connection, install: Install, reports: list[str]
) -> None:
    install()
    await migrate.migrate(database_url)
    await run(conn, "INSERT INTO draftsman.mail_boxes VALUES ('a@example.org')")
    install.remove()  # type: ignore[attr-defined]
    await run(conn, "UPDATE draftsman.schema_functions SET checksum = 'x' WHERE name = 'people'")
    assert await migrate.migrate(database_url, reports.append) == ["functions/people"]
    assert reports == []
    await migrate.check(database_url)
    assert await value(conn, "SELECT draftsman.count_mail_boxes()") == 1
    packages = {item.channel: item for item in await migrate.packages(database_url)}
    assert (packages["fax"].package, packages["fax"].version) == ("acme-fax", "1.2")
    assert packages["fax"].installed is None
    assert packages["slack"].installed == packages["slack"].version
    install()
    assert await migrate.migrate(database_url) == []


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            FILES | {"0002_bad": "SELECT 1 / 0"},
            "database error: division by zero in fax/0002_bad",
        ),
        (
            FILES | {"functions/other": "CREATE OR REPLACE FUNCTION draftsman.now() RETURNS int"},
            "redefines FUNCTION draftsman.now of draftsman in functions/fax/other",
        ),
        (FILES | {"0002_bad": "\ud800"}, "has no readable migrations in acme_fax_sql"),
        ({}, "has no readable migrations in acme_fax_sql: No module named 'acme_fax_sql'"),
    ],
)
async def test_a_package_that_fails_is_named_and_changes_nothing(
    database_url: str,
    install: Install,
    reports: list[str],
    files: Mapping[str, str],
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "\ud800" in files.get("0002_bad", ""):
        files = {**files, "0002_bad": ""}
        install(files)
        path = next(Path(p) for p in sys.path if (Path(p) / SQL).is_dir())
        (path / SQL / "0002_bad.sql").write_bytes(b"\xff")
    else:
        install(files)
    applied = await migrate.migrate(database_url, reports.append)
    assert not [name for name in applied if "fax" in name]
    (report,) = reports
    assert report.startswith("channel 'fax' of acme-fax 1.2 ")
    assert problem in report
    with pytest.raises(SchemaOutdated, match=r"fax/0001_boxes|channel 'fax' of acme-fax 1\.2"):
        await migrate.check(database_url)
    assert await migrate.check_compatible(database_url) is None
    assert await migrate.warn_of_schema(database_url) == {"fax"}
    async with await psycopg.AsyncConnection.connect(database_url) as conn:
        assert await value(conn, "SELECT to_regclass('draftsman.mail_boxes')") is None
        assert await value(conn, "SELECT count(*) FROM draftsman.channels WHERE name = 'fax'") == 0


async def test_a_package_with_the_name_of_another_does_no_harm_to_it(
    database_url: str, tmp_path: Path, reports: list[str]
) -> None:
    entries = {"slack": "acme_slack:CHANNEL"}
    other = Distribution("acme-slack", "1.0", entries, {"acme_slack": channel_source("slack")})
    with installed(tmp_path, other):
        assert await migrate.migrate(database_url, reports.append) == []
        assert await migrate.warn_of_schema(database_url) & {"slack"} == set()
    assert reports == ["channel 'slack' of acme-slack 1.0 is ignored: draftsman has this name"]


async def test_an_edited_file_of_a_package_is_its_own_problem(
    database_url: str, install: Install, reports: list[str]
) -> None:
    install()
    await migrate.migrate(database_url)
    install(FILES | {"0001_boxes": f"{BOXES}-- edited"})
    assert await migrate.migrate(database_url, reports.append) == []
    text = "channel 'fax' of acme-fax 1.2: migration fax/0001_boxes was edited after it was"
    assert reports[0].startswith(text)


async def test_an_older_package_than_the_database_is_left_alone(
    database_url: str, conn: Connection, install: Install, reports: list[str]
) -> None:
    install()
    await migrate.migrate(database_url)
    await run(conn, "INSERT INTO draftsman.schema_migrations (name) VALUES ('fax/0009_later')")
    install(FILES | {"functions/boxes": f"{COUNT}-- older"}, "1.1")
    assert await migrate.migrate(database_url, reports.append) == []
    assert reports == [
        "the database is newer than the channel 'fax' of acme-fax 1.1 (it has fax/0009_later)"
    ]
    assert await migrate.check_compatible(database_url) is None


async def test_the_channel_of_another_package_is_not_taken(
    database_url: str, conn: Connection, install: Install, reports: list[str]
) -> None:
    await run(conn, "INSERT INTO draftsman.channels (name, package) VALUES ('fax', 'other-fax')")
    install()
    assert await migrate.migrate(database_url, reports.append) == []
    assert len(reports) == 1
    assert "belongs to the package other-fax" in reports[0]
    query = "SELECT package, has_bot FROM draftsman.channels WHERE name = 'fax'"
    assert await rows(conn, query) == [("other-fax", False)]
