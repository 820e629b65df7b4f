"""Migrations of any server, and the lifecycle of the embedded server."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from draftsman.database import migrate
from draftsman.database.embedded import EmbeddedServer
from draftsman.database.migration_files import available
from draftsman.errors import Refused
from draftsman.version import installed
from draftsman_tui.cli.app import App
from draftsman_tui.cli.database import _server
from tests.support.server import Server, make_home
from tests.tui.cli.cli_runner import Cli, process

# The tests share an embedded server, so a single process of the test run must run them.
pytestmark = pytest.mark.xdist_group("cli_embedded")
ODD = Path("link", "a b ü %s{}#?", "x" * 120)
NAMES = [item.name for item in available()]


@pytest.fixture
def embedded(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Cli:
    """Give the command line of the owner of an embedded database."""
    monkeypatch.setenv("DRAFTSMAN_DATA_DIR", str(home))
    (tmp_path / "draftsman.toml").write_text("types.noop = {}\n")
    return Cli(tmp_path / "draftsman.toml", capsys)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Start an embedded server in a relative directory, through a symlink, with odd characters."""
    base = make_home()
    (base / "real").mkdir()
    (base / "link").symlink_to(base / "real")
    with contextlib.chdir(base):
        server = EmbeddedServer(ODD, 60)
        assert server.ensure().startswith("postgresql://")
    yield base / ODD
    server.stop("immediate")
    shutil.rmtree(base)


