"""State of a connection and of the task that uses it."""

from __future__ import annotations

import asyncio
import select
from typing import Any

import psycopg
from psycopg.pq import ConnStatus


def is_disconnected(conn: psycopg.AsyncConnection[Any]) -> bool:
    """Return whether the socket shows that the server closed the connection."""
    if conn.closed:
        return True
    ready = select.poll()
    ready.register(conn.pgconn.socket, select.POLLIN)
    try:
        while ready.poll(0):
            conn.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return conn.pgconn.status != ConnStatus.OK


def is_read_only(conn: psycopg.AsyncConnection[Any]) -> bool:
    """Return whether the server last reported a standby, or a default of read-only transactions.

    Another server may be the primary by now, and a default of the database or the role is read only
    once: a session that was opened in such a time would stay read-only for ever.
    """
    if conn.closed:
        return False
    reported = (b"in_hot_standby", b"default_transaction_read_only")
    return any(conn.pgconn.parameter_status(name) == b"on" for name in reported)


def cancellations() -> int:
    """Return how often this task was canceled, also where that had no effect."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
