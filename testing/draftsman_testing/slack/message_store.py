"""Creation and changes of messages in conversations."""

from __future__ import annotations

import copy
from typing import Any, Final

from draftsman_testing.slack.world import Channel, Json, World

TEXT_MOST: Final = 40_000
"""Characters after which Slack truncates a text."""
STREAM_LIFE: Final = 300.0
"""Seconds after which Slack closes a stream."""


def put(world: World, channel: Channel, message: Json, thread: str | None = None) -> Json:
    """Post a message and return it as Slack stores it.

    A reply to a deleted message is posted to the channel, without an error.
    """
    stored: Json = {"type": "message", "ts": world.ts(), "team": world.team, **message}
    stored["text"] = str(stored.get("text") or "")[:TEXT_MOST]
    if "blocks" in stored:
        stored["blocks"] = named(world, stored["blocks"])
    parent = channel.messages.get(thread) if thread else None
    if parent is not None:
        parent = channel.messages.get(str(parent.get("thread_ts")), parent)
        stored["thread_ts"] = parent["ts"]
        if parent.get("user"):
            stored["parent_user_id"] = parent["user"]
        _count(parent, stored)
        if stored.get("bot_id") == world.bot:
            world.statuses.pop((channel.id, parent["ts"]), None)
    channel.messages[stored["ts"]] = stored
    return stored


def _count(parent: Json, reply: Json) -> None:
    parent["thread_ts"] = parent["ts"]
    parent["reply_count"] = parent.get("reply_count", 0) + 1
    parent["latest_reply"] = reply["ts"]
    users = parent.setdefault("reply_users", [])
    if reply.get("user") and reply["user"] not in users:
        users.append(reply["user"])


def named(world: World, blocks: list[Json]) -> list[Json]:
    """Return the blocks with ids for blocks and controls, as Slack returns them."""
    copies = copy.deepcopy(blocks)
    for block in copies:
        block.setdefault("block_id", world.id("b"))
        for element in controls(block):
            element.setdefault("action_id", world.id("a"))
    return copies


def controls(block: Json) -> list[Json]:
    """Return the interactive elements of a block."""
    elements = [block.get("accessory"), block.get("element")]
    if block.get("type") == "actions":
        elements += block.get("elements", [])
    return [
        element
        for element in elements
        if isinstance(element, dict) and element.get("type") != "image"
    ]


def is_streaming(world: World, message: Json) -> bool:
    """Return whether a message is an open stream."""
    stream = message.get("stream")
    if not stream or not stream["open"]:
        return False
    stream["open"] = world.now() - stream["began"] < STREAM_LIFE
    return bool(stream["open"])


def remove(channel: Channel, ts: str) -> None:
    """Delete a message; a message with replies leaves a tombstone."""
    message = channel.messages[ts]
    if message.get("reply_count"):
        stored = {name: message[name] for name in ("type", "ts", "thread_ts", "reply_count")}
        tombstone: dict[str, Any] = {"subtype": "tombstone", "text": "This message was deleted."}
        channel.messages[ts] = stored | tombstone | {"user": "USLACKBOT", "hidden": True}
        return
    del channel.messages[ts]
    parent = channel.messages.get(message.get("thread_ts", ts))
    if parent is not None:
        parent["reply_count"] -= 1


def in_channel(channel: Channel) -> list[Json]:
    """Return the messages of the channel itself: no replies, except broadcast replies."""
    return [
        message
        for message in channel.messages.values()
        if message.get("thread_ts", message["ts"]) == message["ts"]
        or message.get("subtype") == "thread_broadcast"
    ]


def in_thread(channel: Channel, thread: str) -> list[Json]:
    """Return the replies of a thread."""
    return [
        message
        for message in channel.messages.values()
        if message.get("thread_ts") == thread and message["ts"] != thread
    ]
