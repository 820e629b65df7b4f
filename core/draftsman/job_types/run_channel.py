"""The messages between a worker and the process of a run: pickled, with their length before them.

The process runs code of the worker's own app, so each trusts what the other sends.
"""

from __future__ import annotations

import pickle
import signal
import struct
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from dataclasses import dataclass
from socket import socket
from threading import Lock
from typing import Any, Final

from draftsman.errors import Failure
from draftsman.jobs.runs.run import ClaimedJob

INTERRUPT: Final = signal.SIGUSR1
"""Interrupts the main thread of a process. SIGTERM and SIGINT reach all processes of a service or
terminal, where the worker decides what becomes of its runs."""
_LENGTH: Final = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Start:
    """Run the function of a type."""

    type: str
    job: ClaimedJob
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """Call a method of the context; `id` is that of the reply."""

    id: int
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StepCall:
    """Call `step`, whose functions the process runs itself."""

    id: int
    key: str
    content: str
    has_lookup: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """Run the effect, or the lookup, of a step, and send its result."""

    id: int
    is_lookup: bool
    invocation_id: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call, or of an effect; with an error it is raised instead."""

    id: int
    value: Any = None
    error: BaseException | None = None
    of_effect: bool = False


class EffectFailed(Exception):
    """The effect of a step raised; the process knows what."""


@dataclass(frozen=True, slots=True)
class Output:
    """Lines for the log of the run."""

    text: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """End: the run waits for people, or was stopped."""


@dataclass(frozen=True, slots=True)
class End:
    """The function returned a value, or failed, or was interrupted."""

    value: Any = None
    failure: Failure | None = None
    details: str | None = None
    interrupted: bool = False


def dump(message: object) -> bytes:
    """Return the bytes of a message; raises what pickle raises for values that it cannot dump."""
    data = pickle.dumps(message)
    return _LENGTH.pack(len(data)) + data


async def read(reader: StreamReader) -> Any:
    """Return the next message; None at the end of the stream."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return pickle.loads(await reader.readexactly(length))  # noqa: S301 - of our own process
    except (IncompleteReadError, ConnectionError):
        return None


def write(writer: StreamWriter, message: object) -> None:
    """Send a message; nothing if the process has ended."""
    if not writer.is_closing():
        writer.write(dump(message))


class Channel:
    """The messages of the process, which any of its threads may send."""

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self._lock = Lock()

    def send(self, message: object) -> None:
        """Send a message; raises OSError once the worker is gone."""
        data = dump(message)
        with self._lock:
            self._connection.sendall(data)

    def receive(self) -> Any:
        """Return the next message; None once the worker is gone."""
        head = self._read(_LENGTH.size)
        if head is None:
            return None
        data = self._read(_LENGTH.unpack(head)[0])
        return None if data is None else pickle.loads(data)  # noqa: S301 - of our own worker

    def _read(self, size: int) -> bytes | None:
        parts = []
        while size:
            try:
                part = self._connection.recv(min(size, 1 << 20))
            except ConnectionError:
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
