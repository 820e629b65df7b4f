"""Client of the socket of a run: asks people from a program that runs inside of a job."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any, Final

from draftsman.errors import AnswerTimeout, Refused, UsageError

VARIABLE: Final = "DRAFTSMAN_SOCKET"
"""Variable with the path of the socket; unset outside a run."""
MAX_REPLY: Final = 1 << 20
"""Maximum bytes of a reply."""
ENDED: Final = "the run ended without a reply; a question that was asked stays open"


def path() -> str | None:
    """Return the path of the run's socket; None outside a run."""
    return os.environ.get(VARIABLE) or None


def send(kind: str, /, **fields: Any) -> dict[str, Any]:
    """Send a message and return its reply; `park` means that no answer is known yet.

    Raises UsageError outside a run, Refused, AnswerTimeout if the run ends meanwhile.
    """
    target = path()
    if target is None:
        raise UsageError(
            f"works only inside a run, where {VARIABLE} is set; see: draftsman ask --help"
        )
    message = json.dumps({"type": kind, "id": "1"} | fields).encode() + b"\n"
    try:
        with _connect(target) as connection:
            connection.sendall(message)
            reply = _read_line(connection)
    except (BrokenPipeError, ConnectionResetError):
        raise AnswerTimeout(ENDED) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise Refused(f"cannot connect to the run at {target}: {reason}") from None
    if reply["type"] == "refused":
        raise Refused(str(reply.get("reason")))
    return reply


def _connect(target: str) -> socket.socket:
    """Connect through the folder: an address has at most 107 bytes."""
    folder = os.open(Path(target).parent, os.O_PATH | os.O_CLOEXEC)
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(f"/proc/self/fd/{folder}/{Path(target).name}")
        except BaseException:
            connection.close()
            raise
    finally:
        os.close(folder)
    return connection


def _read_line(connection: socket.socket) -> dict[str, Any]:
    data = b""
    while b"\n" not in data and len(data) <= MAX_REPLY:
        chunk = connection.recv(1 << 16)
        if not chunk:
            raise AnswerTimeout(ENDED)
        data += chunk
    reply: dict[str, Any] = json.loads(data)
    return reply
