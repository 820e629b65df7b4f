"""Creation and start of a cluster; the caller holds its lock."""

from __future__ import annotations

import shlex
import shutil
import stat
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
from psycopg import pq

from draftsman.database.embedded import binaries, password, server_config, server_process
from draftsman.database.embedded.layout import MAJOR, ROLE, ClusterLayout, make_server_folder
from draftsman.errors import CommandHint, EmbeddedServerError

START_TIMEOUT = 60
"""Seconds until the server is ready, including crash recovery."""
SHARED = 0o027
"""Modes of a data directory that PostgreSQL refuses: writable by the group, or any for others."""
PING_TIMEOUT = 5
"""Seconds for a connection attempt."""
LOG_DAYS = 6
"""Age in days of a log file that is deleted, before its weekday recurs."""
CLIENTS = Path(__file__).with_name("clients.sql")
ACTIVITY = Path(__file__).with_name("activity.sql")
CREATE = Path(__file__).with_name("create.sql")
NO_TCP = ("-o", "-c listen_addresses=")
"""Options of `pg_ctl start`: the command line overrides ALTER SYSTEM."""


def accepts_connections(layout: ClusterLayout) -> bool:
    """Check as pg_isready does, without a password, database or free connection slot."""
    url = f"{layout.url()}&connect_timeout={PING_TIMEOUT}"
    return pq.PGconn.ping(url.encode()) == pq.Ping.OK


def activity(layout: ClusterLayout) -> tuple[str | None, dict[str, int]]:
    """Return the server's version, and its clients; None and none if it is not ready."""
    try:
        with psycopg.connect(layout.url("postgres"), connect_timeout=PING_TIMEOUT) as connection:
            clients: dict[str, int] = dict(connection.execute(CLIENTS.read_bytes()).fetchall())
            return connection.info.parameter_status("server_version"), clients
    except psycopg.Error:
        return None, {}


def refuse_other_major(data_dir: Path, layout: ClusterLayout) -> None:
    """Raise EmbeddedServerError if the only data is of another major version."""
    version_file = layout.data / "PG_VERSION"
    is_ours = version_file.exists()
    for file in [version_file] if is_ours else data_dir.glob("postgres*/data/PG_VERSION"):
        if (major := file.read_text().strip()) != str(MAJOR):
            raise EmbeddedServerError(
                f"{file.parent} has data of PostgreSQL {major}, but this draftsman has {MAJOR};"
                " dump the database with the version that created it",
                hint=CommandHint("db restore", "FILE", lead="then run"),
            )


def start(layout: ClusterLayout, canceled: threading.Event) -> None:
    """Start the server and wait until it is ready.

    Raises EmbeddedServerError, also at the next step after `canceled` is set.
    """
    with server_process.open_lock_file(layout.server_lock) as lock:
        if not _lock_or_answer(layout, lock, canceled):
            return
        server_process.check_canceled(canceled)
        if not layout.data.exists():
            _create(layout, lock)
            server_process.check_canceled(canceled)
        _refuse_shared(layout.data)
        _prepare_folders(layout)
        if password.read(layout) is None:
            _set_password(layout, lock)
        server_config.write(layout)
        _launch(layout, lock)


def _refuse_shared(data: Path) -> None:
    """Raise EmbeddedServerError if PostgreSQL would refuse the mode of its data directory."""
    mode = stat.S_IMODE(data.stat().st_mode)
    if mode & SHARED:
        raise EmbeddedServerError(
            f"other users can access {data} (mode {mode:04o}), which PostgreSQL refuses:"
            f" run chmod 700 {shlex.quote(str(data))}"
        )


def pg_ctl(layout: ClusterLayout, verb: str, *options: str, inherit: Sequence[int] = ()) -> None:
    """Run `pg_ctl` and wait for it; raises EmbeddedServerError."""
    arguments = (verb, "-D", str(layout.cluster), "-w", "-t", str(START_TIMEOUT), *options)
    server_process.run(
        [binaries.server_program("pg_ctl", layout), *arguments], layout.account, inherit=inherit
    )


