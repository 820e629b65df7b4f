"""The first process of a container: opens ports for the worker, and starts the program.

    python3 -I -S -c CODE

It connects to a socket in a mounted folder, whose other end is `container_client` outside. From
there come the program, its environment and the ports, as a line of JSON; each listening socket is
sent back, so that connections are accepted outside. When the connection closes, because the worker
or its guard ended, this process ends, and with it all processes of the container. SIGTERM is passed
on to the program. Standard library only, of any Python since 3.9: it is that of the image.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys

from draftsman.sandbox import seccomp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTROL = "/run/draftsman-init"
"""Mount point of the folder with the socket."""
SOCKET = "init.sock"
HOST = "127.0.0.1"
BACKLOG = 64
PR_SET_DUMPABLE = 4
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    """Run the program; return its exit code, 128 + n after a signal."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    client = socket.socket(socket.AF_UNIX)
    client.connect(f"{CONTROL}/{SOCKET}")
    with client.makefile("r", encoding="utf-8") as lines:
        start = json.loads(lines.readline())
    for port in start["ports"]:
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((HOST, port))
            server.listen(BACKLOG)
            socket.send_fds(client, [b"x"], [server.fileno()])
    wakeup = _open_signal_pipe()
    program = _start(start)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    return _watch(client, wakeup, program)


def _start(start: dict[str, Any]) -> int:
    command = start["command"]
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, *FORWARDED):
            signal.signal(number, signal.SIG_DFL)
        if (calls := seccomp.build(tcp_only=False)) is not None:
            seccomp.apply(calls)
        environment = {"PATH": os.environ.get("PATH", os.defpath), **start["environment"]}
        os.execvpe(command[0], command, environment)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror or error}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _watch(client: socket.socket, wakeup: int, program: int) -> int:
    """Return the exit code of the program; end at once when the connection closes."""
    poll = select.poll()
    poll.register(client, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while True:
        for source, _ in poll.poll():
            if source != wakeup:
                os._exit(128 + signal.SIGKILL)
            for number in set(os.read(wakeup, 4096)) & set(FORWARDED):
                try:
                    os.killpg(program, number)
                except OSError:
                    continue
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 1
            if pid == program:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if not pid:
                break


def _open_signal_pipe() -> int:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGCHLD, *FORWARDED):
        signal.signal(number, lambda *_: None)
    return reader


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
