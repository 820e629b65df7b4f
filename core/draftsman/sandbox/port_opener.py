"""Opens ports inside a sandbox for the worker, then becomes the program.

    python -I -S -c CODE FD:PORT[,FD:PORT…] COMMAND...

The sandbox has a network namespace of its own, which the worker cannot enter. So the first process
in it opens each listening socket, sends it to the worker, and executes the program; connections to
the port are then accepted outside. Standard library only, to start in milliseconds: `socket`
imports `enum` and `selectors`, which takes as long as the interpreter.
"""

from __future__ import annotations

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

HOST = "127.0.0.1"
BACKLOG = 64


def main(arguments: list[str]) -> NoReturn:
    """Send the listening sockets through the Unix sockets, then execute the command."""
    ports = arguments[0].split(",")
    command = arguments[1:]
    try:
        for descriptor, port in (pair.split(":") for pair in ports):
            worker = _socket.socket(fileno=int(descriptor))
            server = _socket.socket()
            server.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            server.bind((HOST, int(port)))
            server.listen(BACKLOG)
            sent = server.fileno().to_bytes(4, sys.byteorder)
            worker.sendmsg([b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, sent)])
            worker.close()
            server.close()
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror or error}\n".encode())
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
