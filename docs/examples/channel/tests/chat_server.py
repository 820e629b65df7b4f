"""A fake of the chat server, and a room of it for the contracts of channels."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from urllib.parse import parse_qs, urlsplit

from draftsman.runtime import Runtime
from draftsman_httpchat.bot import Bot, HttpChannel
from draftsman_testing.channel.place import RETRY_AFTER, Fault, Post
from draftsman_testing.outbox import running
from draftsman_testing.http_server import Reply, Request, serving


class ChatServer:
    """The messages and files by their ids, and the texts that are not acknowledged."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self.files: dict[str, bytes] = {}
        self.texts: dict[str, dict[str, str]] = {}
        self.calls = 0
        self.next: Fault | None = None
        """The fault of the next message or file."""
        self.revoked = False
        self.gone: set[str] = set()
        """Ids and rooms that were deleted."""
        self._ids = count(1)

    def write(self, author: str, text: str, id: str = "") -> str:
        """Let a person write in the room."""
        id = id or str(next(self._ids))
        self.texts[id] = {"id": id, "room": "ops", "author": author, "text": text}
        return id

    async def answer(self, request: Request) -> Reply | None:
        """Serve a call."""
        url = urlsplit(request.path)
        kind, id = (url.path.split("/") + [""])[1:3]
        match request.method, kind:
            case "GET", "texts":
                return Reply(body=json.dumps({"texts": [*self.texts.values()]}).encode())
            case "DELETE", "texts":
                self.texts.pop(id, None)
                return Reply()
        return self._put(kind, id, parse_qs(url.query), request.body)

    def _put(self, kind: str, id: str, query: dict[str, list[str]], body: bytes) -> Reply | None:
        self.calls += 1
        is_file = kind == "files"
        fault = None
        if self.next is not Fault.FILE_REFUSED or is_file:
            fault, self.next = self.next, None
        if self.revoked:
            return Reply(401)
        if fault is Fault.RATE_LIMIT:
            return Reply(429, headers=(("retry-after", f"{RETRY_AFTER:.0f}"),))
        if fault in (Fault.REFUSED, Fault.FILE_REFUSED):
            return Reply(400)
        room = query["room"][0] if is_file else json.loads(body)["room"]
        if {id, room} & self.gone:
            return Reply(404)
        if is_file:
            self.files[id] = body
        else:
            self.messages[id] = json.loads(body)["text"]
        return None if fault is Fault.LOST_REPLY else Reply()


class Room:
    """The room `ops`."""

    target = "httpchat:ops"
    targets = (target,)
    missing = "none"
    finds = False
    faults = frozenset(Fault)
    invites = "write here"
    takes_requests = False
    anyone_requests = False
    reports_changes = False
    accounts = {"anna": "anna", "ben": "ben", "carol": "carol"}

    def __init__(self, server: ChatServer, url: str, stack: AsyncExitStack) -> None:
        self._server = server
        self._url = url
        self._stack = stack
        self.channel = HttpChannel(url)

    def posts(self) -> list[Post]:
        return [Post(id, text) for id, text in self._server.messages.items()]

    def files(self) -> list[bytes]:
        return [*self._server.files.values()]

    def active_markup(self) -> list[str]:
        """Return nothing: it is plain text."""
        return []

    def calls(self) -> int:
        return self._server.calls

    async def fail(self, fault: Fault) -> None:
        match fault:
            case Fault.UNREACHABLE:
                await self._stack.aclose()
            case Fault.REVOKED:
                self._server.revoked = True
            case Fault.TARGET_GONE:
                self._server.gone.add("ops")
            case Fault.STATUS_GONE:
                first = next(iter(self._server.messages))
                del self._server.messages[first]
                self._server.gone.add(first)
            case _:
                self._server.next = fault

    @asynccontextmanager
    async def running(self, rt: Runtime) -> AsyncIterator[None]:
        async with running(Bot(rt, self._url)):
            yield

    async def request(self, person: str, text: str) -> None:
        """Do nothing: a room takes no requests."""

    async def say(self, person: str, text: str) -> str:
        return self._server.write(person, text)

    async def edit(self, key: str, text: str) -> None:
        """Do nothing: the server does not tell of edits."""

    async def delete(self, key: str) -> None:
        """Do nothing: the server does not tell of deletions."""

    async def repeat(self, key: str) -> None:
        self._server.write("carol", "approve", key)

    def told(self) -> list[str]:
        return [post.text for post in self.posts()]


@asynccontextmanager
async def room() -> AsyncIterator[Room]:
    """Serve a chat server with a room."""
    server = ChatServer()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(server.answer))
        yield Room(server, url, stack)
