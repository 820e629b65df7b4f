"""The two processes between a worker and a program: whatever becomes of the worker, it ends.

    python -I -S -c START CONTROL_FD REPLY_FD LEASE_SECONDS PLAN -- COMMAND...

    worker -> guard -> keeper (a fork of the guard) -> the program, confined as PLAN says

Both adopt every process that the program leaves behind (Linux: child subreaper), and each of them
alone kills the program and all its descendants when the worker's end of the control pipe closes,
when no heartbeat came for the lease, or when the other one is killed or stopped. So the program
does not outlive a killed or stopped guard, nor a killed or stopped worker, nor both.

Orders on the control pipe are single bytes: `h` heartbeat, `t` SIGTERM to the program's group, `k`
kill, `z` freeze all descendants, `c` continue them. Replies are single bytes too: `a` heartbeat of
the guard, `b` of the keeper, `z` frozen, `x` not frozen, `c` continued, `m` continued after one of
them ran; the first reply is the keeper's process id and a newline. The exit code is the program's,
128 + n for a signal. Standard library only: it has to start in milliseconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from abc import ABC, abstractmethod
from typing import Any, NoReturn

from draftsman.handlers.sandbox.confinement import enter
from draftsman.handlers.subprocesses import process_tree

HEARTBEAT = b"h"
TERMINATE = b"t"
KILL = b"k"
FREEZE = b"z"
CONTINUE = b"c"
FROZEN, NOT_FROZEN, CONTINUED, MOVED = b"z", b"x", b"c", b"m"
GUARD_BEATS, KEEPER_BEATS = b"a", b"b"
STOPPING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
KILL_TIMEOUT = 5.0
"""Seconds for killed processes to go; one in an uninterruptible sleep may outlast the guard."""
FREEZE_LIMIT = 5.0
"""Seconds until all processes have to be stopped."""
MEMORY_CHECK = 2.0
"""Seconds between two sums of the memory."""
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps: the lease in the database does too."""


