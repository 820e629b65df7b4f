"""The bot of the channel: it sends messages to rooms, and takes what people write there.

PUT /messages/ID {"room": …, "text": …}     posts a message, or replaces it
PUT /files/ID?room=…&name=…                 posts a file
GET /texts                                  {"texts": [{"id", "room", "author", "text"}, …]}
DELETE /texts/ID                            acknowledges a text, which is repeated until then
"""

from __future__ import annotations

import logging
from typing import Any

import httpx
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    COPY_GONE,
    TARGET_GONE,
    File,
    Message,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.deliveries.documents.document import Step
from draftsman.deliveries.documents.plain import render_plain, to_answer
from draftsman.deliveries.target import Target
from draftsman.errors import Failure
from draftsman.people.actor import Actor
from draftsman.processes.components import ComponentGroup, Routine
from draftsman.processes.lifecycle import OutageGuard, StopSignal
from draftsman.runtime import Runtime
from draftsman_bots.conversation.commands import Surface
from draftsman_bots.conversation.parser import REPLY, parse
from draftsman_bots.conversation.replies import KnownAuthor, Wording, respond_to_text
from draftsman_bots.conversation.resolution import Talk

from draftsman_httpchat.settings import HttpChatSettings

NAME = "httpchat"
MAX_TEXT = 4000
_log = logging.getLogger(__name__)


def how(step: Step) -> str:
    """Return how people take a step in a room."""
    return to_answer(step, "write here:") if step.is_answer else step.command


class HttpChannel(Channel):
    """Messages in rooms. Their ids are draftsman's, so that a repeated request changes nothing."""

    name = NAME

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=timeout)

    async def send(self, message: Message) -> SendResult:
        return await self._post(message, message.marker, TARGET_GONE)

    async def edit(self, message: Message) -> SendResult:
        return await self._post(message, message.edits or "", COPY_GONE)

    async def upload(self, message: Message, file: File) -> SendResult:
        query = {"room": message.target, "name": file.name}
        path = f"/files/{message.marker}"
        return await self._put(path, message.marker, TARGET_GONE, params=query, content=file.data)

    async def close(self) -> None:
        await self._client.aclose()

    async def _post(self, message: Message, ref: str, gone: str) -> SendResult:
        body = {"room": message.target, "text": render_plain(message, how, MAX_TEXT)}
        return await self._put(f"/messages/{ref}", ref, gone, json=body)

    async def _put(self, path: str, ref: str, gone: str, **body: Any) -> SendResult:
        try:
            reply = await self._client.put(path, **body)
        except httpx.ConnectError as error:
            return Failure(f"cannot connect: {error}", origin="http", code="connect")
        except httpx.HTTPError as error:
            return Unconfirmed(f"{type(error).__name__}: {error}")
        if reply.is_success:
            return Receipt(ref)
        is_account = reply.status_code == 401
        wait = reply.headers.get("retry-after", "60" if is_account else "")
        return Failure(
            f"HTTP {reply.status_code}",
            origin="http",
            code=gone if reply.status_code == 404 else None,
            http_status=reply.status_code,
            retry_after=float(wait) if wait else None,
            declared="TRANSIENT_INFRA" if is_account else None,
        )


class Bot(ComponentGroup):
    """The bot of a chat server."""

    def __init__(self, rt: Runtime, url: str) -> None:
        self._rt = rt
        self._client = httpx.AsyncClient(base_url=url)
        deliveries = rt.delivery_process([HttpChannel(url)])
        super().__init__([deliveries, Routine(self._read)])

    async def run(self) -> None:
        """Work until stopped."""
        async with self._client:
            await super().run()

    async def _read(self, stop: StopSignal) -> None:
        await OutageGuard("the reader of the chat server").repeat(self._take_texts, 0.2, stop)

    async def _take_texts(self) -> None:
        try:
            for text in (await self._client.get("/texts")).raise_for_status().json()["texts"]:
                await self._take(text)
                await self._client.delete(f"/texts/{text['id']}")
        except httpx.HTTPError as error:
            _log.warning("the chat server cannot be read: %s", error)

    async def _take(self, text: dict[str, str]) -> None:
        """Answer a question or control a job, in the name of the author; reply in the room."""
        author = await self._rt.people.actor(Actor(NAME, text["author"], text["author"]))
        topics = await self._rt.threads.place(NAME, text["room"])
        asked = {(topic.job, topic.question) for topic in topics}
        key = f"{NAME}:{text['id']}"
        reply = await respond_to_text(
            KnownAuthor(self._rt, author, Wording(Surface.REPLY)),
            parse(text["text"], REPLY, name="draftsman"),
            key,
            [topic.job for topic in topics],
            lambda item: (item.job, item.ordinal) in asked,
            talk=Talk.PERMITTED,
        )
        if reply is not None and reply.text and reply.job is not None:
            words = reply.text if isinstance(reply.text, tuple) else (reply.text.text(),)
            await self._rt.outbox.notice(reply.job, key, words, at=Target(NAME, text["room"]))


def create(rt: Runtime) -> Bot:
    """Return the bot of the server in `[httpchat]`."""
    return Bot(rt, HttpChatSettings.required(rt.settings).url)
