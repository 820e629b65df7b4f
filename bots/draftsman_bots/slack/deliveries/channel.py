"""The delivery channel `slack`: idempotent posts, edits and uploads, found by metadata."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from slack_sdk.web.async_client import AsyncWebClient

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    COPY_GONE,
    TARGET_GONE,
    DeliveryKind,
    File,
    Message,
    RateLimit,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.deliveries.documents.document import LENGTH
from draftsman.deliveries.documents.plain import render_plain
from draftsman.errors import Failure
from draftsman.questions.question import QuestionKind
from draftsman_bots.json_fields import mapping
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.message_ref import (
    MessageRef,
    file_title,
    is_direct,
    metadata,
    posted_ref,
    resolve_target,
    search,
    thread_of,
)
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.slack.deliveries.render import (
    AnswerReactions,
    Rendered,
    render,
    render_plain_text,
)
from draftsman_bots.slack.identity import Identity
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


class SlackChannel(Channel):
    """One workspace. A call takes at most `timeout` seconds; an upload has three calls."""

    name = "slack"

    def __init__(
        self,
        web: AsyncWebClient,
        *,
        timeout: float,
        account: Installation | None = None,
        identity: Identity | None = None,
        reaction_approvals: bool = False,
    ) -> None:
        """`reaction_approvals`: reactions decide approvals, so that messages name them."""
        self._web_api = WebApi(web, timeout, account, identity)
        self._web = web
        self._timeout = timeout
        self._reaction_approvals = reaction_approvals

    @property
    def trouble(self) -> str | None:
        """Why Slack rejects every call of the bot; None while it accepts them."""
        return self._web_api.trouble

    def served(self) -> Sequence[str] | None:
        """Return None: all targets."""
        return None

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return the rate limit of the method; posts have a limit for each channel."""
        interval, burst = OTHERS
        if message.edits is not None:
            interval, burst = EDITS
        elif message.kind is not DeliveryKind.FILE and not _only_reader(message):
            interval, burst = POSTS
        return (RateLimit(_bucket(message), interval, burst),)

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket that a failure blocks: the method's, or that of the account."""
        blocks_account = failure.code in ACCOUNT - {"missing_scope"}
        return str(self.name) if blocks_account else _bucket(message)

    async def send(self, message: Message) -> SendResult:
        """Post it in its thread, or to the only person it is for."""
        message = resolve_target(message)
        if (person := _only_reader(message)) is not None:
            return await self._send_privately(message, person)
        result = await self._post(message, self._render(message))
        if isinstance(result, Failure) and result.code in CONTENT:
            result = await self._send_plain_text(message, result)
        if isinstance(result, Receipt):
            return replace(result, absent=await self._absent_approvers(message))
        return result

    async def find(self, message: Message) -> SendResult | None:
        """Search for it; edits and ephemeral messages can be repeated without a search."""
        message = resolve_target(message)
        is_edit = message.edits is not None or message.kind is DeliveryKind.QUESTION_CLOSED
        if is_edit or _only_reader(message) is not None:
            return None
        try:
            async with asyncio.timeout(self._timeout):
                result = await search(self._web_api, message)
        except TimeoutError:
            return Unconfirmed("the search for the message timed out")
        if isinstance(result, MessageRef):
            return Receipt(result.text, await self._absent_approvers(message))
        return result

    async def edit(self, message: Message) -> SendResult:
        """Update it, including its controls."""
        ref = MessageRef.parse(message.edits)
        if ref is None:
            return Failure(f"no_such_ref ({message.edits})", origin="slack", code=COPY_GONE)
        result = await self._update(ref, self._render(message))
        if isinstance(result, Failure) and result.code in CONTENT:
            _log.warning("D-%s: retried as plain text: %s", message.subject.number, result)
            result = await self._update(ref, self._render_plain(message))
        return result

    async def upload(self, message: Message, file: File) -> SendResult:
        """Upload a file; it is visible after the last of the calls."""
        message = resolve_target(message)
        data = file.data or b"\n"  # Slack rejects empty files
        name = truncate(file.name, 200) or "file"
        response = await self._web_api.read(
            "files.getUploadURLExternal",
            self._web.files_getUploadURLExternal(filename=name, length=len(data)),
        )
        if isinstance(response, Failure):
            return response
        url = response.get("upload_url")
        file_id = response.get("file_id")
        if not isinstance(url, str) or not isinstance(file_id, str):
            return Failure("no_upload_url (files.getUploadURLExternal)", origin="slack")
        if (failure := await self._web_api.put(url, data)) is not None:
            return failure
        return await self._share(message, file_id, name)

    def _render(self, message: Message) -> Rendered:
        replies = self._reads_replies(message)
        return render(message, replies=replies, reactions=self._answer_reactions())

    def _render_plain(self, message: Message) -> Rendered:
        return Rendered(render_plain_text(message, replies=self._reads_replies(message)), [])

    def _reads_replies(self, message: Message) -> bool:
        """Return whether replies arrive from there without a mention."""
        return is_direct(message.target) or self._web_api.identity.reads_replies

    def _answer_reactions(self) -> AnswerReactions:
        if not self._web_api.identity.reads_reactions:
            return AnswerReactions.NONE
        return AnswerReactions.APPROVALS if self._reaction_approvals else AnswerReactions.CHOICES

    async def _share(self, message: Message, file_id: str, name: str) -> SendResult:
        channel = await self._conversation(message.target)
        if not isinstance(channel, str):
            return channel
        response = await self._web_api.write(
            "files.completeUploadExternal",
            self._web.files_completeUploadExternal(
                files=[{"id": file_id, "title": file_title(message, name)}],
                channel_id=channel,
                thread_ts=thread_of(message),
                initial_comment=escape_truncated(f"{message.subject.name}: {name}", 500),
            ),
        )
        if isinstance(response, Failure | Unconfirmed):
            return response
        return Receipt(f"{channel}/{file_id}")

    async def _conversation(self, target: str) -> str | Failure:
        """Return the id of the channel, for a person that of the conversation."""
        if not is_direct(target) or target.startswith("D"):
            return target
        call = self._web.conversations_open(users=target)
        response = await self._web_api.read("conversations.open", call)
        if isinstance(response, Failure):
            return response
        channel = response.get("channel")
        return str(channel.get("id")) if isinstance(channel, dict) else target

    async def _post(
        self, message: Message, rendered: Rendered, event_metadata: dict[str, Any] | None = None
    ) -> SendResult:
        thread = thread_of(message)
        args: dict[str, Any] = {
            "channel": message.target,
            "text": rendered.text,
            "blocks": rendered.blocks or None,
            "metadata": metadata(message) if event_metadata is None else event_metadata or None,
            "unfurl_links": False,
            "unfurl_media": False,
        }
        call = self._web.chat_postMessage(**args, thread_ts=thread)
        response = await self._web_api.write("chat.postMessage", call)
        if thread and isinstance(response, Failure) and response.code in THREAD:
            response = await self._web_api.write(
                "chat.postMessage", self._web.chat_postMessage(**args)
            )
        return _receipt(message, response)

    async def _send_plain_text(self, message: Message, refusal: Failure) -> SendResult:
        """Send it again as short plain text, with the full text as a file."""
        _log.warning("D-%s: retried as plain text: %s", message.subject.number, refusal)
        event_metadata: dict[str, Any] | None = {} if "metadata" in (refusal.code or "") else None
        result = await self._post(message, self._render_plain(message), event_metadata)
        full_text = render_plain(message)
        if isinstance(result, Receipt) and len(full_text) > LENGTH:
            file = File(f"{message.subject.name}.txt", full_text.encode("utf-8", "replace"))
            if not isinstance(failed := await self.upload(message, file), Receipt):
                _log.warning(
                    "D-%s: the full text was not uploaded: %s", message.subject.number, failed
                )
        return result

    async def _update(self, ref: MessageRef, rendered: Rendered) -> SendResult:
        response = await self._web_api.write(
            "chat.update",
            self._web.chat_update(
                channel=ref.channel, ts=ref.ts, text=rendered.text, blocks=rendered.blocks
            ),
        )
        return response if isinstance(response, Failure | Unconfirmed) else Receipt(ref.text)

    async def _send_privately(self, message: Message, person: str) -> SendResult:
        """Send it to one person: as an ephemeral message, or directly if they are not there."""
        rendered = self._render(message)
        args: dict[str, Any] = {"text": rendered.text, "blocks": rendered.blocks}
        if not is_direct(message.target):
            call = self._web.chat_postEphemeral(
                channel=message.target, user=person, thread_ts=thread_of(message), **args
            )
            response = await self._web_api.write("chat.postEphemeral", call)
            is_absent = isinstance(response, Failure) and (
                response.code in {"user_not_in_channel", TARGET_GONE}
            )
            if not is_absent:
                if isinstance(response, Failure | Unconfirmed):
                    return response
                return Receipt(f"{message.target}/{response.get('message_ts')}")
        call = self._web.chat_postMessage(channel=person, **args)
        return _receipt(message, await self._web_api.write("chat.postMessage", call))

    async def _absent_approvers(self, message: Message) -> tuple[str, ...]:
        """Return the ids of a question's approvers who are not in the channel."""
        question = message.question
        is_approval = question is not None and question.kind is QuestionKind.APPROVAL
        is_request = message.kind in (DeliveryKind.QUESTION, DeliveryKind.REMINDER)
        approvers = {
            ids.account_user_id(account)
            for person in message.recipients
            if (account := person.ids.get("slack"))
        }
        if not (is_approval and is_request and approvers) or is_direct(message.target):
            return ()
        async for page in self._web_api.pages("conversations.members", channel=message.target):
            if isinstance(page, Failure):
                _log.warning("cannot list the members of %s: %s", message.target, page)
                return ()
            members = page.get("members")
            approvers -= {str(member) for member in members} if isinstance(members, list) else set()
        return tuple(sorted(approvers))


def _bucket(message: Message) -> str:
    if message.edits is not None:
        return "slack#chat.update"
    if message.kind is DeliveryKind.FILE:
        return "slack#files"
    method = "chat.postEphemeral" if _only_reader(message) else "chat.postMessage"
    return f"slack#{method}:{message.target}"


def _only_reader(message: Message) -> str | None:
    """Return the only person that the message is for."""
    reader = (message.payload or {}).get("to") if message.kind is DeliveryKind.NOTICE else None
    return reader if isinstance(reader, str) and reader else None


def _receipt(message: Message, response: Data | Failure | Unconfirmed) -> SendResult:
    if isinstance(response, Failure | Unconfirmed):
        return response
    channel = response.get("channel")
    ts = response.get("ts")
    if not isinstance(channel, str) or not isinstance(ts, str):
        return Unconfirmed("chat.postMessage: a reply without channel and ts")
    posted = {**mapping(response.get("message")), "ts": ts}
    return Receipt(posted_ref(message, channel, posted).text)
