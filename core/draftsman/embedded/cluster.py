"""Making and starting one cluster; whoever starts or stops it holds its lock."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
from psycopg import pq

from draftsman.embedded import binaries, password, server_config, server_process
from draftsman.embedded.layout import MAJOR, ROLE, ClusterLayout, make_server_folder
from draftsman.errors import EmbeddedServerError

START_TIMEOUT = 60
"""Seconds for the server to answer, crash recovery included."""
PING_TIMEOUT = 5
"""Seconds for one question whether it answers."""
LOG_DAYS = 6
"""Days after which a weekday's log is last week's."""
ACTIVITY = Path(__file__).with_name("activity.sql")
CREATE = Path(__file__).with_name("create.sql")
NO_TCP = ("-o", "-c listen_addresses=")
"""Options of `pg_ctl start`: a server's command line overrides ALTER SYSTEM."""


def accepts_connections(place: ClusterLayout) -> bool:
    """Do as pg_isready does: no password, no database, no free connection slot needed."""
    question = f"{place.url()}&connect_timeout={PING_TIMEOUT}"
    return pq.PGconn.ping(question.encode()) == pq.Ping.OK


def activity(place: ClusterLayout) -> tuple[str | None, int]:
    """Return the server's version and its clients; None and 0 when it does not answer."""
    try:
        with psycopg.connect(place.url("postgres"), connect_timeout=PING_TIMEOUT) as connection:
            row = connection.execute(ACTIVITY.read_bytes()).fetchone()
            return connection.info.parameter_status("server_version"), row[0] if row else 0
    except psycopg.Error:
        return None, 0


def refuse_other_major(data_dir: Path, place: ClusterLayout) -> None:
    """Raise EmbeddedServerError where the only data is of another major version."""
    own = place.data / "PG_VERSION"
    for file in [own] if own.exists() else data_dir.glob("postgres*/data/PG_VERSION"):
        if (major := file.read_text().strip()) != str(MAJOR):
            raise EmbeddedServerError(
                f"{file.parent} is of PostgreSQL {major} and this draftsman brings {MAJOR}:"
                " run `draftsman db dump FILE` with the version that wrote it,"
                " then `draftsman db restore FILE` with this one"
            )


def start(place: ClusterLayout, given_up: threading.Event) -> None:
    """Return when the server answers, whatever was in its way.

    Raises EmbeddedServerError, at the next step once the caller has `given_up`.
    """
    with server_process.open_lock_file(place.server_lock) as lock:
        if not _lock_or_answer(place, lock, given_up):
            return
        server_process.check_canceled(given_up)
        if not place.data.exists():
            _create(place, lock)
            server_process.check_canceled(given_up)
        _tidy(place)
        if password.read(place) is None:
            _set_password(place, lock)
        server_config.write(place)
        _launch(place, lock)


def pg_ctl(place: ClusterLayout, verb: str, *options: str, inherit: Sequence[int] = ()) -> None:
    """Run `pg_ctl` and wait until it is done. Raises EmbeddedServerError."""
    arguments = (verb, "-D", str(place.cluster), "-w", "-t", str(START_TIMEOUT), *options)
    server_process.run(
        [binaries.server_program("pg_ctl", place), *arguments], place.account, inherit=inherit
    )


def _lock_or_answer(place: ClusterLayout, lock: int, given_up: threading.Event) -> bool:
    """Return True once no process works on the data any more, or False when the server answers.

    Two servers on the same data would destroy it. A process id proves nothing, but a lock does that
    every process inherited: of a server that is starting, recovering, stopping or was killed, and
    of an initdb whose starter was killed.
    """
    deadline = time.monotonic() + START_TIMEOUT
    while not server_process.try_lock(lock):
        if accepts_connections(place):
            return False
        server_process.check_canceled(given_up)
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"the embedded PostgreSQL in {place.cluster} neither answers nor ends:"
                " run `draftsman db stop`, or end its processes, then try again"
            )
        if server_process.postmaster(place) is None:
            server_process.quit_orphans(place)
        elif not place.socket.exists() and server_process.is_ready(place):
            pg_ctl(place, "stop", "-m", "fast")  # somebody removed it: nobody can reach the server
        time.sleep(0.05)
    return True


def _create(place: ClusterLayout, lock: int) -> None:
    """Make data with the database and a password; it gets its name when it is complete."""
    new = place.cluster / "data.new"
    if new.exists():  # from somebody who was killed here
        shutil.rmtree(new)
    make_server_folder(new, place.account)
    secret = password.generate()
    try:
        _fill(new, place, lock, secret)
    except EmbeddedServerError as error:
        shutil.rmtree(new)
        raise EmbeddedServerError(
            f"no database can be made in {place.cluster}: {error};"
            f" it takes 100 MB, and {place.account.name} must be able to write there"
        ) from None
    password.write(place, secret)
    new.rename(place.data)


def _fill(new: Path, place: ClusterLayout, lock: int, secret: str) -> None:
    # The built-in C.UTF-8 is the same on every machine, whatever locales that has.
    locale = ("-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
    # `reject` is for who starts this data without our configuration: it has no password yet.
    initdb = ("-D", str(new), "-U", ROLE, "-A", "reject", *locale)
    server_process.run(
        [binaries.server_program("initdb", place), *initdb], place.account, inherit=[lock]
    )
    _run_single(new, place, lock, CREATE.read_text() + password.statement(secret))


def _set_password(place: ClusterLayout, lock: int) -> None:
    """Give the stopped server a new password: it has none yet, or its file was lost.

    In single-user mode, which asks nobody: who may write the data may do that.
    """
    secret = password.generate()
    try:
        _run_single(place.data, place, lock, password.statement(secret))
    except EmbeddedServerError as error:
        raise EmbeddedServerError(
            f"the embedded PostgreSQL did not start: no password can be set: {error}"
        ) from None
    password.write(place, secret)


def _run_single(data: Path, place: ClusterLayout, lock: int, statements: str) -> None:
    """Run statements, one a line, on data that no server works on."""
    single = ("--single", "-c", "exit_on_error=on", "-D", str(data), "postgres")
    postgres = binaries.server_program("postgres", place)
    server_process.run([postgres, *single], place.account, text=statements, inherit=[lock])


def _tidy(place: ClusterLayout) -> None:
    """Make the server's folders, and remove what the last one left there.

    Its pid may be a stranger's by now, whom a new server would take for it. The start's own log is
    only of interest when that fails, and no rotation empties a day on which the server was down.
    """
    for folder in (place.log, place.cluster / "run"):
        make_server_folder(folder, place.account)
    socket_lock = place.socket.with_name(f"{place.socket.name}.lock")
    for left in (place.pid_file, socket_lock, place.log / "start.log"):
        left.unlink(missing_ok=True)
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
