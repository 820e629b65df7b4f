"""Connections of the programs of a run to a server of the worker."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

CLOSE_TIMEOUT: Final = 10.0
"""Seconds for a program to read the rest of a response, until which its connection counts."""

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bool], Awaitable[None]]
"""Serves a connection; the last argument is whether too many are open already."""


@asynccontextmanager
async def serve_programs(
    listener: socket.socket, handle: Handle, *, most: int, limit: int
) -> AsyncIterator[None]:
    """Serve connections of a listening socket until the end of the block.

    `most` connections are open at once; `limit` bytes of a stream are buffered. A client that is
    gone ends its connection only.
    """
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a callback of a server runs as a task
        tasks.add(task)
        try:
            await handle(reader, writer, len(tasks) > most)
        except OSError:
            pass  # the client is gone
        except asyncio.CancelledError:  # the run ends
            writer.transport.abort()
        finally:
            try:
                await _close(writer)
            finally:
                tasks.discard(task)

    server = await asyncio.start_server(connected, sock=listener, limit=limit)
    try:
        yield
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close the connection of a program; bytes that it does not read in time are lost.

    Else a program that reads nothing could take all descriptors of the worker.
    """
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await writer.wait_closed()
    except OSError:  # a TimeoutError, too
        pass
    finally:
        writer.transport.abort()
