"""The agent's side of the protocol, blocking, in the standard library alone."""

from __future__ import annotations

import itertools
import json
import os
import select
from typing import Any, Final

QUESTIONS: Final = ("ask", "approve")
PARK: Final = b'{"type": "park"}\n'


class RunParked(BaseException):
    """The run has to end now and goes on later: exit 0.

    Not an Exception: an agent's `except Exception` must not swallow it.
    """


class RequestRefused(Exception):
    """The worker did not accept a message."""


class AgentClient:
    """Speaks on standard input and output; `start` is the first message, as a dict."""

    def __init__(self, source: int = 0, target: int = 1) -> None:
        self._source, self._target = source, target
        self._unread = b""
        self._numbers = itertools.count(1)
        self._parked = False
        self.start: dict[str, Any] = self._receive()
        if self.start["type"] != "start":
            raise RunParked

    def send(self, kind: str, /, **fields: Any) -> None:
        """Send a message that needs no reply."""
        data = json.dumps({"type": kind, **fields}).encode() + b"\n"
        while data:
            data = data[os.write(self._target, data) :]

    def call(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        """Send a message and return its reply.

        Raises Refused, or Parked when it is a question that has to wait for a person.
        """
        number = str(next(self._numbers))
        self.send(kind, id=number, **fields)
        while True:
            reply = self._receive()
            if reply["type"] == "park":
                if kind in QUESTIONS or self._parked:
                    raise RunParked
                self._parked = True  # the worker shuts down; this message is on its way
            elif reply.get("id") == number:
                if reply["type"] == "refused":
                    raise RequestRefused(reply["reason"])
                return reply

    def wait(self, other: int, seconds: float) -> bool:
        """Wait for something to read from the descriptor `other`; return whether there is.

        Raises Parked as soon as the worker wants the run to end.
        """
        self._hear()
        ready, _, _ = select.select([self._source, other], [], [], max(seconds, 0))
        if self._source in ready:
            self._unread += os.read(self._source, 1 << 16) or PARK
            self._hear()
        return other in ready

    def _hear(self) -> None:
        """Read what has arrived without being asked for."""
        while b"\n" in self._unread:
            self._parked |= self._receive()["type"] == "park"
        if self._parked:
            raise RunParked

    def _receive(self) -> dict[str, Any]:
        """Return the next message; a worker that has gone has parked the run."""
        while b"\n" not in self._unread:
            self._unread += os.read(self._source, 1 << 16) or PARK
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message
