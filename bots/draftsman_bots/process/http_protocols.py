"""HTTP/1.1 connections with a timeout and a limit for incomplete requests, by two parsers.

Uvicorn waits without limit for the rest of a request's head. A few thousand incomplete requests
would use up its connection limit, and every other client would get 503.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.server import ServerState

ARRIVAL_TIMEOUT: Final = 10.0
"""Seconds for a complete request, from the connection or from its first byte."""
MAX_INCOMPLETE: Final = 256
"""Connections with an incomplete request; above it the oldest is closed."""
MAX_HEAD_BYTES: Final = 32 * 1024
CHUNK_FRAMING: Final = 8
"""Bytes of framing that a byte of a body may have: it may be a chunk by itself."""
_incomplete_by_server: Final[WeakKeyDictionary[ServerState, dict[TimedProtocol, None]]] = (
    WeakKeyDictionary()
)


class TimedProtocol(asyncio.Protocol, ABC):
    """A connection that is closed if its request is not complete in time.

    It is a base of a connection of uvicorn, before that in the order of resolution.
    """

    arrival_timeout = ARRIVAL_TIMEOUT
    max_incomplete = MAX_INCOMPLETE
    loop: asyncio.AbstractEventLoop
    server_state: ServerState
    transport: asyncio.Transport

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._incomplete_requests = _incomplete_by_server.setdefault(self.server_state, {})

    @property
    @abstractmethod
    def is_incomplete(self) -> bool:
        """Whether the request to which the last bytes belong is incomplete."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout of the first request."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Restart or stop the timeout."""
        super().data_received(data)
        if self.is_incomplete:
            self._start_timer()
        else:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._timer is not None or self.transport.is_closing():
            return
        self._timer = self.loop.call_later(self.arrival_timeout, self._time_out)
        self._incomplete_requests[self] = None
        if len(self._incomplete_requests) > self.max_incomplete:
            next(iter(self._incomplete_requests))._time_out()

    def _stop_timer(self) -> None:
        self._incomplete_requests.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._stop_timer()
        self.transport.abort()


class H11TimedProtocol(TimedProtocol, H11Protocol):
    """A connection whose requests are parsed in Python."""

    @property
    def is_incomplete(self) -> bool:
        """Whether the head or the body of the current request is incomplete."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)


PROTOCOLS: list[type[TimedProtocol]] = [H11TimedProtocol]
"""The protocols of the installed parsers, the fastest last."""
try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    pass
else:

    class HttptoolsTimedProtocol(TimedProtocol, HttpToolsProtocol):
        """A connection whose requests are parsed in C, which has no limit of their heads."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._is_incomplete = True
            self._overhead = 0
            """Bytes of an incomplete request, less those that its body allows."""

        @property
        def is_incomplete(self) -> bool:
            """Whether a request has begun, or only bytes between requests came."""
            return self._is_incomplete

        def data_received(self, data: bytes) -> None:
            """Refuse a request whose head or trailer is too large."""
            self._overhead += len(data)
            super().data_received(data)
            if not self._is_incomplete:
                self._overhead = 0
            elif self._overhead > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._stop_timer()
                self.send_400_response("Invalid HTTP request received.")

        def on_message_begin(self) -> None:
            """Begin a request."""
            self._is_incomplete = True
            super().on_message_begin()

        def on_body(self, body: bytes) -> None:
            """Count a part of the body, which may be a chunk."""
            self._overhead -= CHUNK_FRAMING * len(body)
            super().on_body(body)

        def on_message_complete(self) -> None:
            """End a request."""
            self._is_incomplete = False
            super().on_message_complete()

        def on_response_complete(self) -> None:
            """Expect a request: bytes before its first line may take no longer than itself."""
            self._is_incomplete = True
            super().on_response_complete()

    PROTOCOLS.append(HttptoolsTimedProtocol)
