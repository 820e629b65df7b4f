"""The embedded server: creation, sharing, recovery, stop, and refusals in one line."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from draftsman.database.embedded import EmbeddedServer, layout, server_process
from draftsman.errors import EmbeddedServerError
from tests.conftest import SERVER
from tests.core.database.embedded.embedded_support import (
    DEADLINE,
    ENVIRONMENT,
    execute,
    read_report,
    report,
    shared_initdb,
    stop_server,
    value,
    wait_for_end,
    wait_until,
)
from tests.support.server import open_folder
from tests.support.slow import slow_except

AS_ROOT = os.geteuid() == 0
BROKEN = [
    ("max_connections = 'many'", r"postgresql.auto.conf.* contains errors"),
    ("archive_mode = on\nwal_level = minimal", "WAL archival cannot be enabled"),
]
"""Settings with which the server does not start, and the reason."""


@pytest.fixture(scope="module")
def initialized(pytestconfig: pytest.Config) -> Iterator[Path]:
    """Give a data directory with a database, in any state."""
    with open_folder() as path:
        with shared_initdb(pytestconfig.stash[SERVER].home):
            EmbeddedServer(path, 0).ensure()
        yield path
        stop_server(EmbeddedServer(path, 0))


@pytest.fixture
def copied(initialized: Path, empty: Path) -> Path:
    """Give the test its own data directory with a database."""
    stop_server(EmbeddedServer(initialized, 0))
    subprocess.run(["cp", "-a", initialized, empty / "data"], check=True)
    return empty / "data"


@pytest.fixture
def server(initialized: Path) -> Iterator[EmbeddedServer]:
    """Give a stopped server without an idle timeout."""
    stop_server(server := EmbeddedServer(initialized, 0))
    yield server
    stop_server(server)


@pytest.fixture
def running(initialized: Path) -> EmbeddedServer:
    """Give a running server, which may outlive the test."""
    server = EmbeddedServer(initialized, 0)
    server.ensure()
    return server


def test_the_first_start_creates_a_database_without_a_locale_and_a_network_port(
    empty: Path,
) -> None:
    server = EmbeddedServer(empty / "new" / "data", 0)
    assert server.status().running is False
    url = server.ensure()
    status = server.status()
    assert (status.data_dir / "PG_VERSION").read_text().strip() == "18"
    assert url == server.url()
    for setting, expected in {
        "server_encoding": "UTF8",
        "fsync": "on",
        "synchronous_commit": "on",
        "listen_addresses": "",
        "jit": "off",
        "autovacuum_naptime": "5s",
        "TimeZone": "UTC",
    }.items():
        assert value(url, f"SELECT current_setting('{setting}')") == expected
    collation = "SELECT datcollate || datlocale FROM pg_database WHERE datname = 'draftsman'"
    assert value(url, collation) == "CC.UTF-8"
    assert stat.S_IMODE(status.socket_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(status.data_dir.stat().st_mode) == 0o700


def test_a_running_server_is_found_again_at_once(running: EmbeddedServer) -> None:
    url = running.ensure()
    pid = running.status().pid

    def seconds() -> float:
        started = time.perf_counter()
        assert running.ensure() == url
        return time.perf_counter() - started

    wait_until(lambda: seconds() < 0.1)  # not each time on a busy machine
    assert running.status().pid == pid


def test_processes_that_start_concurrently_share_one_server(empty: Path) -> None:
    outputs = [read_report(starter) for starter in [report(empty / "data") for _ in range(4)]]
    assert len(set(outputs)) == 1


def test_data_outlives_the_server(server: EmbeddedServer) -> None:
    execute(server.ensure(), "CREATE TABLE kept AS SELECT 1")
    assert server.stop() is True
    execute(server.ensure(), "DROP TABLE kept")


def test_stop_and_status_report_the_state(server: EmbeddedServer) -> None:
    assert server.stop() is False
    url = server.ensure()
    with psycopg.connect(url):
        status = server.status()
        assert status.pid is not None
        assert psutil.pid_exists(status.pid)
        assert (status.running, status.major, status.connections) == (True, 18, 1)
        assert (status.version or "").startswith("18.")
    assert server.stop() is True
    assert server.stop() is False
    down = server.status()
    assert (down.running, down.pid, down.version, down.connections) == (False, None, None, 0)


def test_a_killed_server_is_recovered_during_a_statement(server: EmbeddedServer) -> None:
    url = server.ensure()
    execute(url, "CREATE TABLE IF NOT EXISTS survivor ()")
    pid = server.status().pid
    busy = "SELECT count(*) FROM generate_series(1, 1e12::bigint)"
    psql = subprocess.Popen([server.binary("psql"), "-qc", busy, url], stderr=subprocess.DEVNULL)
    query = f"SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = '{busy}'"
    wait_until(lambda: value(url, query))
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert server.ensure() == url
    assert psql.wait(DEADLINE) != 0
    assert server.status().pid != pid
    assert value(url, "SELECT count(*) FROM survivor") == 0


def test_a_killed_start_is_completed_by_the_next(empty: Path) -> None:
    server = EmbeddedServer(empty / "data", 0)
    for done in ("postgres18/data.new/base", "postgres18/data/postmaster.pid"):
        starter = report(empty / "data")
        wait_until((empty / "data" / done).exists)
        starter.kill()
        starter.communicate()
        assert value(server.ensure(), "SELECT 1") == 1
        server.stop("immediate")


def test_a_stale_pid_of_another_process_is_not_signaled(server: EmbeddedServer) -> None:
    url = server.ensure()
    status = server.status()
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    wait_for_end(server)
    owner = layout.locate(status.data_dir.parents[1]).account  # whose processes a server respects
    with subprocess.Popen(["sleep", "60"], cwd="/", **owner.switch) as other_process:
        for name in ("data/postmaster.pid", "run/.s.PGSQL.5432.lock"):
            record = status.data_dir.parent / name
            pid, _, rest = record.read_text().partition("\n")
            assert pid == str(status.pid)
            record.write_text(f"{other_process.pid}\n{rest}")
        assert server.status().running is False
        assert server.stop() is False
        assert server.ensure() == url
        assert server.status().pid != other_process.pid
        assert other_process.poll() is None
        other_process.kill()


def test_a_server_whose_socket_was_removed_is_restarted(server: EmbeddedServer) -> None:
    server.ensure()
    status = server.status()
    (status.socket_dir / ".s.PGSQL.5432").unlink()
    assert value(server.ensure(), "SELECT 1") == 1
    assert server.status().pid != status.pid


def test_an_idle_server_stops_after_its_last_connection(copied: Path) -> None:
    server = EmbeddedServer(copied, 1.0)
    url = server.ensure()
    pid = server.status().pid
    with psycopg.connect(url, autocommit=True) as idle, psycopg.connect(url) as other:
        other.execute("SELECT pg_sleep(2.5)")
        assert idle.execute("SELECT 1").fetchone() == (1,)
        assert server.ensure() == url
        assert server.status().pid == pid
    end_time = time.monotonic()
    wait_for_end(server)
    assert time.monotonic() - end_time > 0.9
    assert server.status().running is False
    with server_process.lock_file(server.status().data_dir.parent / "watch.lock", DEADLINE):
        pass  # its watcher has gone with it
    assert value(server.ensure(), "SELECT 1") == 1
    wait_for_end(server)


def test_a_server_requested_at_its_idle_timeout_stays_up(copied: Path) -> None:
    server = EmbeddedServer(copied, 1.0)
    url = server.ensure()
    path = copied / "postgres18" / "lock"
    with server_process.lock_file(
        path
    ) as lock:  # as `ensure` does, while the watcher waits to stop it
        wait_until(lambda: time.time() - path.stat().st_mtime > 2)
        os.utime(lock)
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_sleep(1)")


def test_the_server_survives_its_starter_and_an_interrupt_of_the_terminal(
    initialized: Path,
) -> None:
    server = EmbeddedServer(initialized, 600)
    stop_server(server)
    starter = report(initialized, 600, start_new_session=True, stderr=subprocess.PIPE)
    assert starter.stdout is not None
    url, pid = json.loads(starter.stdout.readline())
    os.killpg(starter.pid, signal.SIGINT)
    starter.communicate(timeout=DEADLINE)
    assert starter.returncode != 0
    assert server.status().pid == pid
    assert value(url, "SELECT 1") == 1
    guard = os.open(initialized / "postgres18" / "watch.lock", os.O_RDWR)
    assert server_process.try_lock(guard) is False  # and so does the watcher
    os.close(guard)
    stop_server(server)


def test_variables_for_another_postgresql_are_ignored(
    running: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, wrong in {
        "PGHOST": "elsewhere.invalid",
        "PGPORT": "1",
        **dict.fromkeys(("PGUSER", "PGDATABASE", "PGPASSWORD"), "other"),
        **dict.fromkeys(("PGDATA", "PGPASSFILE"), "/nonexistent"),
    }.items():
        monkeypatch.setenv(name, wrong)
    assert value(running.ensure(), "SELECT current_database()") == "draftsman"


def test_psql_replaces_the_process(running: EmbeddedServer, initialized: Path) -> None:
    running.ensure()
    script = (
        "from pathlib import Path; from draftsman.database.embedded import EmbeddedServer\n"
        f"EmbeddedServer(Path({str(initialized)!r}), 0).psql(('-Atc', 'SELECT current_user'))"
    )
    psql = [sys.executable, "-c", script]
    done = subprocess.run(psql, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout == "draftsman\n"


@pytest.mark.usefixtures("copied_initdb")
def test_a_dump_is_restored_in_another_cluster(running: EmbeddedServer, empty: Path) -> None:
    execute(running.ensure(), "CREATE TABLE carried AS SELECT 42 AS answer")
    file = empty / "draftsman.dump"
    running.dump(file)
    execute(running.url(), "DROP TABLE carried")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    other = EmbeddedServer(empty / "data", 0)
    for _ in range(2):  # the second time, it replaces the data
        other.restore(file)
        assert value(other.url(), "SELECT sum(answer) FROM carried") == 42
    file.write_text("no dump")
    with pytest.raises(EmbeddedServerError, match=r"pg_restore failed: .*not appear to be a valid"):
        other.restore(file)


def test_a_dump_that_cannot_be_written_leaves_nothing(running: EmbeddedServer, empty: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="pg_dump failed: could not open output file"):
        running.dump(empty / "nowhere" / "file")
    (empty / "folder").mkdir()
    with pytest.raises(EmbeddedServerError, match=r"cannot write .*folder: Is a directory"):
        running.dump(empty / "folder")
    assert [path.name for path in empty.iterdir()] == ["folder"]


@pytest.mark.usefixtures("copied_initdb")
def test_data_of_another_major_version_is_refused_with_the_upgrade_steps(
    running: EmbeddedServer, empty: Path
) -> None:
    running.ensure()
    file = empty / "draftsman.dump"
    running.dump(file)
    old = empty / "data" / "postgres17" / "data" / "PG_VERSION"
    old.parent.mkdir(parents=True)
    old.write_text("17\n")
    newer = EmbeddedServer(empty / "data", 0)
    with pytest.raises(EmbeddedServerError, match=r"PostgreSQL 17, but .* has 18") as refused:
        newer.ensure()
    assert str(refused.value).endswith("; then run: draftsman db restore FILE")
    newer.restore(file)
    assert value(newer.ensure(), "SELECT 1") == 1
    newer.stop()
    (newer.status().data_dir / "PG_VERSION").write_text("19\n")
    with pytest.raises(EmbeddedServerError, match=r"PostgreSQL 19, but .* has 18"):
        newer.ensure()


@pytest.mark.parametrize(("broken", "reason"), slow_except(BROKEN[:1], BROKEN))
def test_a_server_that_does_not_start_is_reported_with_the_reason(
    server: EmbeddedServer, broken: str, reason: str
) -> None:
    settings = server.status().data_dir / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text(f"{broken}\n")
    try:
        with pytest.raises(EmbeddedServerError, match=f"did not start: .*{reason}") as it:
            server.ensure()
    finally:
        settings.write_text(before)
    assert "\n" not in str(it.value)
    assert server.ensure()
