"""The password of the embedded server: required, readable by its owner only, replaced if lost."""

from __future__ import annotations

import os
import pwd
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from draftsman.database import migrate
from draftsman.database.embedded import EmbeddedServer, binaries, layout, server_process
from draftsman.errors import DatabaseUnreachable, EmbeddedServerError
from tests.conftest import SERVER
from tests.core.database.embedded.embedded_support import (
    ENVIRONMENT,
    execute,
    shared_initdb,
    stop_server,
    value,
    wait_for_end,
)
from tests.support.server import open_folder
from tests.support.slow import slow_except

OLD_RULES = {"pg_hba.conf": "local all all peer map=draftsman\n", "pg_ident.conf": ""}
"""How a version without passwords let its own user and root in."""


@pytest.fixture(scope="module")
def shared(pytestconfig: pytest.Config) -> Iterator[EmbeddedServer]:
    """Give a server that the tests share."""
    with open_folder() as path:
        server = EmbeddedServer(path, 0)
        with shared_initdb(pytestconfig.stash[SERVER].home):
            server.ensure()
        yield server
        stop_server(server)


@pytest.fixture
def server(shared: EmbeddedServer) -> EmbeddedServer:
    """Give a running server."""
    shared.ensure()
    return shared


def password_file(server: EmbeddedServer) -> Path:
    """Return the file that holds the password."""
    return server.status().data_dir.parent / "password"


def without_password(server: EmbeddedServer) -> str:
    """Return the URL as a process that cannot read the file has it."""
    return server.url().partition("&passfile=")[0]


def make_old(server: EmbeddedServer) -> None:
    """Leave the server running as a version without passwords did."""
    url = server.ensure()
    folder = server.status().data_dir.parent
    execute(url, "CREATE TABLE IF NOT EXISTS kept ()")
    execute(url, "ALTER ROLE draftsman PASSWORD NULL")
    users = sorted({"root", pwd.getpwuid((folder / "data").stat().st_uid).pw_name})
    idents = "".join(f'draftsman "{user}" all\n' for user in users)
    password_file(server).unlink()
    server.stop()
    for name, text in (OLD_RULES | {"pg_ident.conf": idents}).items():
        (folder / name).write_text(text)
    pg_ctl = ("pg_ctl", "start", "-w", "-D", str(folder), "-l", str(folder / "log" / "old.log"))
    _as_the_server(server, *pg_ctl)
    with psycopg.connect(without_password(server)):
        pass  # as every version without passwords could


def test_a_connection_without_the_password_is_refused(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    for wrong in ("", "&password=wrong", "&user=postgres&password=wrong"):
        with pytest.raises(psycopg.OperationalError, match=r"no password|authentication failed"):
            psycopg.connect(without_password(server) + wrong)
    stored = value(server.url(), "SELECT rolpassword FROM pg_authid WHERE rolname = 'draftsman'")
    assert stored.startswith("SCRAM-SHA-256$")


def test_the_password_is_readable_by_its_owner_only(server: EmbeddedServer) -> None:
    file = password_file(server)
    stats = file.stat()
    assert (stat.S_IMODE(stats.st_mode), stats.st_uid) == (0o600, os.geteuid())
    secret = file.read_text().strip().rpartition(":")[2]
    assert len(secret) >= 43
    assert secret not in server.url()
    assert secret in server.secret_url()
    if os.geteuid() == 0:  # the server's own user among them
        for user in {"nobody", server.status().data_dir.owner()}:
            done = subprocess.run(["cat", file], user=user, capture_output=True, text=True)
            assert "Permission denied" in done.stderr


def test_no_setting_opens_a_port(server: EmbeddedServer) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET listen_addresses = '*'")
    server.stop()
    assert value(server.ensure(), "SHOW listen_addresses") == ""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM RESET listen_addresses")


@pytest.mark.parametrize("how", ["lost", "cut short", "open to others", "a link", "a folder"])
def test_a_lost_or_exposed_password_is_replaced(server: EmbeddedServer, how: str) -> None:
    file = password_file(server)
    before = server.secret_url()
    execute(server.url(), "CREATE TABLE IF NOT EXISTS kept ()")
    moved = file.with_name("moved")
    if how == "open to others":
        file.chmod(0o644)
    elif how == "cut short":
        file.write_text("")
    else:
        file.replace(moved)
    if how == "a link":
        file.symlink_to(moved)
    if how == "a folder":
        file.mkdir()
        with pytest.raises(EmbeddedServerError, match=r"/password.*Is a directory") as refused:
            server.ensure()
        assert "\n" not in str(refused.value)
        file.rmdir()
    assert value(server.ensure(), "SELECT count(*) FROM kept") == 0
    assert server.secret_url() != before
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        psycopg.connect(before)
    assert stat.S_IMODE(file.lstat().st_mode) == 0o600


async def test_a_wrong_password_is_reported_in_one_line_with_a_remedy(
    server: EmbeddedServer,
) -> None:
    file = password_file(server)
    right = file.read_text()
    secret = right.strip().rpartition(":")[2]
    file.write_text(right.replace(secret, "wrong"))
    with pytest.raises(DatabaseUnreachable, match=f"rejected the password in {file}") as refused:
        await migrate.migrate(server.ensure())
    assert "delete that file" in str(refused.value)
    assert "\n" not in str(refused.value)
    file.unlink()
    await migrate.migrate(server.ensure())


@pytest.mark.parametrize(
    "point",
    slow_except(
        ["cluster._run_single.after", "password.write.after"],
        [
            "cluster._set_password.before",
            "cluster._run_single.after",
            "password.write.after",
            "server_config.write.after",
            "cluster._launch.after",
        ],
    ),
)
def test_a_server_without_a_password_gets_one_despite_a_killed_upgrade(
    server: EmbeddedServer, point: str
) -> None:
    make_old(server)
    data_dir = server.status().data_dir.parents[1]
    command = [sys.executable, "-m", "tests.core.database.killed_upgrade", str(data_dir)]
    command += point.split(".")
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert value(server.ensure(), "SELECT count(*) FROM kept") == 0
    with pytest.raises(psycopg.OperationalError, match="no password"):
        psycopg.connect(without_password(server))


def test_a_manually_started_server_refuses_all_connections(server: EmbeddedServer) -> None:
    rules = server.status().data_dir / "pg_hba.conf"
    methods = [line.split()[-1] for line in rules.read_text().splitlines() if line[:4] == "loca"]
    assert set(methods) == {"reject"}


def _as_the_server(server: EmbeddedServer, program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL as the user that the server runs as."""
    stats = layout.locate(server.status().data_dir.parents[1])
    wait_for_end(server)
    server_process.run([binaries.server_program(program, stats), *arguments], stats.account)
