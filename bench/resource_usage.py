"""What a process tree has used of the processor and of memory, seen from outside."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import psutil
from psycopg import AsyncConnection

KIB = 1024
MEGABYTE = 1_000_000


class ServerCpu:
    """The processor time of a PostgreSQL on this machine; its resolution is 10 ms a process."""

    def __init__(self, postmaster: psutil.Process) -> None:
        self._postmaster = postmaster

    def seconds(self) -> float:
        """Return what the postmaster, its processes and those that ended have used."""
        used = self._postmaster.cpu_times()
        total = used.user + used.system + used.children_user + used.children_system
        for process in self._postmaster.children():
            try:
                own = process.cpu_times()
            except psutil.Error:
                continue  # it ended just now, and is in the postmaster's sum the next time
            total += own.user + own.system
        return float(total)


def server_cpu(conn: AsyncConnection) -> ServerCpu | None:
    """Return the clock of the server behind a connection; None where it is not seen from here."""
    host, address = conn.info.host, conn.info.hostaddr
    local = host.startswith("/") or bool(address and ipaddress.ip_address(address).is_loopback)
    try:
        backend = psutil.Process(conn.info.backend_pid) if local else None
        postmaster = backend.parent() if backend and "postgres" in backend.name() else None
    except psutil.Error:
        return None  # another pid namespace: a container
    return ServerCpu(postmaster) if postmaster and "postgres" in postmaster.name() else None


def resident_mb(pid: int) -> float:
    """Return the most that a process had resident, or has now where only that is told."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * KIB / MEGABYTE
    return float(psutil.Process(pid).memory_info().rss) / MEGABYTE
