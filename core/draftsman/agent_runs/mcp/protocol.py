"""The Model Context Protocol of a server of tools, over any transport.

It speaks the version 2026-07-28, in which each request has its version, and the earlier versions
with a handshake. A message is JSON-RPC 2.0.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from draftsman.formats.value_problems import IS_REQUIRED, keyword_problem, unknown_key
from draftsman.version import installed

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18")
"""Versions with a handshake, newest first."""
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
TOO_LONG: Final = b"{too long"
"""Stands for a message over the limit."""
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022
MAX_LINE: Final = 1 << 20
"""Maximum bytes of a message."""
MAX_CALLS: Final = 32
"""Maximum number of calls at a time."""
KINDS: Final[dict[str, type]] = {"object": dict, "array": list, "string": str, "integer": int}
"""Types of arguments."""
PROGRESS_INTERVAL: Final = 10.0
"""Seconds between two notifications of progress of a call that waits for people."""
STABLE: Final = 3600.0
"""Seconds for which a client may keep what does not change."""
CHANGES_INTERVAL: Final = 2.0
"""Seconds after which tools that come and go are listed again, for the clients that have them."""

OBJECT: Final = {"type": "object"}
Result = dict[str, Any]
Send = Callable[[Result], None]
"""Sends a message to the client."""
_log = logging.getLogger(__name__)


class ProtocolError(Exception):
    """An error reply: its code, message and data."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its function gets checked arguments, and returns its result as JSON and as text."""

    name: str
    description: str
    schema: dict[str, Any]
    call: Callable[[dict[str, Any]], Awaitable[tuple[dict[str, Any], str]]]
    read_only: bool = False
    title: str = ""
    """Its name for people."""
    is_checked: bool = True
    """Whether the server checks the arguments; otherwise the function does."""

    def listed(self) -> Result:
        """Return the entry of `tools/list`."""
        title = {"title": self.title} if self.title else {}
        return {
            "name": self.name,
            **title,
            "description": self.description,
            "inputSchema": self.schema,
            "annotations": {"readOnlyHint": self.read_only, "openWorldHint": True},
        }


MoreTools = Callable[[], Awaitable[Sequence[Tool]]]
"""Returns the tools that there are now besides the fixed ones."""


class ToolError(Exception):
    """An error of a tool that the model should read."""


