"""assistant.threads.setSuggestedPrompts, as docs.slack.dev describes it.

At most four prompts, each with a title and a message. For an app with `agent_view` a `thread_ts`
makes the call fail silently; for one with `assistant_view` it names the thread.
"""

from __future__ import annotations

from draftsman_testing.slack.api_errors import ApiError, invalid_arguments
from draftsman_testing.slack.methods.registry import Args, method
from draftsman_testing.slack.world import Json, World

MOST: int = 4


@method("assistant.threads.setSuggestedPrompts", "assistant:write")
def set_suggested_prompts(world: World, args: Args) -> Json:
    channel = world.channels.get(args.need("channel_id"))
    if channel is None or channel.kind != "im":
        raise ApiError("channel_not_found")
    prompts = args.json("prompts", "invalid_arguments")
    if not isinstance(prompts, list) or not 0 < len(prompts) <= MOST:
        raise invalid_arguments("invalid_arguments", ["prompts must have 1 to 4 items"])
    for prompt in prompts:
        if not isinstance(prompt, dict) or set(prompt) != {"title", "message"}:
            raise invalid_arguments("invalid_arguments", ["a prompt has a title and a message"])
        if not all(isinstance(text, str) and text for text in prompt.values()):
            raise invalid_arguments("invalid_arguments", ["a prompt has a title and a message"])
    thread = args.maybe("thread_ts")
    if world.agent_view and thread:
        return {}
    if not world.agent_view and thread not in channel.messages:
        raise ApiError("invalid_thread_ts")
    world.prompts[channel.id, thread or ""] = prompts
    return {}
