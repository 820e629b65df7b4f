"""Backfill of replies that Slack did not deliver, in the threads of open questions.

Slack stops retrying an event after some minutes, and drops events under load. A reply from the
backfill is handled like an event, with the same key, so that a late event has no effect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure, LostRace
from draftsman.processes.lifecycle import StopSignal
from draftsman.runtime import Runtime
from draftsman_bots.conversation.resolution import closed_since
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.message_ref import MessageRef
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.records.service import SlackThreads
from draftsman_bots.slack.records.thread import QuestionMessage
from draftsman_bots.slack.transport.web_api import Data, WebApi

HEALTH_KEY: Final = "catch-up"
AFTERWARDS: Final = 90.0
"""Seconds after Slack's last rate limit event until the dropped replies are read as well."""
RETRY_DELAY: Final = 30.0
"""Seconds until the next attempt if Slack or the database is unreachable."""
MAX_ATTEMPTS: Final = 10
_log = logging.getLogger(__name__)

T = TypeVar("T")
EventHandler = Callable[[dict[str, Any], bool], Awaitable[None]]
"""Takes a message event, and whether its author is notified of a rejected answer."""


class Backfill:
    """Reads threads on request, in their order and within Slack's rate limits."""

    def __init__(
        self,
        rt: Runtime,
        web_api: WebApi,
        identity: Identity,
        health: BotHealth,
        handler: EventHandler,
    ) -> None:
        self._rt = rt
        self._web_api = web_api
        self._identity = identity
        self._health = health
        self._handler = handler
        self.stop = StopSignal(self._on_stop)
        self._notify = False
        self._wake_up = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._refused: set[str] = set()
        """Channels whose history the bot may not read, in this run."""

    def schedule(self, *, notify: bool = True) -> None:
        """Read soon; `notify`: authors of rejected answers are notified."""
        self._notify = self._notify or notify
        self._wake_up.set()

    def on_rate_limit(self) -> None:
        """Read now, and again after the end of Slack's rate limit."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(AFTERWARDS, self.schedule)
        self.schedule()

    def _on_stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wake_up.set()

    async def run(self) -> None:
        """Read whenever it is scheduled, until stopped."""
        while True:
            await self._wake_up.wait()
            if self.stop:
                return
            self._wake_up.clear()
            if self._identity.bot_user is not None:  # else it is scheduled again later
                notify = self._notify
                self._notify = False
                await self._read(notify)

    async def _read(self, notify: bool) -> None:
        """Read every thread."""
        self._refused.clear()
        question_messages = await self._with_retries(SlackThreads(self._rt).question_messages) or []
        for message in question_messages:
            ref = MessageRef.parse(message.ref)
            if ref is not None and ref.channel not in self._refused:
                await self._read_thread(message.job, ref, _root(message, ref), notify)
        if not self._refused:
            self._health.clear(HEALTH_KEY)

    async def _read_thread(self, job: int, ref: MessageRef, root: str, notify: bool) -> None:
        """Read the replies to a question since it was posted, within Slack's rate limits.

        `root` is the ts of the thread's first message: with the ts of a reply,
        `conversations.replies` returns only that reply (bolt-python issue 783).
        """
        oldest = ref.ts
        failures = 0
        while failures < MAX_ATTEMPTS and not self.stop:
            failure: Failure | None = None
            args = {"channel": ref.channel, "ts": root, "oldest": oldest}
            async for page in self._web_api.pages("conversations.replies", **args):
                if isinstance(page, Failure):
                    failure = page
                    continue
                for reply in _replies(page, oldest):
                    await self._with_retries(partial(self._handle, job, ref.channel, reply, notify))
                    oldest = reply["ts"]
            if failure is None or not self._is_retryable(failure, ref.channel):
                return
            failures += failure.http_status != 429
            await self.stop.wait(failure.retry_after or RETRY_DELAY)

    def _is_retryable(self, failure: Failure, channel: str) -> bool:
        """Return whether to retry."""
        if failure.http_status == 429 or failure.code in ("connect", "no_reply"):
            return True
        if failure.code == "missing_scope":
            self._refused.add(channel)
            note = f"cannot read replies that Slack did not deliver: {failure}"
            self._health.note(HEALTH_KEY, note)
        else:
            _log.info("cannot read a thread: %s", failure)
        return False

    async def _handle(self, job: int, channel: str, reply: Data, notify: bool) -> None:
        """Handle a reply, unless it is recorded or may have answered a closed question."""
        workspace = self._identity.team or self._identity.enterprise or ""
        key = ids.message_key(workspace, channel, reply["ts"])
        topics = await SlackThreads(self._rt).topics(channel, str(reply.get("thread_ts", "")))
        for number in {job, *(topic.job for topic in topics)}:
            questions, answers = await self._rt.questions.of_job(number)
            if any(answer.source_event_id == key for answer in answers):
                return
            written = datetime.fromtimestamp(float(reply["ts"]), UTC)
            if any(closed_since(question, written) for question in questions):
                return
        await self._handler(_event(workspace, channel, reply), notify)

    async def _with_retries(self, operation: Callable[[], Awaitable[T]]) -> T | None:
        """Retry the operation while the database is unreachable; other errors are logged."""
        for _ in range(MAX_ATTEMPTS):
            try:
                return await operation()
            except (DatabaseUnreachable, LostRace):
                if await self.stop.wait(RETRY_DELAY):
                    break
            except DraftsmanError as error:
                _log.warning("a missed reply was not processed: %s", error)
                break
        return None


def _root(message: QuestionMessage, ref: MessageRef) -> str:
    """Return the ts of the first message of the question's thread."""
    status_card = MessageRef.parse(message.root)
    return message.thread or (status_card.thread_root if status_card is not None else ref.ts)


def _replies(page: Data, oldest: str) -> list[Data]:
    """Return the newer messages; each page begins with the first message of the thread."""
    messages = page.get("messages")
    if not isinstance(messages, list):
        return []
    replies = [message for message in messages if isinstance(message, dict)]
    return [reply for reply in replies if isinstance(reply.get("ts"), str) and reply["ts"] > oldest]


def _event(workspace: str, channel: str, reply: Data) -> dict[str, Any]:
    """Return a reply as the event that Slack would have delivered."""
    kind = "im" if channel.startswith("D") else "channel"
    event = {**reply, "type": "message", "channel": channel, "channel_type": kind}
    return {"type": "event_callback", "team_id": workspace, "event": event}
