"""Calls of the Web API for live threads: rate limits, and methods that a channel refuses.

A refusal stops no delivery. It pauses the method for a day, in the channel or everywhere, in all
processes; `draftsman doctor` shows it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Final

from slack_sdk.web.async_client import AsyncWebClient

from draftsman.deliveries.delivery import RateLimit, Unconfirmed
from draftsman.deliveries.service.live_threads import LiveThreads
from draftsman.errors import Failure
from draftsman_bots.slack.deliveries.channel import EDITS
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.transport.api_errors import (
    ACCOUNT,
    ACCOUNT_PAUSE,
    RATE_LIMITS,
    TARGET,
    THREAD,
    SlackRefusal,
)
from draftsman_bots.slack.transport.web_api import Data, WebApi

STATUS: Final = "assistant.threads.setStatus"
SESSION: Final = "agents.sessions.setStatus"
START: Final = "chat.startStream"
APPEND: Final = "chat.appendStream"
STOP: Final = "chat.stopStream"
EDIT: Final = "chat.update"
RATES: Final = {
    STATUS: (1.0, 5),  # for each channel, as Slack limits it like chat.postMessage
    SESSION: (1.5, 5),  # tier 3: 50 a minute
    START: (4.0, 5),  # tier 2: 20 a minute
    STOP: (4.0, 5),
    APPEND: (0.75, 20),  # tier 4: 100 a minute
    EDIT: EDITS,
}
"""Seconds for each call of a method, and the burst: together not more than Slack guarantees."""
UNLIMITED: Final = (0.01, 100)
NO_CODE_PAUSE: Final = 60.0
"""Seconds to wait after a refusal without a code, such as that of a proxy."""
OFF: Final = 86_400.0
"""Seconds until a method that was refused is tried again."""
METHOD: Final = frozenset({
    "missing_scope", "unknown_method", "method_deprecated", "deprecated_endpoint", "no_permission",
    "access_denied", "not_allowed_token_type", "team_access_not_granted", "feature_not_enabled",
})  # fmt: skip
"""Refusals of the method for this app, in every channel."""
CONTENT: Final = frozenset({
    "msg_too_long", "invalid_chunks", "invalid_blocks", "no_text", "streaming_mode_mismatch",
    "cannot_provide_both_markdown_text_and_chunks",
})  # fmt: skip
RUN: Final = THREAD | TARGET | frozenset({
    "user_not_in_channel", "users_not_found", "user_is_bot", "user_is_restricted",
})  # fmt: skip
"""Refusals for the thread, the reader or a closed channel: other runs are not affected."""
OVER: Final = frozenset({
    "message_not_in_streaming_state", "message_not_found", "message_not_owned_by_app",
    "stopped_by_user", "streaming_state_conflict",
})  # fmt: skip
"""The message is no open stream."""
_log = logging.getLogger(__name__)


class LiveRefusal(StrEnum):
    """Why a call had no effect."""

    LATER = "later"
    RUN = "run"
    OVER = "over"
    CONTENT = "content"
    OFF = "off"


class SessionState(StrEnum):
    """State of the session of an agent in a thread."""

    ACTIVE = "active"
    PROCESSING = "processing"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class LiveCalls:
    """The calls of a bot process. None of them raises an error of Slack or of the network."""

    def __init__(
        self,
        web: AsyncWebClient,
        live: LiveThreads,
        identity: Identity,
        health: BotHealth,
        timeout: float,
    ) -> None:
        # no Installation: the refusal of a call that delivers nothing must not stop deliveries
        self.web_api = WebApi(web, timeout, None, identity)
        self._web = web
        self._live = live
        self._health = health

    async def set_status(self, channel: str, thread: str, text: str) -> Data | LiveRefusal:
        """Set the status of a thread; an empty text removes it."""
        return await self._call(
            STATUS,
            channel,
            lambda: self._web.assistant_threads_setStatus(
                channel_id=channel, thread_ts=thread, status=text
            ),
        )

    async def set_session(
        self, channel: str, thread: str, state: SessionState, title: str
    ) -> Data | LiveRefusal:
        """Set the state of a thread's session, which begins with this title."""
        args = {"channel_id": channel, "thread_ts": thread, "status": state, "title": title}
        return await self._call(SESSION, channel, lambda: self._web.api_call(SESSION, json=args))

    async def start(
        self, channel: str, thread: str, chunks: list[dict[str, str]], **reader: str
    ) -> Data | LiveRefusal | Unconfirmed:
        """Start a stream; Unconfirmed: it may be open."""
        return await self._attempt(
            START,
            channel,
            lambda: self._web.chat_startStream(
                channel=channel,
                thread_ts=thread,
                chunks=chunks,
                task_display_mode="plan",
                **reader,
            ),
        )

    async def may_start(self, channel: str) -> bool:
        """Return whether a stream can be started now; it takes a token."""
        return await self._live.limits.consume(self._limits(START, channel)) is None

    async def append(
        self, channel: str, ts: str, chunks: list[dict[str, str]]
    ) -> Data | LiveRefusal:
        """Replace tasks of a stream, which can be repeated."""
        return await self._call(
            APPEND,
            channel,
            lambda: self._web.chat_appendStream(channel=channel, ts=ts, chunks=chunks),
        )

    async def stop(
        self, channel: str, ts: str, chunks: list[dict[str, str]] | None
    ) -> Data | LiveRefusal:
        """End a stream."""
        return await self._call(
            STOP,
            channel,
            lambda: self._web.chat_stopStream(channel=channel, ts=ts, chunks=chunks),
        )

    async def replace(
        self, channel: str, ts: str, text: str, blocks: list[dict[str, Any]]
    ) -> Data | LiveRefusal:
        """Replace a message that was a stream."""
        return await self._call(
            EDIT,
            channel,
            lambda: self._web.chat_update(channel=channel, ts=ts, text=text, blocks=blocks),
        )

    def _limits(self, method: str, channel: str) -> list[RateLimit]:
        """Return the limits: of the method, and of a method that the channel may refuse."""
        rate = RATES[method]
        limits = [RateLimit(f"slack#{method}", *(UNLIMITED if method == STATUS else rate))]
        if method in (STATUS, SESSION, START):
            limits.append(RateLimit(f"slack#{method}:{channel}", *rate))
        return limits

    async def _call(
        self, method: str, channel: str, call: Callable[[], Awaitable[Any]]
    ) -> Data | LiveRefusal:
        if await self._live.limits.consume(self._limits(method, channel)) is not None:
            return LiveRefusal.LATER
        result = await self._attempt(method, channel, call)
        return LiveRefusal.LATER if isinstance(result, Unconfirmed) else result

    async def _attempt(
        self, method: str, channel: str, call: Callable[[], Awaitable[Any]]
    ) -> Data | LiveRefusal | Unconfirmed:
        result = await self.web_api.write(method, call())
        if not isinstance(result, Failure):
            return result
        code = result.error if isinstance(result, SlackRefusal) else ""
        if not code:
            if result.http_status is not None:
                await self._live.limits.pause(f"slack#{method}", NO_CODE_PAUSE, str(result))
            return LiveRefusal.LATER
        if code in RATE_LIMITS or result.http_status == 429:
            bucket = f"slack#{method}:{channel}" if method == STATUS else f"slack#{method}"
            await self._live.limits.pause(bucket, result.retry_after or 1.0, str(result))
            return LiveRefusal.LATER
        if code in METHOD:
            return await self._turn_off(method, "", result)
        if code in ACCOUNT:
            await self._live.limits.pause(f"slack#{method}", ACCOUNT_PAUSE, str(result))
            return LiveRefusal.LATER
        if code in OVER and method != START:
            return LiveRefusal.OVER
        if code in RUN:
            return LiveRefusal.RUN
        if code in CONTENT:
            _log.warning("a live thread is not shown: %s", result)
            return LiveRefusal.CONTENT
        if method in (STATUS, SESSION, START):
            return await self._turn_off(method, channel, result)
        return LiveRefusal.OVER

    async def _turn_off(self, method: str, channel: str, failure: Failure) -> LiveRefusal:
        """Try the method again in a day, in the channel or everywhere."""
        bucket = f"slack#{method}:{channel}" if channel else f"slack#{method}"
        await self._live.limits.pause(bucket, OFF, str(failure))
        where = f"in {channel}" if channel else "in all channels"
        self._health.note(bucket, f"not used {where} for a day: {failure}", OFF)
        return LiveRefusal.OFF