async def test_a_server_is_migrated_only_on_request(
    cli: Cli, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", empty_url)
    done = await cli("migrate", "--check")
    assert done.code == 6
    assert done.out.splitlines() == [f"{name}  missing" for name in NAMES]
    assert "run: draftsman migrate" in done.err
    for arguments in (["jobs"], ["submit", "x"], ["up", "--headless"], ["worker"]):
        (await cli(*arguments)).refused(6, "draftsman migrate")
    assert (await migrate.applied_migrations(empty_url))[0].applied_at is None
    assert (await cli("migrate")).out.splitlines() == [f"{name}  applied" for name in NAMES]
    done = await cli("migrate")
    assert (done.code, done.out) == (0, "")
    assert "up to date" in done.err
    state = (await cli("migrate", "--check", "--json")).json
    migrations_state = state["migrations"]
    assert [migration["name"] for migration in migrations_state] == NAMES
    assert all(migration["applied_at"] for migration in migrations_state)
    channels = [package["channel"] for package in state["packages"]]
    assert channels == ["forge", "mail", "pager", "slack", "trello", "web"]
    async with await psycopg.AsyncConnection.connect(empty_url, autocommit=True) as conn:
        insertion = "INSERT INTO draftsman.channels (name, package, version) VALUES (%s, %s, %s)"
        await conn.execute(insertion, ("fax", "acme-fax", "1.0"))
    done = await cli("migrate")
    assert "channel fax  acme-fax 1.0  absent here; its tables are kept" in done.err.splitlines()
    assert f"channel slack  draftsman {installed()}" in done.err.splitlines()


async def test_the_printed_sql_does_the_same_as_the_command(
    cli: Cli, empty_url: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", empty_url)
    sql = (await cli("migrate", "--sql")).out
    with psycopg.connect(empty_url) as conn:
        conn.execute(sql.encode())
    assert (await cli("migrate", "--check")).code == 0
    assert (await cli("jobs", "--json")).json == []
    done = await cli("migrate", "--sql")
    assert (done.out, done.err) == ("", "no missing migrations\n")


async def test_a_restored_database_starts_a_new_epoch(cli: Cli) -> None:
    assert (await cli("migrate", "--restored", "--json")).json == {"epoch": 2}
    assert "epoch 3" in (await cli("migrate", "--restored")).out
    (await cli("migrate", "--check", "--sql")).refused(2, "cannot be combined")


async def test_db_commands_require_the_embedded_server(cli: Cli) -> None:
    for arguments in (["start"], ["stop"], ["status"], ["url"], ["psql"], ["dump", "x"]):
        (await cli("db", *arguments)).refused(
            1, "does not manage the configured database server", "pg_dump"
        )


def test_a_refusal_names_the_variable_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "draftsman.toml"
    config.touch()
    monkeypatch.delenv("DRAFTSMAN_DATABASE_URL", raising=False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.internal/app")
    with pytest.raises(Refused, match=r"\(DATABASE_URL is set\)"):
        _server(App(config=config))


async def test_the_embedded_server_starts_stops_and_keeps_its_data(embedded: Cli) -> None:
    await embedded("db", "stop")
    status = (await embedded("db", "status", "--json")).json
    assert (status["running"], status["pid"]) == (False, None)
    url = (await embedded("db", "start")).out
    assert url == (await embedded("db", "url")).out
    assert (await embedded("db", "url", "--json")).json == {"url": url.strip()}
    output = (await embedded("db", "url", "--show-password")).out
    password = output.partition("@")[0].rpartition(":")[2]
    assert len(password) >= 43
    assert password not in url
    submitted = (await embedded("submit", "--type", "noop", "--key", "k", "--json")).json
    status = (await embedded("db", "status", "--json")).json
    assert (status["running"], status["major"]) == (True, 18)
    assert f"running, pid {status['pid']}" in (await embedded("db", "status")).out
    assert (await embedded("db", "stop")).out == "stopped\n"
    assert (await embedded("db", "stop", "--json")).json == {"stopped": False}
    assert "starts on first use" in (await embedded("db", "status")).out
    repeated = await embedded("submit", "--type", "noop", "--key", "k")
    assert repeated.out == f"D-{submitted['number']} deduplicated\n"


async def test_a_data_directory_with_special_characters_works(embedded: Cli, home: Path) -> None:
    assert (await embedded("jobs", "--json")).code == 0
    assert home.resolve().is_dir()
    assert list((home.parents[2] / "real").iterdir()) == [home.resolve().parent]


async def test_psql_gets_the_remaining_arguments(embedded: Cli) -> None:
    done = process("--config", embedded.config, "db", "psql", "--", "-XAtc", "select 6 * 7")
    assert (done.returncode, done.stdout) == (0, "42\n")
    (await embedded("db", "psql", "--json")).refused(2, "--csv")


async def test_a_dump_restores_every_job_in_a_new_epoch(embedded: Cli, tmp_path: Path) -> None:
    await embedded("submit", "--type", "noop", "--key", "kept")
    before = (await embedded("jobs", "--json")).json
    file = tmp_path / "all.dump"
    assert "dumped" in (await embedded("db", "dump", file)).out
    await embedded("submit", "--type", "noop", "--key", "later")
    (await embedded("db", "restore", file)).refused(2, "--yes")
    assert len((await embedded("jobs", "--json")).json) == len(before) + 1
    assert (await embedded("db", "restore", file, "--yes", "--json")).json["epoch"] == 2
    assert (await embedded("jobs", "--json")).json == before
    assert (await embedded("migrate", "--restored", "--json")).json == {"epoch": 3}


async def test_a_server_with_connections_stops_after_a_confirmation(embedded: Cli) -> None:
    url = (await embedded("db", "start")).out.strip()
    with psycopg.connect(url, application_name="report", autocommit=True) as report:
        report.execute("SELECT 1")
        refused = await embedded("db", "stop")
        refused.refused(2, "It closes 1 connection: 1 of report.", "--yes")
        status = (await embedded("db", "status", "--json")).json
        assert (status["connections"], status["clients"]) == (1, {"report": 1})
        assert (await embedded("db", "stop", "--yes")).out == "stopped\n"
        with pytest.raises(psycopg.OperationalError):
            report.execute("SELECT 1")


async def test_an_invalid_file_restores_nothing(embedded: Cli, tmp_path: Path) -> None:
    await embedded("submit", "--type", "noop", "--key", "kept")
    before = (await embedded("jobs", "--json")).json
    (tmp_path / "no.dump").write_text("no dump", encoding="utf-8")
    (await embedded("db", "restore", tmp_path / "no.dump", "--yes")).refused(6, "archive")
    (await embedded("db", "restore", tmp_path / "none.dump", "--yes")).refused(2, "none.dump")
    done = await embedded("db", "dump", "/no/such/place/x.dump")
    done.refused(6, "/no/such/place")
    assert (await embedded("jobs", "--json")).json == before


async def test_the_owner_needs_no_configuration(embedded: Cli) -> None:
    await embedded("submit", "--type", "noop", "--key", "mine")
    assert "you have every role" in (await embedded("doctor")).out
    assert (await embedded("sweep", "promote")).code == 0


async def test_a_setting_that_no_local_worker_has_is_refused_at_once(
    embedded: Cli, tmp_path: Path
) -> None:
    done = await embedded("submit", "--repo", "/no/such/place", "x")
    done.refused(2, "/no/such/place: directory not found")
    folder = tmp_path / "repo" / "folder"
    folder.mkdir(parents=True)
    done = await embedded("submit", "--repo", folder, "x")
    done.refused(2, f"--repo {folder}: not in a git repository; use a folder of one")
    (tmp_path / "repo" / ".git").mkdir()
    for repo in (folder, tmp_path / "repo"):
        assert (await embedded("submit", "--repo", repo, "x")).code == 0
    assert len((await embedded("jobs", "--repo", "repo", "--json")).json) == 2
    (await embedded("submit", "--agent", "tydi", "x")).refused(2, "unknown agent 'tydi'", "tidy")
