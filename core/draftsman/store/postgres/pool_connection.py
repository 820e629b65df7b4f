"""Connections of a pool, of which the first is open before the pool."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection


def connection_class(first: AsyncConnection[Any]) -> type[AsyncConnection[Any]]:
    """Return a class of connections whose first call of `connect` returns `first`.

    A pool opens its connections itself, but reports no error of the first one.
    """
    waiting = [first]

    class PoolConnection(AsyncConnection[Any]):
        @classmethod
        async def connect(cls, *args: Any, **kwargs: Any) -> Any:
            return waiting.pop() if waiting else await AsyncConnection.connect(*args, **kwargs)

    return PoolConnection
