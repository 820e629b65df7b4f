"""The process from which those of runs are forked: it has imported the app, and does nothing else.

    worker ── request, socket of the run ──▶ spawner ── fork ──▶ process of a run
           ◀── pid, then its exit status ───

When the worker ends, its spawner kills all of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import selectors
import signal
import socket
import sys
from typing import Any, Final

from draftsman.job_types.app import import_modules
from draftsman.job_types.run_channel import INTERRUPT
from draftsman.processes.hardening import deny_inspection

PR_SET_PDEATHSIG: Final = 1
_RECEIVED: Final = 1 << 16
"""Bytes of a request at most: it has a number, a name and a limit."""


def main(arguments: list[str]) -> int:
    """Serve requests on the socket of this descriptor until the worker closes it."""
    told = json.loads(arguments[0])
    sys.path[:] = told["path"]
    control = socket.socket(fileno=told["control"])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the worker ends this
        signal.signal(number, signal.SIG_IGN)
    deny_inspection()
    try:
        import_modules(told["modules"])
    except Exception as error:
        _send(control, {"error": str(error)})
        return 1
    gc.freeze()
    _send(control, {"ready": True})
    _Spawner(control).serve()
    return 0


class _Spawner:
    """Forks processes, and reports their ends."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pids: dict[int, int] = {}
        self._woken, wake = socket.socketpair()
        for end in (self._woken, wake):
            end.setblocking(False)
        self._wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve until the worker is gone."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._woken:
                        self._reap()
                    elif not self._fork_next():
                        self._kill_all()
                        return

    def _fork_next(self) -> bool:
        """Fork a process for the next request; return whether there was one."""
        data, descriptors, _, _ = socket.recv_fds(self._control, _RECEIVED, 1)
        if not data:
            return False
        request = json.loads(data)
        pid = os.fork()
        if pid == 0:
            self._become(descriptors[0], request)
        os.close(descriptors[0])
        self._pids[pid] = request["id"]
        _send(self._control, {"id": request["id"], "pid": pid})
        return True

    def _become(self, descriptor: int, request: dict[str, Any]) -> None:
        """Run a job in this process, and exit."""
        code = 1
        try:
            os.setpgid(0, 0)
            signal.signal(INTERRUPT, signal.SIG_IGN)  # until there is something to interrupt
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (self._control, self._woken, self._wake):
                end.close()
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if request["memory"] is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (request["memory"],) * 2)
            from draftsman.job_types.process_main import run

            run(socket.socket(fileno=descriptor))
            code = 0
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        while self._pids:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # what it started, and left
            code = os.waitstatus_to_exitcode(status)
            _send(self._control, {"id": self._pids.pop(pid), "exited": code})

    def _kill_all(self) -> None:
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the worker is gone: the next read ends this
        control.sendall(json.dumps(message).encode() + b"\n")