def _lock_or_answer(layout: ClusterLayout, lock: int, canceled: threading.Event) -> bool:
    """Return True once no process uses the data, or False if the server is ready.

    Two servers would corrupt the data. All processes of a server and of an initdb inherit the lock
    and hold it while they start, recover and stop, also after their starter was killed.
    """
    deadline = time.monotonic() + START_TIMEOUT
    while not server_process.try_lock(lock):
        if accepts_connections(layout):
            return False
        server_process.check_canceled(canceled)
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"the embedded PostgreSQL in {layout.cluster} neither responds nor stops",
                hint=CommandHint("db stop", lead="kill its processes, or run"),
            )
        if server_process.postmaster(layout) is None:
            server_process.quit_orphans(layout)
        elif not layout.socket.exists() and server_process.is_ready(layout):
            # its socket was removed, so clients cannot connect
            pg_ctl(layout, "stop", "-m", "fast")
        time.sleep(0.05)
    return True


def _create(layout: ClusterLayout, lock: int) -> None:
    """Create the data with the database and a password; it is renamed when it is complete."""
    new = layout.cluster / "data.new"
    if new.exists():  # from a process that was killed here
        shutil.rmtree(new)
    make_server_folder(new, layout.account)
    secret = password.generate()
    try:
        _fill(new, layout, lock, secret)
    except EmbeddedServerError as error:
        shutil.rmtree(new)
        raise EmbeddedServerError(
            f"cannot create a database in {layout.cluster}: {error};"
            f" it needs 100 MB, and {layout.account.name} must have write permission"
        ) from None
    password.write(layout, secret)
    new.rename(layout.data)


def _fill(new: Path, layout: ClusterLayout, lock: int, secret: str) -> None:
    # the built-in C.UTF-8 does not depend on the locales of the machine
    locale = ("-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
    # the data has no password yet, so a start without draftsman's configuration is rejected
    initdb = ("-D", str(new), "-U", ROLE, "-A", "reject", *locale)
    server_process.run(
        [binaries.server_program("initdb", layout), *initdb], layout.account, inherit=[lock]
    )
    _run_single(new, layout, lock, CREATE.read_text() + password.statement(secret))


def _set_password(layout: ClusterLayout, lock: int) -> None:
    """Set a new password of the stopped server, which has none or whose file was lost.

    Single-user mode requires no password.
    """
    secret = password.generate()
    try:
        _run_single(layout.data, layout, lock, password.statement(secret))
    except EmbeddedServerError as error:
        raise EmbeddedServerError(
            f"the embedded PostgreSQL did not start: cannot set a password: {error}"
        ) from None
    password.write(layout, secret)


def _run_single(data: Path, layout: ClusterLayout, lock: int, statements: str) -> None:
    """Run statements, each on its own line, in single-user mode."""
    single = ("--single", "-c", "exit_on_error=on", "-D", str(data), "postgres")
    postgres = binaries.server_program("postgres", layout)
    server_process.run([postgres, *single], layout.account, text=statements, inherit=[lock])


def _prepare_folders(layout: ClusterLayout) -> None:
    """Create the server's folders, and remove files of the previous server.

    Another process may have its pid by now, which a new server would mistake for it. The log of the
    start is only needed if it fails, and rotation skips days on which the server was down.
    """
    for folder in (layout.log, layout.cluster / "run"):
        make_server_folder(folder, layout.account)
    socket_lock = layout.socket.with_name(f"{layout.socket.name}.lock")
    for stale in (layout.pid_file, socket_lock, layout.log / "start.log"):
        stale.unlink(missing_ok=True)
    for log in layout.log.glob("server-*.log"):
        if log.stat().st_mtime < time.time() - LOG_DAYS * 86_400:
            log.unlink()


def _launch(layout: ClusterLayout, lock: int) -> None:
    log = layout.log / "start.log"
    try:
        pg_ctl(layout, "start", *NO_TCP, "-l", str(log), inherit=[lock])
    except EmbeddedServerError as error:
        reason = server_process.last_log_error(layout) if log.exists() else error
        raise EmbeddedServerError(
            f"the embedded PostgreSQL did not start: {reason} (its log is in {layout.log})"
        ) from None
