"""Creation and changes of messages in conversations."""

from __future__ import annotations

import copy
from typing import Any, Final

from tests.support.slack.world import Channel, Json, World

TEXT_MOST: Final = 40_000
"""Characters after which Slack truncates a text."""


def put(world: World, channel: Channel, message: Json, thread: str | None = None) -> Json:
    """Post a message and return it as Slack stores it.

    A reply to a deleted message is posted to the channel, without an error.
    """
    made: Json = {"type": "message", "ts": world.ts(), "team": world.team, **message}
    made["text"] = str(made.get("text") or "")[:TEXT_MOST]
    if "blocks" in made:
        made["blocks"] = named(world, made["blocks"])
    parent = channel.messages.get(thread) if thread else None
    if parent is not None:
        parent = channel.messages.get(str(parent.get("thread_ts")), parent)
        made["thread_ts"] = parent["ts"]
        if parent.get("user"):
            made["parent_user_id"] = parent["user"]
        _count(parent, made)
    channel.messages[made["ts"]] = made
    return made


def _count(parent: Json, reply: Json) -> None:
    parent["thread_ts"] = parent["ts"]
    parent["reply_count"] = parent.get("reply_count", 0) + 1
    parent["latest_reply"] = reply["ts"]
    users = parent.setdefault("reply_users", [])
    if reply.get("user") and reply["user"] not in users:
        users.append(reply["user"])


def named(world: World, blocks: list[Json]) -> list[Json]:
    """Return the blocks with ids for blocks and controls, as Slack returns them."""
    made = copy.deepcopy(blocks)
    for block in made:
        block.setdefault("block_id", world.id("b"))
        for element in controls(block):
            element.setdefault("action_id", world.id("a"))
    return made


def controls(block: Json) -> list[Json]:
    """Return the interactive elements of a block."""
    found = [block.get("accessory"), block.get("element")]
    if block.get("type") == "actions":
        found += block.get("elements", [])
    return [one for one in found if isinstance(one, dict) and one.get("type") != "image"]


def remove(channel: Channel, ts: str) -> None:
    """Delete a message; a message with replies leaves a tombstone."""
    message = channel.messages[ts]
    if message.get("reply_count"):
        kept = {name: message[name] for name in ("type", "ts", "thread_ts", "reply_count")}
        gone: dict[str, Any] = {"subtype": "tombstone", "text": "This message was deleted."}
        channel.messages[ts] = kept | gone | {"user": "USLACKBOT", "hidden": True}
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