class McpServer:
    """Answers the messages of a client; calls of tools run at the same time.

    Without a `handshake`, as for requests that each have a connection of their own, earlier
    versions need no `initialize`. `more` are tools that come and go: a client that has listed them,
    or listens, is notified of changes.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        instructions: str,
        send: Send,
        *,
        handshake: bool = True,
        more: MoreTools | None = None,
    ) -> None:
        self._fixed = {tool.name: tool for tool in tools}
        self._more = more
        self._instructions = instructions
        self._send = send
        self._initialized = not handshake
        self._calls: dict[str | int, asyncio.Task[None]] = {}
        self._listeners: set[str | int | None] = set()
        """Requests that listen for changes of the tools; after a handshake, None does."""
        self._listed: list[Result] = []
        self._watching: asyncio.Task[None] | None = None

    async def finish(self) -> None:
        """Wait for the calls that are under way."""
        await asyncio.gather(*self._calls.values(), return_exceptions=True)

    async def cancel(self) -> None:
        """Cancel the calls that are under way, which then have no reply."""
        tasks = [*self._calls.values(), *filter(None, [self._watching])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def receive(self, line: bytes) -> None:
        """Handle a line."""
        if not line.strip():
            return
        try:
            message = parse_message(line)
        except ProtocolError as error:
            self._reply_error(None, error)
        else:
            self.handle(message)

    def handle(self, message: dict[str, Any]) -> None:
        """Handle a message."""
        id: str | int | None = None
        try:
            method = message.get("method")
            params = message.get("params", {})
            id = _id(message)
            if not isinstance(method, str):
                if "result" not in message and "error" not in message:
                    raise ProtocolError(INVALID_REQUEST, "method is required")
                return  # a reply: this server sends no requests
            if not isinstance(params, dict):
                raise ProtocolError(INVALID_PARAMS, "params must be an object")
            if id is None:
                self._notified(method, params)
            else:
                self._requested(id, method, params)
        except ProtocolError as error:
            if id is not None or error.code in (PARSE_ERROR, INVALID_REQUEST):
                self._reply_error(id, error)

    def _requested(self, id: str | int, method: str, params: dict[str, Any]) -> None:
        meta = params.get("_meta", {})
        if not isinstance(meta, dict):
            raise ProtocolError(INVALID_PARAMS, "_meta must be an object")
        if method == "initialize":
            self._reply(id, self._initialize(params))
            return
        modern = VERSION_KEY in meta
        if modern:
            _check_meta(meta)
        elif method == "ping":
            self._reply(id, {})
            return
        elif method == "server/discover":
            raise ProtocolError(INVALID_PARAMS, f"_meta needs {VERSION_KEY}")
        elif not self._initialized:
            text = f"send initialize first, or _meta with {VERSION_KEY}"
            raise ProtocolError(INVALID_REQUEST, text)
        if method == "tools/call":
            self._begin(id, lambda: self._call(id, params, modern=modern))
        elif method == "tools/list":
            self._begin(id, lambda: self._list(id, modern=modern))
        elif method == "subscriptions/listen" and modern and self._more is not None:
            self._begin(id, lambda: self._listen(id, params))
        elif method == "server/discover" and modern:
            self._reply(id, self._discover())
        else:
            raise ProtocolError(UNKNOWN_METHOD, f"unknown method {method[:100]!r}")

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/cancelled":
            request = params.get("requestId")
            call = self._calls.get(request) if isinstance(request, str | int) else None
            if call is not None:
                call.cancel()

    def _initialize(self, params: dict[str, Any]) -> Result:
        requested = params.get("protocolVersion")
        if not isinstance(requested, str):
            raise ProtocolError(INVALID_PARAMS, "protocolVersion must be text")
        self._initialized = True
        return {
            "protocolVersion": requested if requested in LEGACY else LEGACY[0],
            "capabilities": self._capabilities(),
            "serverInfo": _server_info(),
            "instructions": self._instructions,
        }

    def _discover(self) -> Result:
        return _cacheable(
            {
                "supportedVersions": [MODERN],
                "capabilities": self._capabilities(),
                "instructions": self._instructions,
            }
        )

    def _capabilities(self) -> Result:
        return {"tools": {} if self._more is None else {"listChanged": True}}

    def _begin(self, id: str | int, work: Callable[[], Awaitable[None]]) -> None:
        """Begin to work on a request, whose reply comes later."""
        if id in self._calls:
            raise ProtocolError(INVALID_REQUEST, f"the request {id!r} is under way")
        if len(self._calls) >= MAX_CALLS:
            raise ProtocolError(INTERNAL_ERROR, f"{MAX_CALLS} calls are under way; try again later")

        async def run() -> None:
            try:
                await work()
            except ProtocolError as error:
                self._reply_error(id, error)

        task = asyncio.create_task(run())
        self._calls[id] = task
        task.add_done_callback(lambda _: self._calls.pop(id, None))

    async def _tools(self) -> dict[str, Tool]:
        more = () if self._more is None else await self._more()
        return self._fixed | {tool.name: tool for tool in more}

    async def _list(self, id: str | int, *, modern: bool) -> None:
        listed = [tool.listed() for tool in (await self._tools()).values()]
        result = {"tools": listed}
        seconds = STABLE if self._more is None else CHANGES_INTERVAL
        self._reply(id, _cacheable(result, seconds) if modern else result)
        if not modern:
            self._watch(None, listed)

    async def _listen(self, id: str | int, params: dict[str, Any]) -> None:
        """Notify the client of changes of the tools, until it cancels the request."""
        wanted = params.get("notifications")
        if not isinstance(wanted, dict):
            raise ProtocolError(INVALID_PARAMS, "notifications must be an object")
        honored = {"toolsListChanged": True} if wanted.get("toolsListChanged") is True else {}
        listed = [tool.listed() for tool in (await self._tools()).values()]
        meta = {"_meta": {SUBSCRIPTION_KEY: id}}
        acknowledged = "notifications/subscriptions/acknowledged"
        self._write({"method": acknowledged, "params": {"notifications": honored} | meta})
        if honored:
            self._watch(id, listed)
        try:
            await asyncio.Event().wait()
        finally:
            self._listeners.discard(id)

    def _watch(self, listener: str | int | None, listed: list[Result]) -> None:
        """Watch for changes of what the client has now."""
        self._listeners.add(listener)
        self._listed = listed
        if self._more is not None and self._watching is None:
            self._watching = asyncio.create_task(self._notice_changes())

    async def _notice_changes(self) -> None:
        while True:
            await asyncio.sleep(CHANGES_INTERVAL)
            listed = [tool.listed() for tool in (await self._tools()).values()]
            if listed == self._listed:
                continue
            self._listed = listed
            for id in self._listeners:
                params = {} if id is None else {"params": {"_meta": {SUBSCRIPTION_KEY: id}}}
                self._write({"method": "notifications/tools/list_changed"} | params)

    async def _call(self, id: str | int, params: dict[str, Any], *, modern: bool) -> None:
        """Call a tool and reply; a cancelled call has no reply."""
        name = str(params.get("name"))
        arguments = params.get("arguments", {})
        tools = self._fixed if name in self._fixed else await self._tools()
        if (tool := tools.get(name)) is None:
            names = ", ".join(tools)
            raise ProtocolError(INVALID_PARAMS, f"unknown tool {name[:100]!r}; known: {names}")
        token = params.get("_meta", {}).get("progressToken")
        progress = asyncio.create_task(self._report_progress(token))
        try:
            problem = check_arguments(tool.schema if tool.is_checked else OBJECT, arguments)
            if problem is not None:
                raise ToolError(problem)
            data, text = await tool.call(arguments)
            result: Result = {
                "content": [{"type": "text", "text": text}],
                "structuredContent": data,
                "isError": False,
            }
        except ToolError as error:
            result = {"content": [{"type": "text", "text": str(error)}], "isError": True}
        except Exception as error:
            _log.warning("mcp: %s: %s: %s", tool.name, type(error).__name__, error)
            self._reply_error(id, ProtocolError(INTERNAL_ERROR, f"{tool.name} failed"))
            return
        finally:
            progress.cancel()
        self._reply(id, _complete(result) if modern else result)

    async def _report_progress(self, token: Any) -> None:
        """Notify the client periodically, so that it does not give up."""
        if not isinstance(token, str | int):
            return
        count = 0
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL)
            count += 1
            params = {"progressToken": token, "progress": count, "message": "waiting for people"}
            self._write({"method": "notifications/progress", "params": params})

    def _reply(self, id: str | int, result: Result) -> None:
        self._write({"id": id, "result": result})

    def _reply_error(self, id: str | int | None, error: ProtocolError) -> None:
        body: Result = {"code": error.code, "message": str(error)}
        if error.data is not None:
            body["data"] = error.data
        self._write({"id": id, "error": body})

    def _write(self, message: Result) -> None:
        self._send({"jsonrpc": "2.0"} | message)


def check_arguments(schema: dict[str, Any], value: Any, *path: str) -> str | None:
    """Return the problem of a value on a line; None if it matches.

    Knows only the keywords of the tools of this server.
    """
    refused = next(_refused(schema, value), None)
    if refused is not None:
        name = ".".join(path) or "arguments"
        return f"{name}: {keyword_problem(refused, schema[refused], value)}"
    match value:
        case list():
            parts = [(str(index), schema["items"], item) for index, item in enumerate(value)]
        case dict() if "properties" in schema:
            properties = schema["properties"]
            for key in schema.get("required", ()):
                if key not in value:
                    return f"{key}: {IS_REQUIRED}"
            for key in value:
                if key not in properties:
                    return f"{key[:100]}: {unknown_key(list(properties))}"
            parts = [(key, properties[key], item) for key, item in value.items()]
        case _:
            parts = []
    problems = (check_arguments(inner, item, *path, name) for name, inner, item in parts)
    return next(filter(None, problems), None)


def _refused(schema: dict[str, Any], value: Any) -> Iterator[str]:
    """Yield the keywords that refuse a value, without its parts."""
    if isinstance(value, bool) or not isinstance(value, KINDS[schema["type"]]):
        yield "type"
    elif isinstance(value, str):
        if value not in schema.get("enum", [value]):
            yield "enum"
        if len(value) < schema.get("minLength", 0):
            yield "minLength"
        if len(value) > schema["maxLength"]:
            yield "maxLength"
    elif isinstance(value, int):
        if value < schema["minimum"]:
            yield "minimum"
        if value > schema["maximum"]:
            yield "maximum"
    elif isinstance(value, list) and len(value) > schema["maxItems"]:
        yield "maxItems"


def parse_message(line: bytes) -> dict[str, Any]:
    """Return a message; raises ProtocolError."""
    if line == TOO_LONG:
        raise ProtocolError(PARSE_ERROR, f"a message has at most {MAX_LINE:,} bytes")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "invalid JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, "a message is a JSON-RPC 2.0 object")
    return message


def _id(message: dict[str, Any]) -> str | int | None:
    """Return the id of a request; None for a notification."""
    if "id" not in message:
        return None
    id = message["id"]
    if isinstance(id, bool) or not isinstance(id, str | int) or len(str(id)) > 200:
        raise ProtocolError(INVALID_REQUEST, "id must be text or an integer")
    return id


def _check_meta(meta: dict[str, Any]) -> None:
    if meta[VERSION_KEY] != MODERN:
        requested = str(meta[VERSION_KEY])[:100]
        data = {"supported": [MODERN, *LEGACY], "requested": requested}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise ProtocolError(INVALID_PARAMS, f"_meta needs {CAPABILITIES_KEY}")


def _server_info() -> Result:
    return {"name": "draftsman", "version": installed()}


def _complete(result: Result) -> Result:
    return {"resultType": "complete", "_meta": {SERVER_KEY: _server_info()}} | result


def _cacheable(result: Result, seconds: float = STABLE) -> Result:
    return _complete(result) | {"ttlMs": int(seconds * 1000), "cacheScope": "private"}
