"""Running the server's programs, and telling its processes from strangers."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from draftsman.embedded.layout import ClusterLayout, SystemAccount
from draftsman.errors import EmbeddedServerError

LOCK_TIMEOUT = 180.0
"""Seconds to wait for another process that starts or stops the server."""
LOG_TAIL = 16_384
"""Bytes of a log to look for an error in."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"}
"""All that a program gets: PGDATA, PGPORT and the like of the caller must not reach it."""
_COMPLAINT = re.compile(r"(?:FATAL|PANIC|ERROR|error): +(.+)")


def run(
    command: Sequence[str | Path],
    account: SystemAccount | None = None,
    *,
    text: str = "",
    inherit: Sequence[int] = (),
) -> None:
    """Run a program out of reach of the terminal's Ctrl-C, as `account` or as the caller.

    It and all that it starts keep the locks in `inherit`, even where the caller is killed. Raises
    EmbeddedServerError with the line in which it says why it failed.
    """
    try:
        done = subprocess.run(
            command,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",
            env=ENVIRONMENT,
            umask=0o077,
            pass_fds=inherit,
            start_new_session=True,
            **(account.switch if account else {}),
        )
    except OSError as error:
        raise EmbeddedServerError(
            f"{command[0]} cannot be run here ({error.strerror}):"
            " set DRAFTSMAN_DATABASE_URL to a PostgreSQL 15 or later"
        ) from None
    if done.returncode:
        raise EmbeddedServerError(f"{Path(command[0]).name} failed: {last_error_line(done.stdout)}")


def last_error_line(output: str) -> str:
    """Return the last error in a program's output, or its last line."""
    lines = output.strip().splitlines() or ["it said nothing"]
    found = [match[1] for line in lines if (match := _COMPLAINT.search(line))]
    return found[-1] if found else lines[-1]


def last_log_error(place: ClusterLayout) -> str:
    """Return the last error in the newest log of a server."""
    logs = sorted(place.log.glob("*.log"), key=lambda path: path.stat().st_mtime_ns)
    if not logs:
        return last_error_line("")
    with logs[-1].open("rb") as log:
        log.seek(max(0, logs[-1].stat().st_size - LOG_TAIL))
        return last_error_line(log.read().decode(errors="replace"))


def postmaster(place: ClusterLayout) -> int | None:
    """Return the server's process id, or None when the one on record is gone or somebody else's."""
    try:
        pid = int(place.pid_file.read_text().partition("\n")[0])
        command = psutil.Process(pid).cmdline()
    except (OSError, ValueError, psutil.Error):
        return None
    return pid if str(place.cluster) in command else None


def is_ready(place: ClusterLayout) -> bool:
    """Whether the server says that it accepts connections."""
    with contextlib.suppress(OSError):
        return place.pid_file.read_text().rstrip().endswith("ready")
    return False


def quit_orphans(place: ClusterLayout) -> None:
    """End what a killed server left at work, as the server itself does it after a crash."""
    title = f"postgres: {place.name}: "
    for found in psutil.process_iter(["cmdline"]):
        if " ".join(found.info["cmdline"] or ()).startswith(title):
            with contextlib.suppress(psutil.Error):
                found.send_signal(signal.SIGQUIT)


@contextlib.contextmanager
def open_lock_file(path: Path) -> Iterator[int]:
    """Open a lock file; yield its descriptor."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def lock_file(
    path: Path, timeout: float = LOCK_TIMEOUT, given_up: threading.Event | None = None
) -> Iterator[int]:
    """Hold the lock on a file; yield its descriptor.

    Raises EmbeddedServerError when another process still has it after `timeout` seconds, or once
    the caller has given up.
    """
    with open_lock_file(path) as descriptor:
        deadline = time.monotonic() + timeout
        while not try_lock(descriptor):
            check_canceled(given_up)
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"another process has held {path} for {timeout:.0f} s: end it, then try again"
                )
            time.sleep(0.01)
        yield descriptor


def check_canceled(given_up: threading.Event | None) -> None:
    """Raise EmbeddedServerError once the caller has given up."""
    if given_up is not None and given_up.is_set():
        raise EmbeddedServerError("the start of the embedded PostgreSQL was stopped")


def try_lock(descriptor: int) -> bool:
    """Take the lock on an open file if nobody holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
