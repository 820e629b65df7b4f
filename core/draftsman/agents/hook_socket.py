"""The socket on which the hook of an agent asks its adapter, in the home of the run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from draftsman.agents.program import MAX_LINE

SECONDS: Final = 10.0
"""Timeout of a message and of its reply; another program of the run may have connected."""
NAME: Final = "hook.sock"

Decide = Callable[[dict[str, Any]], dict[str, Any]]
"""Returns the reply to a message."""


class HookSocket:
    """A listening socket; `path` is its path."""

    def __init__(self, home: Path, decide: Decide) -> None:
        self._decide = decide
        self._folder = home / f"hook-{os.urandom(8).hex()}"
        self._folder.mkdir(0o700)
        self.path = self._folder / NAME
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        directory = os.open(self._folder, os.O_DIRECTORY | os.O_CLOEXEC)
        long = len(str(self.path)) > 100  # above the length of an address
        self._socket.bind(f"/proc/self/fd/{directory}/{NAME}" if long else str(self.path))
        os.close(directory)
        self._socket.listen()
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor, which is readable when a hook asks."""
        return self._socket.fileno()

    def answer(self) -> None:
        """Answer a hook that has connected; a connection without a message is closed."""
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return
        with connection:
            try:
                message = _read(connection, time.monotonic() + SECONDS)
            except OSError:
                return
            if message is None:
                return
            connection.settimeout(SECONDS)
            reply = json.dumps(self._decide(message)).encode()
            try:
                connection.sendall(reply)
            except OSError:  # the call was canceled
                return

    def close(self) -> None:
        """Remove the socket."""
        self._socket.close()
        try:
            self.path.unlink()
            self._folder.rmdir()
        except OSError:  # the agent can write here too
            shutil.rmtree(self._folder, ignore_errors=True)


def _read(connection: socket.socket, deadline: float) -> dict[str, Any] | None:
    data = b""
    while True:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        if not (chunk := connection.recv(1 << 16)):
            break
        data += chunk
        if len(data) > MAX_LINE:
            return None
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
