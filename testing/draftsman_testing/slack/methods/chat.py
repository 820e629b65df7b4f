"""chat.*: the bot posts, updates and deletes messages."""

from __future__ import annotations

import json
from typing import Final

from draftsman_testing.slack.api_errors import ApiError
from draftsman_testing.slack.block_validation import message_blocks
from draftsman_testing.slack.message_store import is_streaming, named, put, remove
from draftsman_testing.slack.methods.registry import Args, method, visible_channel, writable_channel
from draftsman_testing.slack.world import Channel, Json, World

UPDATE_MOST: Final = 4000
"""Characters of the text of chat.update."""
METADATA_BYTES: Final = 16_000
"""An estimate: Slack publishes no limit."""
ATTACHMENTS_MOST: Final = 100


def body(args: Args) -> Json:
    """Return the validated content of a message."""
    content: Json = {}
    if (blocks := args.json("blocks", "invalid_blocks_format")) is not None:
        content["blocks"] = message_blocks(blocks)
    if (attached := args.json("attachments", "invalid_attachments")) is not None:
        content["attachments"] = _attachments(attached)
    if (metadata := args.json("metadata", "invalid_metadata_format")) is not None:
        content["metadata"] = _metadata(metadata)
    if (text := args.maybe("text")) is not None:
        content["text"] = text
    return content


def _attachments(attachments: object) -> list[Json]:
    if not isinstance(attachments, list) or not all(
        isinstance(attachment, dict) for attachment in attachments
    ):
        raise ApiError("invalid_attachments")
    if len(attachments) > ATTACHMENTS_MOST:
        raise ApiError("too_many_attachments")
    for attachment in attachments:
        if "blocks" in attachment:
            message_blocks(attachment["blocks"])
    return attachments


def _metadata(metadata: object) -> Json:
    if not isinstance(metadata, dict) or metadata.keys() - {"event_type", "event_payload"}:
        raise ApiError("invalid_metadata_format")
    if not isinstance(metadata.get("event_type"), str) or not metadata["event_type"]:
        raise ApiError("invalid_metadata_format")
    if not isinstance(metadata.get("event_payload"), dict):
        raise ApiError("invalid_metadata_format")
    if len(json.dumps(metadata).encode()) > METADATA_BYTES:
        raise ApiError("metadata_too_large")
    return metadata


def has_content(content: Json) -> None:
    """Raise ApiError for an empty message."""
    if not content.get("text") and not content.get("blocks") and not content.get("attachments"):
        raise ApiError("no_text")


def by_bot(world: World) -> Json:
    """Return the fields that mark a message as the bot's."""
    profile = {"id": world.bot, "app_id": world.app, "name": "draftsman", "team_id": world.team}
    return {
        "user": world.bot_user,
        "bot_id": world.bot,
        "app_id": world.app,
        "bot_profile": profile,
    }


@method("chat.postMessage", "chat:write")
def post_message(world: World, args: Args) -> Json:
    channel = writable_channel(world, args.need("channel"))
    content = body(args)
    has_content(content)
    thread = args.maybe("thread_ts")
    parent = channel.messages.get(thread) if thread else None
    if parent is not None and parent.get("subtype") in {"channel_join", "channel_name"}:
        raise ApiError("cannot_reply_to_message")
    message = put(world, channel, by_bot(world) | content, thread)
    if args.flag("reply_broadcast") and "thread_ts" in message:
        message["subtype"] = "thread_broadcast"
    return {"channel": channel.id, "ts": message["ts"], "message": message}


@method("chat.postEphemeral", "chat:write")
def post_ephemeral(world: World, args: Args) -> Json:
    channel = writable_channel(world, args.need("channel"))
    user = args.need("user")
    if user not in world.users or user not in channel.members:
        raise ApiError("user_not_in_channel")
    content = body(args)
    has_content(content)
    ts = put_ephemeral(world, channel, user, content, args.maybe("thread_ts"))
    return {"message_ts": ts}


def put_ephemeral(
    world: World, channel: Channel, user: str, content: Json, thread: str | None
) -> str:
    """Store an ephemeral message outside of the history; return its ts."""
    created: Json = {"type": "message", "ts": world.ts(), "text": "", **by_bot(world), **content}
    if "blocks" in created:
        created["blocks"] = named(world, created["blocks"])
    if thread:
        created["thread_ts"] = thread
    world.ephemerals[channel.id, user].append(created)
    return str(created["ts"])


def _own(world: World, args: Args, error: str) -> tuple[Channel, Json]:
    channel = visible_channel(world, args.need("channel"))
    message = channel.messages.get(args.need("ts"))
    if message is None or message.get("subtype") == "tombstone":
        raise ApiError("message_not_found")
    if message.get("bot_id") != world.bot:
        raise ApiError(error)
    return channel, message


@method("chat.update", "chat:write")
def update(world: World, args: Args) -> Json:
    """Update a message of the bot. Omitted blocks stay unchanged."""
    channel, message = _own(world, args, "cant_update_message")
    if channel.archived:
        raise ApiError("is_archived")
    if is_streaming(world, message):
        raise ApiError("streaming_state_conflict")
    content = body(args)
    if not content.keys() & {"text", "blocks", "attachments"}:
        raise ApiError("no_text")
    if len(content.get("text", "")) > UPDATE_MOST:
        raise ApiError("msg_too_long")
    if "blocks" in content:
        content["blocks"] = named(world, content["blocks"])
    message.update(content)
    message["edited"] = {"user": world.bot_user, "ts": world.ts()}
    if not message.get("blocks"):
        message.pop("blocks", None)
    return {
        "channel": channel.id,
        "ts": message["ts"],
        "text": message["text"],
        "message": message,
    }


@method("chat.delete", "chat:write")
def delete(world: World, args: Args) -> Json:
    channel, message = _own(world, args, "cant_delete_message")
    remove(channel, message["ts"])
    return {"channel": channel.id, "ts": message["ts"]}


@method("chat.getPermalink")
def get_permalink(world: World, args: Args) -> Json:
    channel = visible_channel(world, args.need("channel"))
    ts = args.need("message_ts")
    if ts not in channel.messages:
        raise ApiError("message_not_found")
    link = f"https://fake.slack.com/archives/{channel.id}/p{ts.replace('.', '')}"
    return {"channel": channel.id, "permalink": link}
