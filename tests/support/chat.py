"""A chat with channels and threads over real HTTP, a proxy that fails, and a channel that posts."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    COPY_GONE,
    File,
    Message,
    RateLimit,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.deliveries.documents.plain import render_plain
from draftsman.errors import Failure
from draftsman_testing.http_server import Reply, Request


@dataclass(slots=True)
class Post:
    """A visible message."""

    ref: str
    marker: str
    text: str
    edited_by: list[str] = field(default_factory=list)


class Chat:
    """The service with its posts by thread, in order."""

    def __init__(self) -> None:
        self.threads: defaultdict[str, list[Post]] = defaultdict(list)
        self.posts: dict[str, Post] = {}
        self.on_change: Callable[[int], None] = lambda _: None
        self.open_now: Counter[str] = Counter()

    async def answer(self, request: Request) -> Reply:
        """Serve a call."""
        body: dict[str, Any] = json.loads(request.body)
        match request.path:
            case "/post":
                ref = f"post-{len(self.posts) + 1}"
                self.posts[ref] = Post(ref, body["marker"], body["text"])
                self.threads[body["thread"]].append(self.posts[ref])
                self.on_change(len(self.posts))
                return _json({"ref": ref})
            case "/edit":
                if (post := self.posts.get(body["ref"])) is None:
                    return Reply(404, b'{"error": "message_not_found"}')
                post.text = body["text"]
                post.edited_by.append(body["marker"])
                return _json({"ref": post.ref})
            case _:
                posts = self.threads[body["thread"]]
                refs = [post.ref for post in posts if post.marker == body["marker"]]
                return _json({"ref": refs[0] if refs else None})

    def seen(self) -> Counter[str]:
        """Return how often each marker can be seen."""
        return Counter(post.marker for post in self.posts.values())


FAULT_RATES: Final = {
    "pass": 60, "refuse": 8, "fail before": 6, "fail after": 8, "drop before": 6, "drop after": 12,
}  # fmt: skip


class Proxy:
    """Reverse proxy with random refusals, failures and disconnects, before or after the call."""

    def __init__(self, upstream: str, seed: int, wait: float = 0.02) -> None:
        self.fault_counts: Counter[str] = Counter()
        limits = httpx.Limits(max_connections=None)
        self._client = httpx.AsyncClient(base_url=upstream, timeout=30, limits=limits)
        self._random = random.Random(seed)
        self._wait = wait

    async def answer(self, request: Request) -> Reply | None:
        """Forward a call, with a random fault."""
        fault = self._random.choices(list(FAULT_RATES), list(FAULT_RATES.values()))[0]
        self.fault_counts[fault] += 1
        if fault == "refuse":
            return Reply(429, headers=(("retry-after", str(self._wait)),))
        if fault == "fail before":
            return Reply(503)
        if fault == "drop before":
            return None
        response = await self._client.post(request.path, content=request.body)
        if fault == "drop after":
            return None
        return (
            Reply(502) if fault == "fail after" else Reply(response.status_code, response.content)
        )

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()


class ChatChannel(Channel):
    """Channel adapter of the chat; a call without a reply is unconfirmed."""

    name = "slack"

    def __init__(self, url: str, timeout: float = 5.0, rate: float | None = None) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=timeout)
        self._rate = rate

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Take from the account, if it has a limit."""
        return () if self._rate is None else (RateLimit("slack#post", 1 / self._rate, 2),)

    async def send(self, message: Message) -> SendResult:
        """Post it."""
        return _receipt(await self._call("/post", message))

    async def edit(self, message: Message) -> SendResult:
        """Rewrite it."""
        return _receipt(await self._call("/edit", message, ref=message.edits))

    async def upload(self, message: Message, file: File) -> SendResult:
        """Post the file's name and size."""
        return _receipt(await self._call("/post", message, text=f"{file.name} {len(file.data)}"))

    async def find(self, message: Message) -> SendResult | None:
        """Look through the thread; an edit is repeated, which does no harm."""
        if message.edits is not None:
            return None
        result = await self._call("/find", message)
        if not isinstance(result, dict):
            return result
        return Receipt(result["ref"]) if result["ref"] else None

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()

    async def _call(
        self, path: str, message: Message, **more: Any
    ) -> dict[str, Any] | Unconfirmed | Failure:
        thread = f"{message.target} {message.thread or message.subject.name}"
        body = {"thread": thread, "marker": message.marker, "text": render_plain(message)} | more
        try:
            reply = await self._client.post(path, content=json.dumps(body))
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return Failure(f"cannot connect: {error}", origin="http", code="connect")
        except httpx.HTTPError as error:
            return Unconfirmed(f"{type(error).__name__}: {error}")
        if reply.status_code >= 500:
            return Unconfirmed(f"HTTP {reply.status_code}")
        if reply.status_code == 200:
            content: dict[str, Any] = reply.json()
            return content
        wait = reply.headers.get("retry-after")
        return Failure(
            f"HTTP {reply.status_code}",
            origin="http",
            code=COPY_GONE if reply.status_code == 404 else None,
            http_status=reply.status_code,
            retry_after=None if wait is None else float(wait),
        )


def _receipt(result: dict[str, Any] | Unconfirmed | Failure) -> SendResult:
    return Receipt(result["ref"]) if isinstance(result, dict) else result


def _json(value: Any) -> Reply:
    return Reply(200, json.dumps(value).encode())
