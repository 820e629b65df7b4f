"""Suggested prompts of the agent's conversation: templates, and recent requests of its user.

An app with `agent_view` gets `app_home_opened` when its Messages tab is opened, and prompts belong
to the channel; an app with the older `assistant_view` gets `assistant_thread_started`, and they
belong to the thread (docs.slack.dev, "Migrating to the Agent messaging experience").
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.errors import NotPermitted
from draftsman.jobs.job import AGENT_TYPE
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.people.access import authorize_person
from draftsman_bots.slack.people.user import SlackUser
from draftsman_bots.text import truncate

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import OpenedTab

MAX_PROMPTS: Final = 4
MAX_TEMPLATES: Final = 2
MAX_RECENT: Final = 10
"""Newest jobs among which the requests are chosen."""
MAX_TITLE: Final = 75
MAX_TEXT: Final = 1000
"""Characters of a message; a longer request is not suggested."""
JOBS: Final = {"title": "Show the newest jobs", "message": "list"}
_log = logging.getLogger(__name__)


def on_conversation(ctx: BotContext, tab: OpenedTab) -> None:
    """Suggest prompts in a conversation with the agent that was opened, in the background."""
    if tab.user_id and tab.channel and ctx.identity.is_agent:
        user = SlackUser(tab.user_id, channel=tab.channel)
        ctx.background.spawn(_suggest(ctx, user, tab.channel, tab.thread))


async def _suggest(ctx: BotContext, user: SlackUser, channel: str, thread: str) -> None:
    try:
        actor = await authorize_person(ctx, user)
    except NotPermitted:
        return
    args: dict[str, Any] = {"channel_id": channel, "prompts": await _prompts(ctx, actor)}
    if thread:
        args["thread_ts"] = thread
    try:
        await ctx.client.api_call("assistant.threads.setSuggestedPrompts", json=args)
    except SlackApiError as error:
        _log.info("no suggested prompts: %s", error_code(error))
    except NETWORK as error:
        _log.info("no suggested prompts: %s", type(error).__name__)


async def _prompts(ctx: BotContext, actor: Actor) -> list[dict[str, str]]:
    """Return the prompts: templates, then different requests of the person, then the list."""
    prompts: list[dict[str, str]] = []
    for template in await ctx.rt.templates.all():
        if (definition := template.definition) is not None and len(prompts) < MAX_TEMPLATES:
            title = definition.description or f"Run the template {template.name}"
            prompts.append(_prompt(title, f"template {template.name}"))
    rt = ctx.rt.seen_by(actor)
    page = await rt.read_model.page(invoker=actor.voter, limit=MAX_RECENT)
    for summary in page.jobs:
        if summary.type != AGENT_TYPE or len(prompts) == MAX_PROMPTS - 1:
            continue
        job = await rt.read_model.job(summary.number)
        text = job.agent_request.text or ""
        prompt = _prompt(f"Again: {job.own_title or text}", f"{job.agent_request.mode} {text}")
        if job.template is None and 0 < len(text) <= MAX_TEXT and prompt not in prompts:
            prompts.append(prompt)
    return [*prompts, JOBS]


def _prompt(title: str, message: str) -> dict[str, str]:
    return {"title": truncate(" ".join(title.split()), MAX_TITLE), "message": message}
