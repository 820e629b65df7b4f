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
ACTIVITY = Path(__file__).with_name("activity.sql")
CREATE = Path(__file__).with_name("create.sql")
NO_TCP = ("-o", "-c listen_addresses=")
"""Options of `pg_ctl start`: the command line overrides ALTER SYSTEM."""


def accepts_connections(place: ClusterLayout) -> bool:
    """Check as pg_isready does, without a password, database or free connection slot."""
    url = f"{place.url()}&connect_timeout={PING_TIMEOUT}"
    return pq.PGconn.ping(url.encode()) == pq.Ping.OK


def activity(place: ClusterLayout) -> tuple[str | None, int]:
    """Return the server's version and number of clients; None and 0 if it is not ready."""
    try:
        with psycopg.connect(place.url("postgres"), connect_timeout=PING_TIMEOUT) as connection:
            row = connection.execute(ACTIVITY.read_bytes()).fetchone()
            return connection.info.parameter_status("server_version"), row[0] if row else 0
    except psycopg.Error:
        return None, 0


def refuse_other_major(data_dir: Path, place: ClusterLayout) -> None:
    """Raise EmbeddedServerError if the only data is of another major version."""
    own = place.data / "PG_VERSION"
    for file in [own] if own.exists() else data_dir.glob("postgres*/data/PG_VERSION"):
        if (major := file.read_text().strip()) != str(MAJOR):
            raise EmbeddedServerError(
                f"{file.parent} has data of PostgreSQL {major}, but this draftsman has {MAJOR};"
                " dump the database with the version that created it",
                hint=CommandHint("db restore", "FILE", lead="then run"),
            )


def start(place: ClusterLayout, canceled: threading.Event) -> None:
    """Start the server and wait until it is ready.

    Raises EmbeddedServerError, also at the next step after `canceled` is set.
    """
    with server_process.open_lock_file(place.server_lock) as lock:
        if not _lock_or_answer(place, lock, canceled):
            return
        server_process.check_canceled(canceled)
        if not place.data.exists():
            _create(place, lock)
            server_process.check_canceled(canceled)
        _refuse_shared(place.data)
        _prepare_folders(place)
        if password.read(place) is None:
            _set_password(place, lock)
        server_config.write(place)
        _launch(place, lock)


def _refuse_shared(data: Path) -> None:
    """Raise EmbeddedServerError if PostgreSQL would refuse the mode of its data directory."""
    mode = stat.S_IMODE(data.stat().st_mode)
    if mode & SHARED:
        raise EmbeddedServerError(
            f"other users can access {data} (mode {mode:04o}), which PostgreSQL refuses:"
            f" run chmod 700 {shlex.quote(str(data))}"
        )


def pg_ctl(place: ClusterLayout, verb: str, *options: str, inherit: Sequence[int] = ()) -> None:
    """Run `pg_ctl` and wait for it; raises EmbeddedServerError."""
    arguments = (verb, "-D", str(place.cluster), "-w", "-t", str(START_TIMEOUT), *options)
    server_process.run(
        [binaries.server_program("pg_ctl", place), *arguments], place.account, inherit=inherit
    )


def _lock_or_answer(place: ClusterLayout, lock: int, canceled: threading.Event) -> bool:
    """Return True once no process uses the data, or False if the server is ready.

    Two servers would corrupt the data. All processes of a server and of an initdb inherit the lock
    and hold it while they start, recover and stop, also after their starter was killed.
    """
    deadline = time.monotonic() + START_TIMEOUT
    while not server_process.try_lock(lock):
        if accepts_connections(place):
            return False
        server_process.check_canceled(canceled)
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"the embedded PostgreSQL in {place.cluster} neither responds nor stops",
                hint=CommandHint("db stop", lead="kill its processes, or run"),
            )
        if server_process.postmaster(place) is None:
            server_process.quit_orphans(place)
        elif not place.socket.exists() and server_process.is_ready(place):
            pg_ctl(place, "stop", "-m", "fast")  # its socket was removed, so clients cannot connect
        time.sleep(0.05)
    return True


def _create(place: ClusterLayout, lock: int) -> None:
    """Create the data with the database and a password; it is renamed when it is complete."""
    new = place.cluster / "data.new"
    if new.exists():  # from a process that was killed here
        shutil.rmtree(new)
    make_server_folder(new, place.account)
    secret = password.generate()
    try:
        _fill(new, place, lock, secret)
    except EmbeddedServerError as error:
        shutil.rmtree(new)
        raise EmbeddedServerError(
            f"cannot create a database in {place.cluster}: {error};"
            f" it needs 100 MB, and {place.account.name} must have write permission"
        ) from None
    password.write(place, secret)
    new.rename(place.data)


def _fill(new: Path, place: ClusterLayout, lock: int, secret: str) -> None:
    # the built-in C.UTF-8 does not depend on the locales of the machine
    locale = ("-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
    # the data has no password yet, so a start without draftsman's configuration is rejected
    initdb = ("-D", str(new), "-U", ROLE, "-A", "reject", *locale)
    server_process.run(
        [binaries.server_program("initdb", place), *initdb], place.account, inherit=[lock]
    )
    _run_single(new, place, lock, CREATE.read_text() + password.statement(secret))


def _set_password(place: ClusterLayout, lock: int) -> None:
    """Set a new password of the stopped server, which has none or whose file was lost.

    Single-user mode requires no password.
    """
    secret = password.generate()
    try:
        _run_single(place.data, place, lock, password.statement(secret))
    except EmbeddedServerError as error:
        raise EmbeddedServerError(
            f"the embedded PostgreSQL did not start: cannot set a password: {error}"
        ) from None
    password.write(place, secret)


def _run_single(data: Path, place: ClusterLayout, lock: int, statements: str) -> None:
    """Run statements, each on its own line, in single-user mode."""
    single = ("--single", "-c", "exit_on_error=on", "-D", str(data), "postgres")
    postgres = binaries.server_program("postgres", place)
    server_process.run([postgres, *single], place.account, text=statements, inherit=[lock])


def _prepare_folders(place: ClusterLayout) -> None:
    """Create the server's folders, and remove files of the previous server.

    Another process may have its pid by now, which a new server would mistake for it. The log of the
    start is only needed if it fails, and rotation skips days on which the server was down.
    """
    for folder in (place.log, place.cluster / "run"):
        make_server_folder(folder, place.account)
    socket_lock = place.socket.with_name(f"{place.socket.name}.lock")
    for stale in (place.pid_file, socket_lock, place.log / "start.log"):
        stale.unlink(missing_ok=True)
    for log in place.log.glob("server-*.log"):
        if log.stat().st_mtime < time.time() - LOG_DAYS * 86_400:
            log.unlink()


def _launch(place: ClusterLayout, lock: int) -> None:
    log = place.log / "start.log"
    try:
        pg_ctl(place, "start", *NO_TCP, "-l", str(log), inherit=[lock])
    except EmbeddedServerError as error:
        reason = server_process.last_log_error(place) if log.exists() else error
        raise EmbeddedServerError(
            f"the embedded PostgreSQL did not start: {reason} (its log is in {place.log})"
        ) from None
