"""The process outside of a container: starts the engine, and sends it the program.

It ends with its guard. Then its connection to `container_init` closes, which ends the container,
also one whose processes belong to the daemon of an engine. Standard library only.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket

from draftsman.sandbox import container_init

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(plan: dict[str, Any], command: list[str], environment: dict[str, str]) -> int:
    """Run a command in a new container; return its exit code. Raises OSError."""
    folder = plan["control"]
    os.mkdir(folder, 0o700)  # noqa: PTH102
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.join(folder, container_init.SOCKET))  # noqa: PTH118
            listener.listen(1)
            if plan["uid"] is not None:
                for path in (folder, os.path.join(folder, container_init.SOCKET)):  # noqa: PTH118
                    os.chown(path, plan["uid"], plan["uid"])
            engine = _start_engine(plan, plan["run"])
            connection = _accept(listener, engine)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if connection is not None:
        _send(connection, plan, command, environment)
    code = os.waitstatus_to_exitcode(os.waitpid(engine, 0)[1])
    return code if code >= 0 else 128 - code


def _start_engine(plan: dict[str, Any], arguments: list[str]) -> int:
    """Start the engine, which passes SIGTERM on to the container; this process ignores it."""
    stopping = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in stopping:
        signal.signal(number, signal.SIG_IGN)
    environment = plan["engine_environment"]
    return os.posix_spawn(arguments[0], arguments, environment, setsigdef=stopping)


def _accept(listener: socket.socket, engine: int) -> socket.socket | None:
    """Return the connection of the container's first process; None if the engine ends first."""
    ended = os.pidfd_open(engine)
    try:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(ended, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll()}
        return listener.accept()[0] if listener.fileno() in ready else None
    finally:
        os.close(ended)


def _send(
    connection: socket.socket,
    plan: dict[str, Any],
    command: list[str],
    environment: dict[str, str],
) -> None:
    """Send the program, and forward the listening sockets to the worker."""
    ports = [port for _, port in plan["port_sockets"]]
    start = {"command": command, "environment": environment, "ports": ports}
    connection.sendall(json.dumps(start).encode() + b"\n")
    for descriptor, _ in plan["port_sockets"]:
        _, received, _, _ = socket.recv_fds(connection, 1, 1)
        with socket.socket(fileno=descriptor) as worker:
            if received:
                socket.send_fds(worker, [b"x"], received)
        for listening in received:
            os.close(listening)
