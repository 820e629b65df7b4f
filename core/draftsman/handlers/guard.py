"""The process between a worker and its agent: whatever becomes of the worker, the agent ends.

    python -I -S guard.py CONTROL_FD LEASE_SECONDS -- COMMAND...

It starts the command in a session of its own and adopts every process that the command leaves
behind (Linux: child subreaper). On the control pipe each byte is a sign of life; `t` also sends
SIGTERM to the agent's group, and `k` kills. The agent and all its descendants are killed when the
pipe closes (the worker died), when no byte came for the lease (the worker is stopped), at a signal
to the guard, and when the agent exits by itself. The exit code is the agent's, 128 + n for a
signal. Standard library only, nothing of draftsman, no pathlib: it has to start in milliseconds.
"""

# ruff: noqa: PTH123, PTH208
from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

TERMINATE = b"t"
KILL = b"k"
STOPPING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
GIVE_UP = 5.0
"""Seconds for killed processes to go; one in an uninterruptible sleep may outlast the guard."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps: the lease in the database does too."""


def main(arguments: list[str]) -> int:
    """Run the command under guard; return its exit code."""
    control, lease, command = int(arguments[0]), float(arguments[1]), arguments[3:]
    os.set_inheritable(control, False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wakeup = _signals_as_bytes()
    agent = _start(command)
    status = _watch(agent, control, lease, wakeup)
    killed = _kill_descendants(agent)
    code = os.waitstatus_to_exitcode(killed if status is None else status)
    return code if code >= 0 else 128 - code


def _prctl(option: int, argument: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)


def _signals_as_bytes() -> int:
    """Return a descriptor on which every signal arrives as one byte."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGCHLD, *STOPPING):
        signal.signal(number, lambda *_: None)
    return reader


def _start(command: list[str]) -> int:
    guard = os.getpid()
    pid = os.fork()
    if pid:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)  # so that the worker sees the end of the agent's output
        return pid
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python ignores these two; others must not
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _watch(agent: int, control: int, lease: float, wakeup: int) -> int | None:
    """Return the agent's wait status when it exits; None when it has to be killed."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    deadline = time.clock_gettime(CLOCK) + lease
    while (left := deadline - time.clock_gettime(CLOCK)) > 0:
        for source, _ in poll.poll(min(left, 1.0) * 1000):
            received = os.read(source, 4096)
            if source == wakeup:
                if STOPPING & set(received):
                    return None
                continue
            if not received or KILL in received:
                return None
            deadline = time.clock_gettime(CLOCK) + lease
            if TERMINATE in received:
                os.killpg(agent, signal.SIGTERM)
        if (status := _reap(agent)) is not None:
            return status
    return None


def _reap(agent: int) -> int | None:
    """Collect who has exited; return the agent's status if it is among them."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in (0, agent):
                return status if pid else None
    except ChildProcessError:
        return None


def _kill_descendants(agent: int) -> int:
    """Kill until none is left; return the agent's status, if it is collected here.

    Orphans become the guard's own children, so no child means no descendant.
    """
    found, deadline = signal.SIGKILL.value, time.monotonic() + GIVE_UP
    while time.monotonic() < deadline:
        for pid in _descendants():
            _kill(pid)
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == agent:
            found = status
        if pid == 0:
            time.sleep(0.002)
    return found


def _kill(pid: int) -> None:
    """Kill it, unless it has gone, or is another user's by a set-uid program."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    level = [os.getpid()]
    while level:
        level = [child for pid in level for child in children.get(pid, ())]
        found += level
    return found


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
                continue  # it has just gone
            pairs.append((int(name), int(fields[1])))
    return pairs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
