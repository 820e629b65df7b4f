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


def cancellations() -> int:
    """Return how often this task was canceled, also where that had no effect."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
