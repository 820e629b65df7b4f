"""response_urls: an app's responses to an interaction, five times within 30 minutes."""

from __future__ import annotations

from draftsman_testing.slack.api_errors import ApiError
from draftsman_testing.slack.message_store import named, put, remove
from draftsman_testing.slack.methods.chat import body, by_bot, has_content, put_ephemeral
from draftsman_testing.slack.methods.registry import Args
from draftsman_testing.slack.world import HOOK_LIFE, HOOK_USES, Channel, Hook, Json, World


def use(world: World, name: str, args: Args) -> tuple[int, Json]:
    """Use a response_url; return the HTTP status and the body."""
    hook = world.hooks.get(name)
    if hook is None:
        return 404, {"ok": False, "error": "invalid_url"}
    if world.now() - hook.born > HOOK_LIFE:
        return 404, {"ok": False, "error": "expired_url"}
    if hook.uses >= HOOK_USES:
        return 404, {"ok": False, "error": "used_url"}
    hook.uses += 1
    try:
        answer(world, hook, args)
    except ApiError as refused:
        return 400, refused.body()
    return 200, {"ok": True}


def answer(world: World, hook: Hook, args: Args) -> None:
    """Apply the response: replace, delete, or post."""
    channel = world.channels[hook.channel]
    if args.flag("delete_original"):
        _delete(world, channel, hook)
        return
    content = body(args)
    has_content(content)
    if hook.ts is not None and args.flag("replace_original"):
        _replace(world, channel, hook, content)
    elif args.get("response_type") == "in_channel":
        put(world, channel, by_bot(world) | content, args.maybe("thread_ts"))
    else:
        put_ephemeral(world, channel, hook.user, content, args.maybe("thread_ts") or hook.thread)


def _original(world: World, channel: Channel, hook: Hook) -> Json:
    ephemeral = world.ephemerals[channel.id, hook.user]
    result = channel.messages.get(hook.ts or "")
    for message in ephemeral if hook.ephemeral else []:
        if message["ts"] == hook.ts:
            result = message
    if result is None:
        raise ApiError("message_not_found")
    return result


def _replace(world: World, channel: Channel, hook: Hook, content: Json) -> None:
    message = _original(world, channel, hook)
    if "blocks" in content:
        content["blocks"] = named(world, content["blocks"])
    else:
        message.pop("blocks", None)
    message.update(content)


def _delete(world: World, channel: Channel, hook: Hook) -> None:
    message = _original(world, channel, hook)
    if hook.ephemeral:
        world.ephemerals[channel.id, hook.user].remove(message)
    else:
        remove(channel, message["ts"])
