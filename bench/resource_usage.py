"""CPU and memory of a process tree, read from /proc."""

from __future__ import annotations

import contextlib
import ipaddress
from pathlib import Path

import psutil
from psycopg import AsyncConnection

KIB = 1024
MEGABYTE = 1_000_000


class ServerCpu:
    """CPU time of a PostgreSQL server on this machine.

    It has the resolution of the kernel's scheduler where the kernel reports that, else 10 ms.
    """

    def __init__(self, postmaster: psutil.Process) -> None:
        self._postmaster = postmaster

    def seconds(self) -> float:
        """Return the CPU seconds of the postmaster, its processes and its ended processes."""
        ended = self._postmaster.cpu_times()
        total = ended.children_user + ended.children_system + cpu_seconds(self._postmaster.pid)
        for process in self._postmaster.children():
            with contextlib.suppress(psutil.Error, OSError):
                # a process that ended meanwhile is part of the postmaster's sum next time
                total += cpu_seconds(process.pid)
        return float(total)


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process with a single thread, in nanoseconds if available."""
    schedstat = Path(f"/proc/{pid}/schedstat")
    if schedstat.exists():
        return int(schedstat.read_text().split()[0]) / 1e9
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def server_cpu(conn: AsyncConnection) -> ServerCpu | None:
    """Return the CPU clock of the server of a connection; None if its processes are invisible."""
    host, address = conn.info.host, conn.info.hostaddr
    local = host.startswith("/") or bool(address and ipaddress.ip_address(address).is_loopback)
    try:
        backend = psutil.Process(conn.info.backend_pid) if local else None
        postmaster = backend.parent() if backend and "postgres" in backend.name() else None
    except psutil.Error:
        return None  # another pid namespace: a container
    return ServerCpu(postmaster) if postmaster and "postgres" in postmaster.name() else None


def resident_mb(pid: int) -> float:
    """Return the maximum resident memory of a process, or the current value if unavailable."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * KIB / MEGABYTE
    return float(psutil.Process(pid).memory_info().rss) / MEGABYTE
