"""Search for a stream whose start was not confirmed.

A stream has no marker: `chat.startStream` takes no metadata. Every other message of draftsman in a
thread has some, so the candidates are the bot's messages without any since the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from draftsman.agent_runs.activity.live_thread import LiveThread
from draftsman.errors import Failure
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.message_search import CLOCK_SKEW
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.transport.web_api import WebApi


async def candidates(
    web_api: WebApi, identity: Identity, thread: LiveThread, channel: str, ts: str
) -> list[str] | None:
    """Return references of messages that may be the stream; None if the search failed.

    Without the scope for the thread's history there are none.
    """
    assert thread.started_at is not None  # noqa: S101 - the stream was being started
    oldest = f"{(thread.started_at - CLOCK_SKEW).timestamp():.6f}"
    found: list[str] = []
    args = {"channel": channel, "ts": ts, "oldest": oldest, "include_all_metadata": "true"}
    async for page in web_api.pages("conversations.replies", **args):
        if isinstance(page, Failure):
            return None if page.code in {"connect", "no_reply", "ratelimited"} else found
        messages = page.get("messages")
        found += [
            ids.message_ref(channel, str(message["ts"]))
            for message in (messages if isinstance(messages, list) else [])
            if _may_be_stream(message, identity, ts)
        ]
    return found


def _may_be_stream(message: Mapping[str, Any], identity: Identity, root: str) -> bool:
    own = message.get("bot_id") is not None and message.get("bot_id") == identity.bot_id
    return own and not message.get("metadata") and message.get("ts") != root
