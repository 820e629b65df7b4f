"""Blocking client of the agent protocol, with the standard library only."""

from __future__ import annotations

import itertools
import json
import os
import select
from collections.abc import Callable
from typing import Any, Final

QUESTIONS: Final = ("ask", "approve")
PARK: Final = b'{"type": "park"}\n'


class RunParked(BaseException):
    """The run is parked and the agent has to exit with code 0.

    Derives from BaseException so that an agent's `except Exception` does not catch it.
    """


class RequestRefused(Exception):
    """The worker refused a message; `error_class` is the class of an error for this reason."""

    def __init__(self, reason: str, error_class: str) -> None:
        super().__init__(reason)
        self.error_class = error_class


class AgentClient:
    """A session over standard input and output; `start` is the first message."""

    def __init__(self, source: int = 0, target: int = 1) -> None:
        self._source = source
        self._target = target
        self._unread = b""
        self._numbers = itertools.count(1)
        self._lines = 0
        self._parked = False
        self.on_message: Callable[[dict[str, Any]], bool] | None = None
        """Called with each message of a person while the agent waits; whether it used it."""
        self.messages: list[dict[str, Any]] = []
        """Messages of people that were not used yet, oldest first."""
        self.start: dict[str, Any] = self._receive()
        if self.start["type"] != "start":
            raise RunParked
        self.messages += self.start.get("messages", [])

    def send(self, kind: str, /, **fields: Any) -> None:
        """Send a message without a reply."""
        self._lines += 1
        data = json.dumps({"type": kind, **fields}).encode() + b"\n"
        while data:
            data = data[os.write(self._target, data) :]

    def call(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        """Send a message and return its reply.

        Raises RequestRefused, or RunParked for a question that waits for a person.
        """
        number = str(next(self._numbers))
        self.send(kind, id=number, **fields)
        line = self._lines
        while True:
            reply = self._receive()
            if reply["type"] == "park":
                if kind in QUESTIONS or self._parked:
                    raise RunParked
                self._parked = True  # the worker shuts down, but still replies to this message
            elif reply["type"] == "message":
                self.messages.append(reply)
            elif reply.get("id") == number or (
                reply["type"] == "refused"
                and reply.get("id") is None
                and reply.get("line", line) == line
            ):
                if reply["type"] == "refused":
                    raise RequestRefused(reply["reason"], reply.get("class", "PERMANENT"))
                return reply

    def wait(self, other: int, seconds: float) -> bool:
        """Wait until the descriptor `other` is readable; return whether it is.

        Raises RunParked as soon as the worker parks the run.
        """
        self._read_notices()
        ready, _, _ = select.select([self._source, other], [], [], max(seconds, 0))
        if self._source in ready:
            self._unread += os.read(self._source, 1 << 16) or PARK
            self._read_notices()
        return other in ready

    def poll(self) -> None:
        """Read the messages that have arrived; raises RunParked if the run is parked."""
        self._read_notices()
        while select.select([self._source], [], [], 0)[0]:
            self._unread += os.read(self._source, 1 << 16) or PARK
            self._read_notices()

    def _read_notices(self) -> None:
        """Read the messages that arrived without a request."""
        while b"\n" in self._unread:
            notice = self._receive()
            if notice["type"] == "message":
                self.messages.append(notice)
            self._parked |= notice["type"] == "park"
        if self._parked:
            raise RunParked
        if (use := self.on_message) is not None:
            self.messages = [message for message in self.messages if not use(message)]

    def _receive(self) -> dict[str, Any]:
        """Return the next message; the end of the input counts as `park`."""
        while b"\n" not in self._unread:
            self._unread += os.read(self._source, 1 << 16) or PARK
        line, _, self._unread = self._unread.partition(b"\n")
        message = json.loads(line)
        if not isinstance(message, dict) or "type" not in message:
            raise ValueError("a line of the worker is no message")
        return message
