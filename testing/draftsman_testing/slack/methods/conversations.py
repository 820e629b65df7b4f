"""conversations.*: messages and members of conversations."""

from __future__ import annotations

import base64
import copy
import math

from draftsman_testing.slack.api_errors import ApiError
from draftsman_testing.slack.message_store import in_channel, in_thread
from draftsman_testing.slack.methods.registry import Args, method, need_scope, visible_channel
from draftsman_testing.slack.world import Channel, Json, World

READ = ("channels:read", "groups:read", "im:read", "mpim:read")
HISTORY = ("channels:history", "groups:history", "im:history", "mpim:history")


def _readable(world: World, args: Args) -> Channel:
    channel = visible_channel(world, args.need("channel"))
    need_scope(world, f"{channel.scope}:history")
    if world.bot_user not in channel.members:
        raise ApiError("not_in_channel")
    return channel


@method("conversations.replies", *HISTORY)
def replies(world: World, args: Args) -> Json:
    """Return a thread; each page begins with its first message.

    The ts of a reply returns only that reply (bolt-python issue 783).
    """
    channel = _readable(world, args)
    ts = args.need("ts")
    result = channel.messages.get(ts)
    if result is None:
        raise ApiError("thread_not_found")
    if result.get("thread_ts", ts) != ts:
        return _page(args, [], first=result)
    return _page(args, in_thread(channel, ts), first=result)


@method("conversations.history", *HISTORY)
def history(world: World, args: Args) -> Json:
    """Return the messages of a channel, newest first."""
    return _page(args, in_channel(_readable(world, args))[::-1])


def _page(args: Args, result: list[Json], first: Json | None = None) -> Json:
    inside = [message for message in result if _between(args, message["ts"])]
    start = _start(args)
    limit = args.count("limit", 100, 1000)
    shown = [*([first] if first else []), *inside[start : start + limit]]
    more = start + limit < len(inside)
    answer: Json = {"messages": [_told(args, item) for item in shown], "has_more": more}
    if more:
        answer["response_metadata"] = {"next_cursor": _cursor(start + limit)}
    return answer


def _between(args: Args, ts: str) -> bool:
    oldest = _time(args, "oldest", 0)
    latest = _time(args, "latest", math.inf)
    if args.flag("inclusive"):
        return oldest <= float(ts) <= latest
    return oldest < float(ts) < latest


def _time(args: Args, name: str, default: float) -> float:
    try:
        return float(args.get(name, default))
    except ValueError:
        raise ApiError(f"invalid_ts_{name}") from None


def _told(args: Args, message: Json) -> Json:
    messages = copy.deepcopy(message)
    if not args.flag("include_all_metadata"):
        messages.pop("metadata", None)
    return messages


def _cursor(start: int) -> str:
    return base64.b64encode(f"next:{start}".encode()).decode()


def _start(args: Args) -> int:
    content = args.maybe("cursor")
    if content is None:
        return 0
    try:
        return int(base64.b64decode(content, validate=True).decode().removeprefix("next:"))
    except ValueError:
        raise ApiError("invalid_cursor") from None


@method("conversations.info", *READ)
def info(world: World, args: Args) -> Json:
    channel = visible_channel(world, args.need("channel"))
    need_scope(world, f"{channel.scope}:read")
    return {"channel": described(world, channel)}


@method("conversations.members", *READ)
def members(world: World, args: Args) -> Json:
    channel = visible_channel(world, args.need("channel"))
    need_scope(world, f"{channel.scope}:read")
    result = sorted(channel.members)
    start = _start(args)
    limit = args.count("limit", 100, 1000)
    more = start + limit < len(result)
    cursor = _cursor(start + limit) if more else ""
    return {
        "members": result[start : start + limit],
        "response_metadata": {"next_cursor": cursor},
    }


@method("conversations.list", *READ)
def list_all(world: World, args: Args) -> Json:
    """List the conversations that the bot can see."""
    return _listed(world, args, bot_only=False)


@method("users.conversations", *READ)
def list_own(world: World, args: Args) -> Json:
    """List the conversations that the bot is a member of."""
    return _listed(world, args, bot_only=True)


def _listed(world: World, args: Args, *, bot_only: bool) -> Json:
    names = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
    types = [names.get(t, t) for t in str(args.get("types", "public_channel")).split(",")]
    result = [
        described(world, channel)
        for channel in world.channels.values()
        if channel.kind in types
        and (world.bot_user in channel.members or (channel.kind == "channel" and not bot_only))
        and not (args.flag("exclude_archived") and channel.archived)
    ]
    start = _start(args)
    limit = args.count("limit", 100, 1000)
    cursor = _cursor(start + limit) if start + limit < len(result) else ""
    return {
        "channels": result[start : start + limit],
        "response_metadata": {"next_cursor": cursor},
    }


@method("conversations.join", "channels:join")
def join(world: World, args: Args) -> Json:
    """Join a public channel."""
    channel = visible_channel(world, args.need("channel"))
    if channel.archived:
        raise ApiError("is_archived")
    if channel.kind != "channel":
        raise ApiError("method_not_supported_for_channel_type")
    channel.members.add(world.bot_user)
    return {"channel": described(world, channel)}


@method("conversations.open", "im:write", "mpim:write")
def open_direct(world: World, args: Args) -> Json:
    """Return the conversation with a person."""
    users = [user for user in args.need("users").split(",") if user]
    if any(user not in world.users or user == world.bot_user for user in users):
        raise ApiError("user_not_found")
    if any(world.users[user]["deleted"] for user in users):
        raise ApiError("user_disabled")
    if len(users) == 1:
        need_scope(world, "im:write")
        channel = world.direct(users[0])
    else:
        need_scope(world, "mpim:write")
        channel = _group(world, {*users, world.bot_user})
    content = described(world, channel) if args.flag("return_im") else {"id": channel.id}
    return {"channel": content}


def _group(world: World, members: set[str]) -> Channel:
    for channel in world.channels.values():
        if channel.kind == "mpim" and channel.members == members:
            return channel
    return world.add_channel("mpdm", "mpim", members)


def described(world: World, channel: Channel) -> Json:
    """Return a conversation as Slack describes it."""
    content: Json = {
        "id": channel.id,
        "is_channel": channel.kind == "channel",
        "is_group": channel.kind == "group",
        "is_im": channel.kind == "im",
        "is_mpim": channel.kind == "mpim",
        "is_private": channel.kind != "channel",
        "is_archived": channel.archived,
        "is_ext_shared": channel.shared,
        "is_shared": channel.shared,
        "is_member": world.bot_user in channel.members,
        "context_team_id": world.team,
    }
    if channel.kind == "im":
        content["user"] = next(iter(channel.members - {world.bot_user}))
    else:
        content["name"] = channel.name
        content["num_members"] = len(channel.members)
    return content
