"""The delivery channel `slack`: idempotent posts, edits and uploads, found by metadata."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from slack_sdk.web.async_client import AsyncWebClient

from draftsman.domain.job import Source
from draftsman.domain.messages.attachment import is_long
from draftsman.domain.messages.delivery import (
    COPY_GONE,
    TARGET_GONE,
    ChannelName,
    DeliveryKind,
    File,
    Message,
    RateLimit,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.domain.messages.plain_text import render_plain
from draftsman.domain.question import QuestionKind
from draftsman.errors import Failure
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.mrkdwn import escape_truncated
from draftsman_bots.slack.outbound.message_ref import (
    MessageRef,
    account_user_id,
    file_title,
    is_direct,
    metadata,
    resolve_target,
    thread_of,
)
from draftsman_bots.slack.outbound.message_search import posted_ref, search
from draftsman_bots.slack.outbound.render import Rendered, render, render_plain_text
from draftsman_bots.slack.transport.api_errors import ACCOUNT, CONTENT, THREAD
from draftsman_bots.slack.transport.installation import Installation
from draftsman_bots.slack.transport.web_api import Data, WebApi, client
from draftsman_bots.text import truncate

__all__ = ["SlackChannel", "client"]

POSTS: Final = (1.0, 5)
"""Seconds per post to a channel, and the burst: Slack allows about one a second."""
EDITS: Final = (1.2, 50)
"""The same of chat.update, tier 3: 50 and more a minute in the workspace."""
OTHERS: Final = (0.6, 100)
"""The same of tier 4: 100 and more a minute."""
_log = logging.getLogger(__name__)


class SlackChannel:
    """One workspace. A call takes at most `timeout` seconds; an upload has three calls."""

    name = ChannelName.SLACK

    def __init__(
        self,
        web: AsyncWebClient,
        *,
        timeout: float,
        account: Installation | None = None,
        identity: Identity | None = None,
    ) -> None:
        self._caller = WebApi(web, timeout, account, identity)
        self._web = web
        self._timeout = timeout

    @property
    def trouble(self) -> str | None:
        """Why Slack rejects every call of the bot; None while it accepts them."""
        return self._caller.trouble

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return the rate limit of the method; posts have one for each channel."""
        every, burst = OTHERS
        if message.edits is not None:
            every, burst = EDITS
        elif message.kind is not DeliveryKind.FILE and not _private(message):
            every, burst = POSTS
        return (RateLimit(_bucket(message), every, burst),)

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket that a failure blocks: the method's, or that of the account."""
        whole = failure.code in ACCOUNT - {"missing_scope"}
        return str(self.name) if whole else _bucket(message)

    async def send(self, message: Message) -> SendResult:
        """Post it in its thread, or to the only person it is for."""
        message = resolve_target(message)
        if (person := _private(message)) is not None:
            return await self._whisper(message, person)
        ended = await self._post(message, self._render(message))
        if isinstance(ended, Failure) and ended.code in CONTENT:
            ended = await self._plainly(message, ended)
        if isinstance(ended, Receipt):
            return replace(ended, absent=await self._absent(message))
        return ended

    async def find(self, message: Message) -> SendResult | None:
        """Search for it; edits and ephemeral messages can be repeated without a search."""
        message = resolve_target(message)
        rewrites = message.edits is not None or message.kind is DeliveryKind.QUESTION_CLOSED
        if rewrites or _private(message) is not None:
            return None
        try:
            async with asyncio.timeout(self._timeout):
                found = await search(self._caller, message)
        except TimeoutError:
            return Unconfirmed("the search for the message timed out")
        if isinstance(found, MessageRef):
            return Receipt(found.text, await self._absent(message))
        return found

    async def edit(self, message: Message) -> SendResult:
        """Update it, including its controls."""
        ref = MessageRef.parse(message.edits)
        if ref is None:
            return Failure(f"no_such_ref ({message.edits})", origin="slack", code=COPY_GONE)
        ended = await self._update(ref, self._render(message))
        if isinstance(ended, Failure) and ended.code in CONTENT:
            _log.warning("D-%s: retried as plain text: %s", message.subject.number, ended)
            ended = await self._update(ref, self._plain(message))
        return ended

    async def upload(self, message: Message, file: File) -> SendResult:
        """Upload a file; it is visible after the last of the calls."""
        message = resolve_target(message)
        data = file.data or b"\n"  # Slack takes no empty file
        name = truncate(file.name, 200) or "file"
        asked = await self._caller.read(
            "files.getUploadURLExternal",
            self._web.files_getUploadURLExternal(filename=name, length=len(data)),
        )
        if isinstance(asked, Failure):
            return asked
        url, made = asked.get("upload_url"), asked.get("file_id")
        if not isinstance(url, str) or not isinstance(made, str):
            return Failure("no_upload_url (files.getUploadURLExternal)", origin="slack")
        if (failure := await self._caller.put(url, data)) is not None:
            return failure
        return await self._share(message, made, name)

    def _render(self, message: Message) -> Rendered:
        return render(message, replies=self._reads_replies(message))

    def _plain(self, message: Message) -> Rendered:
        return Rendered(render_plain_text(message, replies=self._reads_replies(message)), [])

    def _reads_replies(self, message: Message) -> bool:
        """Return whether replies arrive from there without a mention."""
        return is_direct(message.target) or self._caller.identity.reads_replies

    async def close(self) -> None:
        """Do nothing: no connection is held open."""

    async def _share(self, message: Message, made: str, name: str) -> SendResult:
        channel = await self._conversation(message.target)
        if not isinstance(channel, str):
            return channel
        shared = await self._caller.write(
            "files.completeUploadExternal",
            self._web.files_completeUploadExternal(
                files=[{"id": made, "title": file_title(message, name)}],
                channel_id=channel,
                thread_ts=thread_of(message),
                initial_comment=escape_truncated(f"{message.subject.name}: {name}", 500),
            ),
        )
        if isinstance(shared, Failure | Unconfirmed):
            return shared
        return Receipt(f"{channel}/{made}")

    async def _conversation(self, target: str) -> str | Failure:
        """Return the id of the channel, for a person that of the conversation."""
        if not is_direct(target) or target.startswith("D"):
            return target
        call = self._web.conversations_open(users=target)
        found = await self._caller.read("conversations.open", call)
        if isinstance(found, Failure):
            return found
        channel = found.get("channel")
        return str(channel.get("id")) if isinstance(channel, dict) else target

    async def _post(
        self, message: Message, said: Rendered, carried: dict[str, Any] | None = None
    ) -> SendResult:
        thread = thread_of(message)
        args: dict[str, Any] = {
            "channel": message.target,
            "text": said.text,
            "blocks": said.blocks or None,
            "metadata": metadata(message) if carried is None else carried or None,
            "unfurl_links": False,
            "unfurl_media": False,
        }
        call = self._web.chat_postMessage(**args, thread_ts=thread)
        done = await self._caller.write("chat.postMessage", call)
        if thread and isinstance(done, Failure) and done.code in THREAD:
            done = await self._caller.write("chat.postMessage", self._web.chat_postMessage(**args))
        return _receipt(message, done)

    async def _plainly(self, message: Message, refusal: Failure) -> SendResult:
        """Send it again as short plain text, with the full text as a file."""
        _log.warning("D-%s: retried as plain text: %s", message.subject.number, refusal)
        carried: dict[str, Any] | None = {} if "metadata" in (refusal.code or "") else None
        ended = await self._post(message, self._plain(message), carried)
        whole = render_plain(message)
        if isinstance(ended, Receipt) and is_long(whole):
            file = File(f"{message.subject.name}.txt", whole.encode("utf-8", "replace"))
            if not isinstance(failed := await self.upload(message, file), Receipt):
                _log.warning(
                    "D-%s: the full text was not uploaded: %s", message.subject.number, failed
                )
        return ended

    async def _update(self, ref: MessageRef, said: Rendered) -> SendResult:
        done = await self._caller.write(
            "chat.update",
            self._web.chat_update(
                channel=ref.channel, ts=ref.ts, text=said.text, blocks=said.blocks
            ),
        )
        return done if isinstance(done, Failure | Unconfirmed) else Receipt(ref.text)

    async def _whisper(self, message: Message, person: str) -> SendResult:
        """Send it to one person: as an ephemeral message, or directly if they are not there."""
        said = self._render(message)
        args: dict[str, Any] = {"text": said.text, "blocks": said.blocks}
        if not is_direct(message.target):
            call = self._web.chat_postEphemeral(
                channel=message.target, user=person, thread_ts=thread_of(message), **args
            )
            done = await self._caller.write("chat.postEphemeral", call)
            away = isinstance(done, Failure) and (done.code in {"user_not_in_channel", TARGET_GONE})
            if not away:
                if isinstance(done, Failure | Unconfirmed):
                    return done
                return Receipt(f"{message.target}/{done.get('message_ts')}")
        call = self._web.chat_postMessage(channel=person, **args)
        return _receipt(message, await self._caller.write("chat.postMessage", call))

    async def _absent(self, message: Message) -> tuple[str, ...]:
        """Return the ids of a question's approvers who are not in the channel."""
        question = message.question
        gate = question is not None and question.kind is QuestionKind.APPROVAL
        asking = message.kind in (DeliveryKind.QUESTION, DeliveryKind.REMINDER)
        wanted = {
            account_user_id(own)
            for person in message.asked
            if (own := person.ids.get(Source.SLACK))
        }
        if not (gate and asking and wanted) or is_direct(message.target):
            return ()
        async for page in self._caller.pages("conversations.members", channel=message.target):
            if isinstance(page, Failure):
                _log.warning("cannot list the members of %s: %s", message.target, page)
                return ()
            found = page.get("members")
            wanted -= {str(one) for one in found} if isinstance(found, list) else set()
        return tuple(sorted(wanted))


def _bucket(message: Message) -> str:
    if message.edits is not None:
        return "slack#chat.update"
    if message.kind is DeliveryKind.FILE:
        return "slack#files"
    method = "chat.postEphemeral" if _private(message) else "chat.postMessage"
    return f"slack#{method}:{message.target}"


def _private(message: Message) -> str | None:
    """Return the only person that the message is for."""
    to = (message.payload or {}).get("to") if message.kind is DeliveryKind.NOTICE else None
    return to if isinstance(to, str) and to else None


def _receipt(message: Message, done: Data | Failure | Unconfirmed) -> SendResult:
    if isinstance(done, Failure | Unconfirmed):
        return done
    channel, ts, posted = done.get("channel"), done.get("ts"), done.get("message")
    if not isinstance(channel, str) or not isinstance(ts, str):
        return Unconfirmed("chat.postMessage: a reply without channel and ts")
    posted = posted if isinstance(posted, dict) else {}
    return Receipt(posted_ref(message, channel, {**posted, "ts": ts}).text)
