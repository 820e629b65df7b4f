"""The socket of a run, on which any program in its sandbox may ask people.

A connection is a message, its reply, and the end.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from draftsman.agent_runs.protocol.codec import encode
from draftsman.agent_runs.protocol.protocol import RefusedMessage
from draftsman.sandbox.processes.process import MAX_LINE, MalformedLine
from draftsman.sandbox.sandbox_plan import SOCKET

MAX_CONNECTIONS: Final = 32
"""Maximum number of programs of a run that are connected at a time."""
BACKLOG: Final = 16

Respond = Callable[[bytes], Awaitable[bytes]]
"""Returns the reply to a line."""


def socket_folder(run_folder: Path) -> Path:
    """Return a new path for the folder of the socket.

    Its name is secret: where the sandbox hides no path, a program of another run must not connect.
    """
    return run_folder / f"socket-{secrets.token_hex(16)}"


@asynccontextmanager
async def serve_run_socket(folder: Path, uid: int | None, respond: Respond) -> AsyncIterator[None]:
    """Answer the programs of a run until the end of the block.

    `uid` is the user id of the programs; None: the worker's own.
    """
    owner = os.geteuid() if uid is None else uid
    connections = set[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        connections.add(task)
        try:
            if len(connections) > MAX_CONNECTIONS:
                text = f"{MAX_CONNECTIONS} programs of the run are connected; wait for one of them"
                writer.write(encode(RefusedMessage(reason=text, error_class="TRANSIENT_APP")))
            elif _peer(writer) in (owner, os.geteuid()):
                await _serve(reader, writer, respond)
        except ConnectionError:
            pass
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_unix_server(connected, sock=_listen(folder, uid), limit=MAX_LINE)
    try:
        yield
    finally:
        server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, respond: Respond
) -> None:
    """Read a line and write its reply."""
    try:
        line = await reader.readline()
    except ValueError:  # over the limit
        reason = MalformedLine.too_long(MAX_LINE + 1, MAX_LINE).reason
        writer.write(encode(RefusedMessage(reason=reason.replace("line of", "line of at least"))))
        return
    if line:
        writer.write(await respond(line))
        await writer.drain()


def _listen(folder: Path, uid: int | None) -> socket.socket:
    """Return a listening socket in a new folder, whose path may be longer than an address."""
    folder.mkdir(mode=0o700)
    directory = os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(f"/proc/self/fd/{directory}/{SOCKET}")
            if uid is not None:
                os.chown(SOCKET, uid, uid, dir_fd=directory)
                os.chown(directory, uid, uid)
            listening.listen(BACKLOG)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
    finally:
        os.close(directory)
    return listening


def _peer(writer: asyncio.StreamWriter) -> int:
    """Return the user id of the program."""
    connection = writer.get_extra_info("socket")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("3i", credentials)[1])
