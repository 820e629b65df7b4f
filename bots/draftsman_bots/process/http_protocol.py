"""HTTP/1.1 connections with a timeout for incomplete requests.

Uvicorn waits without limit for the rest of a request's head. A few thousand incomplete requests
would use up its connection limit, and every other client would get 503.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

ARRIVAL_TIMEOUT: Final = 10.0
"""Seconds for a complete request, from the connection or from its first byte."""
MAX_INCOMPLETE: Final = 256
"""Connections with an incomplete request; above it the oldest is closed."""
MAX_HEAD_BYTES: Final = 32 * 1024
_incomplete_by_server: Final[WeakKeyDictionary[ServerState, dict[TimedProtocol, None]]] = (
    WeakKeyDictionary()
)


class TimedProtocol(H11Protocol):
    """A connection that is closed if its request is not complete in time."""

    arrival_timeout = ARRIVAL_TIMEOUT
    max_incomplete = MAX_INCOMPLETE

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._incomplete_requests = _incomplete_by_server.setdefault(self.server_state, {})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first request."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Restart or stop the timeout."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
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
