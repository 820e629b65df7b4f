"""auth.*, users.*, bots.* and reactions.*."""

from __future__ import annotations

from draftsman_testing.slack.api_errors import ApiError
from draftsman_testing.slack.methods.registry import Args, method, visible_channel
from draftsman_testing.slack.world import Json, World


@method("auth.test")
def auth_test(world: World, args: Args) -> Json:
    """Return the owner of the token."""
    return {
        "url": "https://fake.slack.com/",
        "team": "fake",
        "user": "draftsman",
        "team_id": world.team,
        **({"enterprise_id": world.enterprise} if world.enterprise else {}),
        "user_id": world.bot_user,
        "bot_id": world.bot,
        "is_enterprise_install": False,
    }


@method("api.test")
def api_test(world: World, args: Args) -> Json:
    """Return the arguments."""
    if "error" in args:
        raise ApiError(str(args["error"]), args=dict(args))
    return {"args": dict(args)}


@method("users.info", "users:read")
def users_info(world: World, args: Args) -> Json:
    user = world.users.get(args.need("user"))
    if user is None:
        raise ApiError("user_not_found")
    return {"user": _shown(world, user)}


@method("users.list", "users:read")
def users_list(world: World, args: Args) -> Json:
    return {"members": [_shown(world, user) for user in world.users.values()]}


@method("users.lookupByEmail", "users:read.email")
def users_lookup(world: World, args: Args) -> Json:
    email = args.need("email")
    for user in world.users.values():
        if user["profile"].get("email") == email:
            return {"user": _shown(world, user)}
    raise ApiError("users_not_found")


def _shown(world: World, user: Json) -> Json:
    profile = dict(user["profile"])
    if "users:read.email" not in world.scopes:
        profile.pop("email", None)
    return user | {"profile": profile}


@method("bots.info", "users:read")
def bots_info(world: World, args: Args) -> Json:
    if args.get("bot", world.bot) != world.bot:
        raise ApiError("bot_not_found")
    bot = {"id": world.bot, "app_id": world.app, "user_id": world.bot_user, "name": "draftsman"}
    return {"bot": bot | {"deleted": False}}


def _reacted(world: World, args: Args) -> tuple[list[Json], Json | None, str]:
    name = args.need("name").strip(":")
    channel = visible_channel(world, args.need("channel"))
    message = channel.messages.get(args.need("timestamp"))
    if message is None:
        raise ApiError("message_not_found")
    if world.bot_user not in channel.members:
        raise ApiError("not_in_channel")
    reactions: list[Json] = message.setdefault("reactions", [])
    return (
        reactions,
        next((reaction for reaction in reactions if reaction["name"] == name), None),
        name,
    )


@method("reactions.add", "reactions:write")
def reactions_add(world: World, args: Args) -> Json:
    reactions, result, name = _reacted(world, args)
    if result is None:
        reactions.append({"name": name, "users": [world.bot_user], "count": 1})
    elif world.bot_user in result["users"]:
        raise ApiError("already_reacted")
    else:
        result["users"].append(world.bot_user)
        result["count"] += 1
    return {}


@method("reactions.remove", "reactions:write")
def reactions_remove(world: World, args: Args) -> Json:
    reactions, result, _ = _reacted(world, args)
    if result is None or world.bot_user not in result["users"]:
        raise ApiError("no_reaction")
    result["users"].remove(world.bot_user)
    result["count"] -= 1
    if not result["users"]:
        reactions.remove(result)
    return {}


@method("reactions.get", "reactions:read")
def reactions_get(world: World, args: Args) -> Json:
    """Return a message with its reactions."""
    channel = visible_channel(world, args.need("channel"))
    message = channel.messages.get(args.need("timestamp"))
    if message is None:
        raise ApiError("message_not_found")
    return {"type": "message", "channel": channel.id, "message": message}
