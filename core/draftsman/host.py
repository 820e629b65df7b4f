"""Identity of this host, and liveness of its processes."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
from functools import cache
from pathlib import Path


def name() -> str:
    """Return the host name."""
    return socket.gethostname()


@cache
def identity() -> str:
    """Return a unique id of this host and its process table.

    The host name is not enough: containers share hosts, and hosts share names.
    """
    parts = [name()]
    with contextlib.suppress(OSError):  # Linux only
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return ":".join(part.strip() for part in parts)


def process_start_time(pid: int) -> float | None:
    """Return the process's start as Unix time; None if it does not exist."""
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def is_this_host(host_id: str) -> bool:
    """Compare a host id with `identity()`."""
    return host_id == identity()


def is_dead(host_id: str, pid: int, pid_started: float) -> bool:
    """Return whether the process ran on this host and has ended.

    A reused pid has another start time; a zombie has ended.
    """
    import psutil

    if not is_this_host(host_id):
        return False
    started = process_start_time(pid)
    if started is None or abs(started - pid_started) > 1.0:
        return True
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


def login() -> str:
    """Return the name of the process's real user."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
