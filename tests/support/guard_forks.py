"""Lets `subprocess.Popen` of this process start guards by `tests.support.guard_server`."""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

from draftsman.resources import PACKAGE_ROOT, module_command
from draftsman.sandbox.processes import guard
from tests.support import guard_server
from tests.support.fork_server import DEFAULTS, PIPES, ROOT, end_server

NEW_GUARD: Final = "TESTS_NEW_GUARD"
"""Variable of a process whose guards are new interpreters, for tests of guards."""
GUARD: Final = [*module_command(guard.__name__)]
REQUIRED: Final = {name: value for name, value in DEFAULTS.items() if name != "pass_fds"} | {
    "start_new_session": True
}
"""Parameters of Popen that a fork supports with these values only."""
SERVE: Final = f"""import sys
sys.path[:0] = {[str(PACKAGE_ROOT), str(ROOT)]!r}
from {guard_server.__name__} import main
main()"""


class GuardServer:
    """The server of a process, started with the first guard."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._owner = 0
        """The process that started the server: a fork of it starts its own."""

    def start(self, order: dict[str, Any], files: list[int]) -> int:
        """Start a guard as a child of this process; return its process ID."""
        with self._lock:
            if self._socket is None or self._owner != os.getpid():
                self._socket = self._started()
                self._owner = os.getpid()
            socket.send_fds(self._socket, [json.dumps(order).encode()], files)
            reply = self._socket.recv(4)
        assert reply, "the server of guards ended"
        return int.from_bytes(reply, "big")

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = theirs.fileno()
        command = [sys.executable, "-I", "-S", "-c", SERVE, str(number), guard_server.PADDING]
        with theirs:
            process = subprocess.Popen(
                command, env={}, cwd="/", pass_fds=[number], start_new_session=True
            )
        atexit.register(functools.partial(end_server, ours, process))
        return ours


def install() -> None:
    """Start the guards of this process by forks."""
    execute = subprocess.Popen._execute_child  # type: ignore[attr-defined]
    signature = inspect.signature(execute)
    server = GuardServer()

    @functools.wraps(execute)
    def fork(popen: Any, *positional: Any) -> None:
        args = positional[0]
        if isinstance(args, (str, bytes, os.PathLike)) or [*args[: len(GUARD)]] != GUARD:
            execute(popen, *positional)
            return
        given = signature.bind(popen, *positional).arguments
        folder = Path(given["cwd"] or ".")
        env = given["env"] or {}
        differs = any(given[name] != value for name, value in REQUIRED.items())
        if differs or NEW_GUARD in os.environ or not folder.is_dir():
            execute(popen, *positional)
            return
        sys.audit("subprocess.Popen", sys.executable, args, given["cwd"], env)
        os.umask(mask := os.umask(0o077))
        order = {
            "args": [*args],
            "skip": len(GUARD),
            "pass_fds": [*given["pass_fds"]],
            "cwd": str(folder.absolute()),
            "env": dict(env),
            "umask": mask,
        }
        files = [given["p2cread"], given["c2pwrite"], given["errwrite"], *given["pass_fds"]]
        popen.pid = server.start(order, files)
        popen._child_created = True
        popen._close_pipe_fds(*(given[name] for name in PIPES))

    subprocess.Popen._execute_child = fork  # type: ignore[attr-defined]