def main(arguments: list[str]) -> int:
    """Run the command under guard; return its exit code.

    Neither of the two processes can be attached to by another process of the same user.
    """
    _prctl(PR_SET_DUMPABLE, 0)
    control, replies, lease = int(arguments[0]), int(arguments[1]), float(arguments[2])
    plan, command = json.loads(arguments[3]), arguments[5:]
    for descriptor in (control, replies, *plan["keep"]):
        os.set_inheritable(descriptor, False)
    os.set_blocking(replies, False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    relayed, relay = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(relay)
        _exit_with(Keeper(control, relayed, replies, lease), plan, command)
    os.close(relayed)
    os.set_blocking(relay, False)
    _leave_pipes()
    _reply(replies, b"%d\n" % keeper)
    guard = Guard(keeper, control, relay, replies, lease, plan)
    return _code(guard.watch(), _kill_descendants(keeper))


def _exit_with(keeper: Keeper, plan: dict[str, Any], command: list[str]) -> NoReturn:
    code = 1
    try:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        program = _start(plan, command)
        _leave_pipes()
        code = _code(keeper.watch(program), _kill_descendants(program))
    finally:
        os._exit(code)


class Watcher(ABC):
    """What guard and keeper have in common: a lease, and a child whose end they collect."""

    def __init__(self, control: int, replies: int, lease: float) -> None:
        self._control, self._replies, self._lease = control, replies, lease
        self._wakeup = _signals_as_bytes()
        self._poll = select.poll()
        self._poll.register(self._wakeup, select.POLLIN)
        self._renew()

    def _renew(self) -> None:
        self._deadline = time.clock_gettime(CLOCK) + self._lease

    def _watch(self, child: int) -> int | None:
        """Return the child's wait status when it exits; None when it has to be killed."""
        if (status := _reap(child)) is not None:  # it exited before signals were bytes
            return status
        while True:
            left = max(self._deadline - time.clock_gettime(CLOCK), 0.0)
            for source, event in self._poll.poll(min(left, 1.0) * 1000):
                if source == self._wakeup:
                    if STOPPING & set(os.read(source, 4096)):
                        return None
                elif not self._heard(source, event):
                    return None
            if (status := _reap(child)) is not None:
                return status
            if self._deadline <= time.clock_gettime(CLOCK) or not self._within_limits():
                return None

    @abstractmethod
    def _heard(self, source: int, event: int) -> bool:
        """Read a pipe that is ready; return whether to keep watching."""

    def _within_limits(self) -> bool:
        return True


class Keeper(Watcher):
    """The program's parent. It sees the worker's death by itself; the guard relays heartbeats."""

    def __init__(self, control: int, relayed: int, replies: int, lease: float) -> None:
        super().__init__(control, replies, lease)
        self._relayed = relayed
        self._poll.register(control, 0)  # its closing alone; the guard reads the orders
        self._poll.register(relayed, select.POLLIN)

    def watch(self, program: int) -> int | None:
        """Return the program's wait status when it exits; None when it has to be killed."""
        return self._watch(program)

    def _heard(self, source: int, event: int) -> bool:
        if source == self._control:
            return False
        if not os.read(source, 4096):
            return False
        self._renew()
        _reply(self._replies, KEEPER_BEATS)
        return True


class Guard(Watcher):
    """The worker's child: it takes orders, and watches the keeper."""

    def __init__(
        self,
        keeper: int,
        control: int,
        relay: int,
        replies: int,
        lease: float,
        plan: dict[str, Any],
    ) -> None:
        super().__init__(control, replies, lease)
        self._keeper, self._relay, self._plan = keeper, relay, plan
        self._stopped: set[int] = set()
        self._still: dict[str, bytes] | None = None
        self._check_at = time.monotonic() + MEMORY_CHECK
        self._poll.register(control, select.POLLIN)

    def watch(self) -> int | None:
        """Return the keeper's wait status when it exits; None when all has to be killed."""
        return self._watch(self._keeper)

    def _heard(self, source: int, event: int) -> bool:
        received = os.read(source, 4096)
        if not received or KILL in received:
            return False
        self._renew()
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._relay, HEARTBEAT)
        _reply(self._replies, GUARD_BEATS)
        if TERMINATE in received:
            self._terminate()
        for order in received:
            if order == FREEZE[0]:
                self._freeze()
            elif order == CONTINUE[0]:
                self._continue()
        return True

    def _freeze(self) -> None:
        found = process_tree.freeze(os.getpid(), FREEZE_LIMIT)
        self._stopped |= found or set()
        self._still = None if found is None else process_tree.switches(os.getpid())
        _reply(self._replies, NOT_FROZEN if found is None else FROZEN)

    def _continue(self) -> None:
        held = self._still is not None and self._still == process_tree.switches(os.getpid())
        process_tree.thaw(self._stopped)
        self._stopped, self._still = set(), None
        _reply(self._replies, CONTINUED if held else MOVED)

    def _terminate(self) -> None:
        """Signal the program's group; bwrap's has a process of its own in between."""
        leaders = process_tree.children(self._keeper)[:1]
        if self._plan["mode"] == "bwrap":
            leaders = [pid for leader in leaders for pid in process_tree.children(leader)[:1]]
        for leader in leaders:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGTERM)

    def _within_limits(self) -> bool:
        if time.monotonic() < self._check_at:
            return True
        self._check_at = time.monotonic() + MEMORY_CHECK
        most = self._plan["memory"]
        if sys.platform != "linux" or process_tree.memory(os.getpid()) <= most:
            return True
        os.write(2, f"killed: over {most >> 20} MB of memory ([sandbox] memory_mb)\n".encode())
        return False


def _code(status: int | None, killed: int) -> int:
    code = os.waitstatus_to_exitcode(killed if status is None else status)
    return code if code >= 0 else 128 - code


def _prctl(option: int, argument: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)


def _reply(replies: int, text: bytes) -> None:
    with contextlib.suppress(BlockingIOError, BrokenPipeError):
        os.write(replies, text)


def _signals_as_bytes() -> int:
    """Return a descriptor on which every signal arrives as one byte."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGCHLD, *STOPPING):
        signal.signal(number, lambda *_: None)
    return reader


def _leave_pipes() -> None:
    """Let go of the program's input and output, so that the worker sees their end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)


def _start(plan: dict[str, Any], command: list[str]) -> int:
    keeper = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python ignores these two; others must not
        enter(plan, command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror or error}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _reap(child: int) -> int | None:
    """Collect who has exited; return the child's status if it is among them."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in (0, child):
                return status if pid else None
    except ChildProcessError:
        return None


def _kill_descendants(child: int) -> int:
    """Kill until none is left; return the child's status, if it is collected here.

    Orphans become children of this process, so no child means no descendant.
    """
    found, deadline = signal.SIGKILL.value, time.monotonic() + KILL_TIMEOUT
    while time.monotonic() < deadline:
        for pid in process_tree.descendants(os.getpid()):
            process_tree.send_signal(pid, signal.SIGKILL)
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == child:
            found = status
        if pid == 0:
            time.sleep(0.002)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
