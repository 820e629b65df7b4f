"""This machine and the processes on it."""

from __future__ import annotations

import contextlib
import socket
from functools import cache
from pathlib import Path


def name() -> str:
    """Return what the machine is called."""
    return socket.gethostname()


@cache
def identity() -> str:
    """Return what tells this host and its process table from every other.

    A name is not enough: containers share hosts, and hosts share names.
    """
    parts = [name()]
    with contextlib.suppress(OSError):  # not on every system
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return ":".join(part.strip() for part in parts)


def process_start_time(pid: int) -> float | None:
    """Return the Unix time at which the process started; None when there is none."""
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def is_this_host(host_id: str) -> bool:
    """Return whether that is this host, whose processes we can see."""
    return host_id == identity()


def is_dead(host_id: str, pid: int, pid_started: float) -> bool:
    """Return whether the process ran on this host and is gone.

    A pid that another process has by now started at another time; a zombie is gone.
    """
    import psutil

    if not is_this_host(host_id):
        return False
    began = process_start_time(pid)
    if began is None or abs(began - pid_started) > 1.0:
        return True
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True
