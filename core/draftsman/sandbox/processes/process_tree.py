"""Search, stop and kill of all descendants of a process.

Standard library only: the guard runs it.
"""

# ruff: noqa: PTH123, PTH208, SIM105
from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:  # `signal` itself imports `enum`
    import _signal as signal

STOPPED_STATES = b"TtZXx"
"""States in /proc of threads that do not run: stopped, traced, dead."""
STABLE_ROUNDS = 2
"""Consecutive scans that must see the same processes, all of them stopped."""
ATTEMPTS = 4
"""Attempts to stop all processes.

A parent in vfork never stops while its child is stopped before exec, so both continue in between.
"""
QUICK_ROUNDS = 50
"""Kills of the direct children between two scans of /proc."""
PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(root: int) -> list[int]:
    """Return the process ids below `root`, parents first."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    pids: list[int] = []
    level = [root]
    while level:
        level = [child for pid in level for child in children.get(pid, ())]
        pids += level
    return pids


def children(root: int) -> list[int]:
    """Return the ids of the children of `root`, oldest first."""
    return sorted(pid for pid, parent in _parents() if parent == root)


def send_signal(pid: int, number: int) -> None:
    """Signal a process; ignored if it has exited, or changed its user by a set-uid program."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def freeze(root: int, limit: float) -> set[int] | None:
    """Stop all descendants of `root`; return those that `thaw` has to continue.

    A chain of processes that fork and exit may be faster than a scan of /proc. But the process that
    adopts them is stopped and cannot reap them, so each leaves a zombie and changes the scan.
    Returns None, with all processes continued, if some still ran after `limit` seconds.
    """
    for _ in range(ATTEMPTS):
        stopped: set[int] = set()
        if _freeze(root, stopped, time.monotonic() + limit / ATTEMPTS):
            return stopped
        thaw(stopped)
    return None


def kill(root: int, limit: float) -> None:
    """Kill all descendants of `root`, then `root` itself.

    `root` adopts orphans as long as it lives, even when it is stopped, so that none escapes.
    """
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        kill_children(root)
        alive = [pid for pid in descendants(root) if not is_dead(pid)]
        if not alive:
            break
        for pid in alive:
            send_signal(pid, signal.SIGKILL)
        time.sleep(0.002)
    send_signal(root, signal.SIGKILL)


def kill_children(root: int) -> None:
    """Kill the direct children of `root` several times.

    A process that forks and exits is gone before a scan of /proc ends, but its child becomes a
    child of `root`, and the list of these is read within microseconds. Linux; elsewhere, or in a
    kernel without this list, nothing is killed.
    """
    for _ in range(QUICK_ROUNDS):
        try:
            with open(f"/proc/{root}/task/{root}/children", "rb") as file:
                pids = file.read().split()
        except OSError:
            return
        for pid in pids:
            send_signal(int(pid), signal.SIGKILL)


def thaw(stopped: set[int]) -> None:
    """Continue the processes that `freeze` stopped."""
    for pid in stopped:
        send_signal(pid, signal.SIGCONT)


def context_switches(root: int) -> dict[str, bytes]:
    """Return the context switches of each thread below `root`, by its path in /proc.

    The count of a stopped thread changes if it runs, even if no signal was observed.
    """
    counts = {}
    for pid in descendants(root):
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for thread in threads:
            path = f"/proc/{pid}/task/{thread}/status"
            try:
                with open(path, "rb") as file:
                    counts[path] = file.read().partition(b"voluntary_ctxt_switches")[2]
            except OSError:
                continue
    return counts


def unshared_memory(root: int) -> int:
    """Return the bytes of unshared memory of the descendants of `root`."""
    total = 0
    for pid in descendants(root):
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                _, resident, shared, *_ = (int(number) for number in file.read().split())
        except (OSError, ValueError):
            continue
        total += max(resident - shared, 0) * PAGE
    return total


def _freeze(root: int, stopped: set[int], deadline: float) -> bool:
    stable_rounds = 0
    previous = None
    while stable_rounds < STABLE_ROUNDS:
        pids = descendants(root)
        running = [pid for pid in pids if not is_stopped(pid)]
        for pid in running:
            send_signal(pid, signal.SIGSTOP)
        stopped.update(running)
        stable_rounds = stable_rounds + 1 if not running and pids == previous else 0
        previous = pids
        if running or stable_rounds == 0:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
    return True


def is_dead(pid: int) -> bool:
    """Return whether every thread of the process has ended."""
    return _all_threads(pid, b"ZXx")


def is_stopped(pid: int) -> bool:
    """Return whether no thread of the process runs; True if it has exited.

    A process whose threads this user cannot see counts as running.
    """
    return _all_threads(pid, STOPPED_STATES)


def _all_threads(pid: int, states: bytes) -> bool:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except PermissionError:
        return False
    except OSError:
        return True
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                state = file.read().rpartition(b") ")[2][:1]
        except PermissionError:
            return False
        except OSError:
            continue
        if state not in states:
            return False
    return True


def _parents() -> list[tuple[int, int]]:
    """Return (pid, parent) of every process."""
    if sys.platform != "linux":
        import subprocess

        listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, check=True)
        numbers = [int(number) for number in listing.stdout.split()]
        return list(zip(numbers[::2], numbers[1::2], strict=True))
    pairs = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b") ")[2].split()
            except OSError:
                continue  # it has exited meanwhile
            pairs.append((int(name), int(fields[1])))
    return pairs
