"""Execution of the server's programs, and identification of its processes."""

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

from draftsman.database.embedded.layout import ClusterLayout, SystemAccount
from draftsman.errors import EmbeddedServerError

LOCK_TIMEOUT = 180.0
"""Seconds to wait for another process that starts or stops the server."""
LOG_TAIL = 16_384
"""Bytes at the end of a log that are searched for an error."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"}
"""Complete environment of a program, without the caller's PGDATA, PGPORT and others."""
_ERROR_LINE = re.compile(r"(?:FATAL|PANIC|ERROR|error): +(.+)")


def run(
    command: Sequence[str | Path],
    account: SystemAccount | None = None,
    *,
    text: str = "",
    inherit: Sequence[int] = (),
) -> None:
    """Run a program in a new session, as `account` or as the caller.

    It and its children keep the locks in `inherit`, even if the caller is killed. Raises
    EmbeddedServerError with the program's error line.
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
            f"cannot run {command[0]} ({error.strerror}):"
            " set DRAFTSMAN_DATABASE_URL to a PostgreSQL 15 or later"
        ) from None
    if done.returncode:
        raise EmbeddedServerError(f"{Path(command[0]).name} failed: {last_error_line(done.stdout)}")


def last_error_line(output: str) -> str:
    """Return the last error in a program's output, or its last line."""
    lines = output.strip().splitlines() or ["no output"]
    errors = [match[1] for line in lines if (match := _ERROR_LINE.search(line))]
    return errors[-1] if errors else lines[-1]


def last_log_error(layout: ClusterLayout) -> str:
    """Return the last error in the server's newest log."""
    logs = sorted(layout.log.glob("*.log"), key=lambda path: path.stat().st_mtime_ns)
    if not logs:
        return last_error_line("")
    with logs[-1].open("rb") as log:
        log.seek(max(0, logs[-1].stat().st_size - LOG_TAIL))
        return last_error_line(log.read().decode(errors="replace"))


def postmaster(layout: ClusterLayout) -> int | None:
    """Return the server's process id, or None if no server has the recorded id."""
    import psutil

    try:
        pid = int(layout.pid_file.read_text().partition("\n")[0])
        command = psutil.Process(pid).cmdline()
    except (OSError, ValueError, psutil.Error):
        return None
    return pid if str(layout.cluster) in command else None


def is_ready(layout: ClusterLayout) -> bool:
    """Return whether the server's pid file has the status `ready`."""
    with contextlib.suppress(OSError):
        return layout.pid_file.read_text().rstrip().endswith("ready")
    return False


def quit_orphans(layout: ClusterLayout) -> None:
    """Stop the remaining processes of a killed server, as a server does after a crash."""
    import psutil

    title = f"postgres: {layout.name}: "
    for process in psutil.process_iter(["cmdline"]):
        if " ".join(process.info["cmdline"] or ()).startswith(title):
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGQUIT)


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
    path: Path, timeout: float = LOCK_TIMEOUT, canceled: threading.Event | None = None
) -> Iterator[int]:
    """Hold the lock on a file; yield its descriptor.

    Raises EmbeddedServerError if another process holds it for `timeout` seconds, or once `canceled`
    is set.
    """
    with open_lock_file(path) as descriptor:
        deadline = time.monotonic() + timeout
        while not try_lock(descriptor):
            check_canceled(canceled)
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"another process has held {path} for {timeout:.0f} s: stop it, then try again"
                )
            time.sleep(0.01)
        yield descriptor


def check_canceled(canceled: threading.Event | None) -> None:
    """Raise EmbeddedServerError if the start was canceled."""
    if canceled is not None and canceled.is_set():
        raise EmbeddedServerError("the start of the embedded PostgreSQL was canceled")


def try_lock(descriptor: int) -> bool:
    """Take the lock on an open file; return False if it is held."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
