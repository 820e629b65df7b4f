"""Hook `PreToolUse` of Claude Code: ask the adapter for the decision on a call of a tool.

    python -I -S claude_hook.py /home/agent/claude-1a2b/hook.sock < CALL

Standard library only, since it is started for each call. Every failure exits with 2, which blocks
the call.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Final

BLOCK: Final = 2
"""Exit code with which Claude Code does not make the call."""
SECONDS: Final = 600.0
"""Timeout of a decision; people are asked after Claude Code has exited."""


def connect(path: str) -> socket.socket:
    """Return a connection to a socket, whose path may be longer than an address."""
    folder, name = os.path.split(path)
    directory = os.open(folder, os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(SECONDS)
        connection.connect(f"/proc/self/fd/{directory}/{name}" if len(path) > 100 else path)
    finally:
        os.close(directory)
    return connection


def main() -> int:
    """Pass the call on standard input to the adapter, and its decision to standard output."""
    try:
        with connect(sys.argv[1]) as connection:
            connection.sendall(sys.stdin.buffer.read())
            connection.shutdown(socket.SHUT_WR)
            reply = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    except OSError as error:
        sys.stderr.write(f"draftsman cannot decide this call: {error.strerror}\n")
        return BLOCK
    if not reply:
        sys.stderr.write("draftsman cannot decide this call: the run is ending\n")
        return BLOCK
    sys.stdout.buffer.write(reply)
    return 0


if __name__ == "__main__":
    sys.exit(main())
