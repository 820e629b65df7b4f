"""Opens the gateway's port inside a sandbox, then becomes the program.

    python -I -S -c CODE SOCKET_FD PORT COMMAND...

The sandbox has a network namespace of its own, which the worker cannot enter. So the first process
in it opens the listening socket, sends it to the worker, and executes the program; connections to
the port are then accepted outside. Standard library only, to start in milliseconds.
"""

from __future__ import annotations

import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

HOST = "127.0.0.1"
BACKLOG = 64


def main(arguments: list[str]) -> NoReturn:
    """Send the listening socket through the Unix socket, then execute the command."""
    descriptor, port, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    try:
        with (
            socket.socket(fileno=descriptor) as worker,
            socket.create_server((HOST, port), backlog=BACKLOG) as server,
        ):
            socket.send_fds(worker, [b"x"], [server.fileno()])
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror or error}\n".encode())
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
