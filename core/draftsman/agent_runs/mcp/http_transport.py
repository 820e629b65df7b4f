"""The transport of the MCP server over HTTP, on the port of the gateway: without sessions.

Source: the specification of MCP, "Streamable HTTP", 2025-11-25 and 2026-07-28. Each message is a
request of its own, and its reply is JSON; the server sends no messages of its own.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from draftsman.agent_runs.mcp.protocol import (
    INVALID_REQUEST,
    LEGACY,
    MAX_CALLS,
    MAX_LINE,
    MODERN,
    PARSE_ERROR,
    TOO_LONG,
    UNKNOWN_METHOD,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    McpServer,
    ProtocolError,
    Tool,
    parse_message,
)
from draftsman.sandbox.gateway.api_formats import received_token
from draftsman.sandbox.gateway.http_server import GatewayReply, GatewayRequest

HEADER_MISMATCH: Final = -32020
VERSION_HEADER: Final = "mcp-protocol-version"
STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    UNSUPPORTED_VERSION: 400,
    HEADER_MISMATCH: 400,
    UNKNOWN_METHOD: 404,
}
"""HTTP status of an error, where it is not 200."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class McpEndpoint:
    """The server's path on the port of the gateway; clients authenticate by the run's token."""

    def __init__(self, token: str, tools: Sequence[Tool], instructions: str) -> None:
        self._token = token
        self._tools = tools
        self._instructions = instructions
        self._calls = 0

    async def respond(self, request: GatewayRequest, reply: GatewayReply) -> None:
        """Respond to a request."""
        token = received_token(request.headers)
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            await _refuse(reply, 401, "the token is not that of this run")
        elif not _is_local(request.headers.get("origin")):
            await _refuse(reply, 403, "the origin is not this host")
        elif request.method != "POST":
            await _refuse(reply, 405, "only POST is available", (("allow", "POST"),))
        elif self._calls >= MAX_CALLS:
            await _refuse(reply, 429, f"{MAX_CALLS} calls are under way; try again later")
        else:
            self._calls += 1
            try:
                await self._answer(request, reply)
            finally:
                self._calls -= 1

    async def _answer(self, request: GatewayRequest, reply: GatewayReply) -> None:
        body = TOO_LONG if len(request.body) > MAX_LINE else request.body
        try:
            message = await asyncio.to_thread(parse_message, body)
            modern = check_headers(request.headers, message)
        except ProtocolError as error:
            await reply.send_json(STATUS.get(error.code, 400), _error(error))
            return
        replies: list[dict[str, Any]] = []
        server = McpServer(self._tools, self._instructions, replies.append, handshake=False)
        server.handle(message)
        await server.finish()
        answers = [item for item in replies if "id" in item]
        if not answers:
            await reply.start(202, (("content-length", "0"),))
            return
        code = answers[0].get("error", {}).get("code")
        await reply.send_json(STATUS.get(code, 200) if modern else 200, answers[0])


def check_headers(headers: Mapping[str, str], message: Mapping[str, Any]) -> bool:
    """Return whether a message has its version in it; raises ProtocolError.

    Its headers then repeat the version, the method and the name, so that proxies need no body.
    """
    method = message.get("method")
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    version = headers.get(VERSION_HEADER)
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        if version is not None and version not in LEGACY and method != "initialize":
            data = {"supported": [MODERN, *LEGACY], "requested": version[:100]}
            raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        return False
    expected = {VERSION_HEADER: meta[VERSION_KEY], "mcp-method": method}
    if method == "tools/call":
        expected["mcp-name"] = params.get("name")
    for name, value in expected.items():
        if headers.get(name) != value:
            raise ProtocolError(HEADER_MISMATCH, f"the header {name} must be that of the message")
    return True


def _is_local(origin: str | None) -> bool:
    """Return whether a request comes from no web page, or from one of this host."""
    return origin is None or urlsplit(origin).hostname in LOOPBACK


def _error(error: ProtocolError) -> dict[str, Any]:
    body: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "id": None, "error": body}


async def _refuse(
    reply: GatewayReply, status: int, text: str, headers: tuple[tuple[str, str], ...] = ()
) -> None:
    data = json.dumps({"error": {"message": f"draftsman: {text}"}}).encode()
    common = (("content-type", "application/json"), ("content-length", str(len(data))))
    await reply.start(status, (*common, *headers))
    await reply.write(data)
