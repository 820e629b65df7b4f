"""CPU and memory of a process tree, read from /proc."""

from __future__ import annotations

import contextlib
import ipaddress
import time
from collections.abc import Iterable
from pathlib import Path

import psutil
from psycopg import AsyncConnection

KIB = 1024
MEGABYTE = 1_000_000
BUSY = 0.25
"""Part of the CPU of the machine used by other programs, over which CPU is not certain."""
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
"""Whether the kernel shares the CPU among sessions first, and only then by the nice value."""


class ServerCpu:
    """CPU time of a PostgreSQL server on this machine.

    It has the resolution of the kernel's scheduler where the kernel reports that, else 10 ms.
    """

    def __init__(self, postmaster: psutil.Process) -> None:
        self.postmaster = postmaster

    def seconds(self) -> float:
        """Return the CPU seconds of the postmaster, its processes and its ended processes."""
        ended = self.postmaster.cpu_times()
        total = ended.children_user + ended.children_system + cpu_seconds(self.postmaster.pid)
        for process in self.postmaster.children():
            with contextlib.suppress(psutil.Error, OSError):
                # a process that ended meanwhile is part of the postmaster's sum next time
                total += cpu_seconds(process.pid)
        return float(total)


class OtherWork:
    """CPU that other programs use on this machine during a measurement."""

    def __init__(self, servers: Iterable[ServerCpu | None]) -> None:
        """Start counting; the servers belong to the measurement."""
        self._roots = [psutil.Process(), *(server.postmaster for server in servers if server)]
        self._began = time.monotonic()
        self._others = self._seconds()

    def share(self) -> float:
        """Return the part of the CPU of all cores that other programs used since the start."""
        capacity = (time.monotonic() - self._began) * (psutil.cpu_count() or 1)
        return max(0.0, self._seconds() - self._others) / max(1e-9, capacity)

    def own_seconds(self) -> float:
        """Return the CPU seconds of the bench, the servers and all their children, also ended."""
        trees = [(root, *root.children(recursive=True)) for root in self._roots]
        seconds = 0.0
        for process in {process.pid: process for tree in trees for process in tree}.values():
            with contextlib.suppress(psutil.Error):  # it has just ended: its parent counts it
                seconds += sum(process.cpu_times()[:4])  # with its ended children
        return seconds

    def _seconds(self) -> float:
        machine = psutil.cpu_times()
        idle = machine.idle + getattr(machine, "iowait", 0.0) + getattr(machine, "guest", 0.0)
        return float(sum(machine) - idle - self.own_seconds())


def busy(other: float) -> str:
    """Return the warning about a machine with other work."""
    text = f"other programs used {other:.0%} of the CPU: repeat without them to compare CPU"
    if AUTOGROUP.exists() and AUTOGROUP.read_text().strip() == "1":
        text += "; nice does not help between sessions, as kernel.sched_autogroup_enabled is 1"
    return text


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process with a single thread, in nanoseconds if available."""
    schedstat = Path(f"/proc/{pid}/schedstat")
    if schedstat.exists():
        return int(schedstat.read_text().split()[0]) / 1e9
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def server_cpu(conn: AsyncConnection) -> ServerCpu | None:
    """Return the CPU clock of the server of a connection; None if its processes are invisible."""
    host = conn.info.host
    address = conn.info.hostaddr
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
