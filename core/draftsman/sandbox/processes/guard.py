"""Guard and keeper: two processes that end a program when its worker ends.

    python -I -S -c CODE CONTROL_FD REPLY_FD LEASE_SECONDS PLAN -- COMMAND...

    worker -> guard -> keeper (a fork of the guard) -> the program, confined as PLAN says

Both adopt every process that the program leaves behind (Linux: child subreaper). Each of them kills
the program and all its descendants when the worker's end of the control pipe closes, when there is
no heartbeat for the duration of the lease, or when the other of the two is killed or stopped. So
the program does not outlive a killed or stopped guard, worker, or both.

Orders on the control pipe are single bytes: `h` heartbeat, `t` SIGTERM to the program's group, `k`
kill, `z` freeze all descendants, `c` continue them. Replies are single bytes too: `a` heartbeat of
the guard, `b` of the keeper, `z` frozen, `x` not frozen, `c` continued, `m` continued although a
process ran meanwhile; the first reply is the keeper's process id and a newline. The exit code is
the program's, 128 + n for a signal.

Standard library only, to start in milliseconds. `contextlib`, `json`, `re`, `signal` and `typing`
are not imported: with their own imports they take longer than the interpreter.
"""

# ruff: noqa: SIM105
from __future__ import annotations

import os
import select
import sys
import time
from abc import ABC, abstractmethod

from draftsman.sandbox.confinement import decode, enter
from draftsman.sandbox.processes import process_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal

HEARTBEAT = b"h"
TERMINATE = b"t"
KILL = b"k"
FREEZE = b"z"
CONTINUE = b"c"
FROZEN = b"z"
NOT_FROZEN = b"x"
CONTINUED = b"c"
CHANGED = b"m"
GUARD_ALIVE = b"a"
KEEPER_ALIVE = b"b"
STOPPING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
KILL_TIMEOUT = 5.0
"""Seconds to wait for killed processes; an uninterruptible sleep may take longer."""
FREEZE_LIMIT = 5.0
"""Seconds within which all processes have to be stopped."""
MEMORY_CHECK = 2.0
"""Seconds between two checks of the memory."""
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Runs while the machine is suspended, as the lease in the database does."""


def main(arguments: list[str]) -> int:
    """Run the command under guard; return its exit code.

    Both processes are undumpable: no other process of the same user can attach to them.
    """
    _prctl(PR_SET_DUMPABLE, 0)
    control = int(arguments[0])
    replies = int(arguments[1])
    lease = float(arguments[2])
    plan = decode(arguments[3])
    command = arguments[5:]
    for descriptor in (control, replies, *plan["keep"]):
        os.set_inheritable(descriptor, False)
    os.set_blocking(replies, False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    relayed, relay = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(relay)
        _run_keeper(Keeper(control, relayed, replies, lease), plan, command)
    os.close(relayed)
    os.set_blocking(relay, False)
    _release_stdio()
    _reply(replies, b"%d\n" % keeper)
    guard = Guard(keeper, control, relay, replies, lease, plan)
    status = guard.watch()
    if status is None:  # the keeper last: if this process is killed meanwhile, it goes on
        process_tree.kill(keeper, KILL_TIMEOUT)
    return _exit_code(status, _kill_descendants(keeper))


def _run_keeper(keeper: Keeper, plan: dict[str, Any], command: list[str]) -> NoReturn:
    code = 1
    try:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        program = _start(plan, command)
        _release_stdio()
        code = _exit_code(keeper.watch(program), _kill_descendants(program))
    finally:
        os._exit(code)


class Watcher(ABC):
    """Base of guard and keeper: a lease, and a child process to reap."""

    def __init__(self, control: int, replies: int, lease: float) -> None:
        self._control = control
        self._replies = replies
        self._lease = lease
        self._wakeup = _open_signal_pipe()
        self._poll = select.poll()
        self._poll.register(self._wakeup, select.POLLIN)
        self._renew()

    def _renew(self) -> None:
        self._deadline = time.clock_gettime(CLOCK) + self._lease

    def _watch(self, child: int) -> int | None:
        """Return the child's wait status when it exits; None when it has to be killed."""
        if (status := _reap(child)) is not None:  # it exited before the signal handlers were set
            return status
        while True:
            remaining = max(self._deadline - time.clock_gettime(CLOCK), 0.0)
            for source, event in self._poll.poll(min(remaining, 1.0) * 1000):
                if source == self._wakeup:
                    if STOPPING & set(os.read(source, 4096)):
                        return None
                elif not self._handle(source, event):
                    return None
            if (status := _reap(child)) is not None:
                return status
            if self._deadline <= time.clock_gettime(CLOCK) or not self._within_limits():
                return None

    @abstractmethod
    def _handle(self, source: int, event: int) -> bool:
        """Read a pipe that is ready; return whether to keep watching."""

    def _within_limits(self) -> bool:
        return True


