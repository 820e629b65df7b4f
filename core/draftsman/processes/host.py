"""Identity of this host, and liveness of its processes."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import sys
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
"""The process file system of Linux."""
ENDED_STATES: Final = (b"Z", b"X", b"x")
"""States of a process in /proc that has ended and was not waited for by its parent."""


class Liveness(StrEnum):
    """What this process can tell of another one."""

    ALIVE = "alive"
    ENDED = "ended"
    UNKNOWN = "unknown"
    """It may run: on another host, in another namespace, or hidden from this user."""


def name() -> str:
    """Return the host name."""
    return socket.gethostname()


@cache
def identity() -> str:
    """Return a unique id of this host and its process table.

    The host name is not enough: containers share hosts, and hosts share names. Processes in another
    time namespace count from another boot time.
    """
    ids = [name()]
    with contextlib.suppress(OSError):  # Linux only
        ids.append((PROC / "sys/kernel/random/boot_id").read_text())
        ids.append(str((PROC / "self/ns/pid").readlink()))
        ids.append(str((PROC / "self/ns/time").readlink()))  # since Linux 5.6
    return ":".join(id.strip() for id in ids)


def process_start_time(pid: int) -> float | None:
    """Return the start of a process; None if it cannot be seen.

    On Linux in clock ticks since the boot, which no step of the wall clock changes; elsewhere as
    Unix time.
    """
    if sys.platform == "linux":
        status = _read_status(pid) if _shows_own_namespace() else None
        return None if status is None else status[1]
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def liveness(host_id: str, pid: int, pid_started: float) -> Liveness:
    """Return whether a process that started at this time runs.

    `host_id` is the `identity` of its host, and `pid_started` its `process_start_time`, 0 if it is
    unknown. A reused pid has another start time; a zombie has ended. A process that cannot be seen
    has ended only if the kernel knows no process with its id.
    """
    if host_id != identity():
        return Liveness.UNKNOWN
    if sys.platform == "linux":
        return _liveness_on_linux(pid, pid_started)
    return _liveness_elsewhere(pid, pid_started)


def login() -> str:
    """Return the name of the process's real user."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def _liveness_on_linux(pid: int, pid_started: float) -> Liveness:
    status = _read_status(pid) if _shows_own_namespace() else None
    if status is None:
        return Liveness.UNKNOWN if _exists(pid) else Liveness.ENDED
    ended, started = status
    if ended:
        return Liveness.ENDED
    if not pid_started:
        return Liveness.UNKNOWN
    return Liveness.ALIVE if started == pid_started else Liveness.ENDED


def _liveness_elsewhere(pid: int, pid_started: float) -> Liveness:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return Liveness.ENDED
        started = float(process.create_time())
    except psutil.NoSuchProcess:
        return Liveness.ENDED
    except psutil.Error:
        return Liveness.UNKNOWN
    if not pid_started:
        return Liveness.UNKNOWN
    return Liveness.ALIVE if abs(started - pid_started) <= 1.0 else Liveness.ENDED


def _read_status(pid: int) -> tuple[bool, float] | None:
    """Return whether a process has ended, and its start time; None if it cannot be seen."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # the name, in parentheses, may contain anything; fields are numbered from 3, the state
    fields = text.rpartition(b") ")[2].split()
    if len(fields) < 20:
        return None
    threads = int(fields[17])
    # a first thread that has ended is a zombie as long as others run
    return fields[0] in ENDED_STATES and threads <= 1, float(fields[19])


def _shows_own_namespace() -> bool:
    """Return whether /proc numbers processes as this process does.

    A process that was moved to a namespace of its own may still see the /proc of its parent.
    """
    try:
        return str((PROC / "self").readlink()) == str(os.getpid())
    except OSError:
        return False


def _exists(pid: int) -> bool:
    """Return whether a process has this id, in the namespace of this process, also a hidden one."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
