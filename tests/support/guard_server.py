"""Starts the guards of agents by a fork of a process that has imported nothing else.

    subprocess.Popen ── arguments, environment, files ──▶ server ──▶ guard
                     ◀────────────── process ID ─────────────┘

A new interpreter needs 25 ms of CPU to import the guard, a fork 1 ms. The guard is a child of the
test process and has its own command line, as after `exec`. Processes that a test starts, such as
the workers of `tests/core/sandbox/processes/test_guard.py`, start guards as in production; so
do the tests of guards and attacks, with NEW_GUARD in their environment.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import sys
import traceback

from draftsman.sandbox.processes import guard
from tests.support.sibling_fork import fork_sibling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_ORDER = 1 << 20
"""Maximum size of an order in bytes."""
MAX_FILES = 64
PADDING = "-" * 65_536
"""Argument of this process, for the command lines of guards."""


def main() -> None:
    """Fork a guard for each order until the other end is closed."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    title = _addresses_of_arguments()
    while True:
        order, files, _, _ = socket.recv_fds(connection, MAX_ORDER, MAX_FILES)
        if not order:
            return
        if (pid := fork_sibling()) == 0:
            connection.close()
            _run(json.loads(order), files, title)
        for number in files:
            os.close(number)
        connection.send(pid.to_bytes(4, "big"))


def _run(order: dict[str, Any], files: list[int], title: tuple[int, int]) -> None:
    """Become the guard that a new interpreter would be."""
    code = 1
    try:
        os.setsid()
        _set_command_line([argument.encode() for argument in order["args"]], *title)
        numbers = [0, 1, 2, *order["pass_fds"]]
        free = max(*numbers, *files) + 1
        high = [fcntl.fcntl(file, fcntl.F_DUPFD, free) for file in files]
        for file, number in zip(high, numbers, strict=True):
            os.dup2(file, number)
        kept = 2
        for number in [*sorted(order["pass_fds"]), max(high) + 1]:
            os.closerange(kept + 1, number)
            kept = number
        os.umask(order["umask"])
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        code = guard.main(order["args"][order["skip"] :])
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _addresses_of_arguments() -> tuple[int, int]:
    """Return the memory of this process that is its command line (proc_pid_stat(5))."""
    with open("/proc/self/stat") as file:  # noqa: PTH123
        fields = file.read().rpartition(")")[2].split()
    return int(fields[45]), int(fields[46])


def _set_command_line(arguments: list[bytes], start: int, end: int) -> None:
    text = b"".join(argument + b"\0" for argument in arguments)[: end - start]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, len(text))


if __name__ == "__main__":
    main()