class Keeper(Watcher):
    """The program's parent. It detects the worker's end itself; the guard relays heartbeats."""

    def __init__(self, control: int, relayed: int, replies: int, lease: float) -> None:
        super().__init__(control, replies, lease)
        self._relayed = relayed
        self._poll.register(control, 0)  # for its closing only; the guard reads the orders
        self._poll.register(relayed, select.POLLIN)

    def watch(self, program: int) -> int | None:
        """Return the program's wait status when it exits; None when it has to be killed."""
        return self._watch(program)

    def _handle(self, source: int, event: int) -> bool:
        if source == self._control:
            return False
        if not os.read(source, 4096):
            return False
        self._renew()
        _reply(self._replies, KEEPER_ALIVE)
        return True


class Guard(Watcher):
    """The worker's child, which executes orders and watches the keeper."""

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
        self._keeper = keeper
        self._relay = relay
        self._plan = plan
        self._stopped: set[int] = set()
        self._switches: dict[str, bytes] | None = None
        self._check_at = time.monotonic() + MEMORY_CHECK
        self._poll.register(control, select.POLLIN)

    def watch(self) -> int | None:
        """Return the keeper's wait status when it exits; None when everything has to be killed."""
        return self._watch(self._keeper)

    def _handle(self, source: int, event: int) -> bool:
        received = os.read(source, 4096)
        if not received or KILL in received:
            return False
        if HEARTBEAT in received:  # other orders confirm no lease
            self._renew()
            _reply(self._relay, HEARTBEAT)
            _reply(self._replies, GUARD_ALIVE)
        if TERMINATE in received:
            self._terminate()
        for order in received:
            if order == FREEZE[0]:
                self._freeze()
            elif order == CONTINUE[0]:
                self._continue()
        return True

    def _freeze(self) -> None:
        stopped = process_tree.freeze(os.getpid(), FREEZE_LIMIT)
        self._stopped |= stopped or set()
        self._switches = None if stopped is None else process_tree.context_switches(os.getpid())
        frozen = stopped is not None and self._run_engine("freeze")
        _reply(self._replies, FROZEN if frozen else NOT_FROZEN)

    def _continue(self) -> None:
        unchanged = self._switches is not None and self._switches == process_tree.context_switches(
            os.getpid()
        )
        self._run_engine("thaw")
        process_tree.thaw(self._stopped)
        self._stopped = set()
        self._switches = None
        _reply(self._replies, CONTINUED if unchanged else CHANGED)

    def _run_engine(self, name: str) -> bool:
        """Run a command of the container's engine, if the plan has it; return its success.

        It is for processes that are no descendants of this one, but of the engine's daemon.
        """
        command = self._plan.get(name)
        if not command:
            return True
        pid = os.posix_spawn(command[0], command, self._plan["engine_environment"])
        return os.waitpid(pid, 0)[1] == 0

    def _terminate(self) -> None:
        """Signal the program's process group; under bwrap it is one level further down."""
        leaders = process_tree.children(self._keeper)[:1]
        if self._plan["mode"] == "bwrap":
            leaders = [pid for leader in leaders for pid in process_tree.children(leader)[:1]]
        for leader in leaders:
            try:
                os.killpg(leader, signal.SIGTERM)
            except (ProcessLookupError, PermissionError):
                pass

    def _within_limits(self) -> bool:
        if time.monotonic() < self._check_at:
            return True
        self._check_at = time.monotonic() + MEMORY_CHECK
        limit = self._plan["memory"]
        if sys.platform != "linux" or process_tree.unshared_memory(os.getpid()) <= limit:
            return True
        text = f"killed: more than {limit >> 20} MB of memory; the limit is [sandbox] memory_mb\n"
        os.write(2, text.encode())
        return False


def _exit_code(status: int | None, killed: int) -> int:
    code = os.waitstatus_to_exitcode(killed if status is None else status)
    return code if code >= 0 else 128 - code


def _prctl(option: int, argument: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)


def _reply(replies: int, text: bytes) -> None:
    try:
        os.write(replies, text)
    except (BlockingIOError, BrokenPipeError):
        pass


def _open_signal_pipe() -> int:
    """Return a descriptor on which every signal arrives as a byte."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGCHLD, *STOPPING):
        signal.signal(number, lambda *_: None)
    return reader


def _release_stdio() -> None:
    """Close the program's input and output here, so that the worker sees end of file."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)


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
            signal.signal(number, signal.SIG_DFL)  # Python ignores these two; the program must not
        enter(plan, command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror or error}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _reap(child: int) -> int | None:
    """Reap exited processes; return the child's wait status if it is among them."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in (0, child):
                return status if pid else None
    except ChildProcessError:
        return None


def _kill_descendants(child: int) -> int:
    """Kill until no descendant is left; return the child's wait status if it is reaped here.

    Orphans become children of this process, so no child means no descendant.
    """
    child_status = int(signal.SIGKILL)
    deadline = time.monotonic() + KILL_TIMEOUT
    while time.monotonic() < deadline:
        process_tree.kill_children(os.getpid())
        for pid in process_tree.descendants(os.getpid()):
            process_tree.send_signal(pid, signal.SIGKILL)
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == child:
                    child_status = reaped[1]
        except ChildProcessError:
            break
        time.sleep(0.002)
    return child_status
