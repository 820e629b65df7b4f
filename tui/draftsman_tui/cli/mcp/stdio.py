"""The transport of the MCP server over standard input and output: a message is a line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, BinaryIO

from draftsman.agent_runs.mcp.protocol import MAX_LINE, TOO_LONG, McpServer, Tool


async def serve(
    tools: Sequence[Tool], instructions: str, source: BinaryIO, output: BinaryIO
) -> None:
    """Answer the messages of a client until the end of its input."""

    def send(message: dict[str, Any]) -> None:
        output.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        output.flush()

    server = McpServer(tools, instructions, send)
    reader = asyncio.StreamReader(limit=MAX_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    try:
        while (line := await _read_line(reader)) is not None:
            server.receive(line)
    finally:
        await server.cancel()


async def _read_line(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next line; None at the end, and invalid JSON for a line over the limit."""
    try:
        return await reader.readuntil() or None
    except asyncio.IncompleteReadError as error:
        return error.partial or None
    except asyncio.LimitOverrunError:
        pass
    while True:  # discard the rest of the line
        try:
            await reader.readuntil()
        except asyncio.LimitOverrunError as error:
            await reader.readexactly(error.consumed)
        except asyncio.IncompleteReadError:
            return TOO_LONG
        else:
            return TOO_LONG
