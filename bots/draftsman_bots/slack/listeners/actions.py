"""Listeners of buttons and selects: their values are ids, looked up in the database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import questions
from draftsman.actions.action import About
from draftsman.deliveries.documents.builder import question_choices
from draftsman.errors import DraftsmanError, NotFound
from draftsman_bots import json_fields
from draftsman_bots.conversation.commands import Access
from draftsman_bots.conversation.replies import press
from draftsman_bots.slack import ids
from draftsman_bots.slack.controls import CONTROLS, DIALOGS, row_and_text
from draftsman_bots.slack.conversation import SlackConversation, spoken
from draftsman_bots.slack.deliveries.blocks import MAX_OPTIONS
from draftsman_bots.slack.deliveries.render import Topic
from draftsman_bots.slack.deliveries.render import options as question_options
from draftsman_bots.slack.ephemeral import (
    Reply,
    ReplyTarget,
    error_reply,
    is_retryable,
    send_ephemeral,
)
from draftsman_bots.slack.home import home, modal_views
from draftsman_bots.slack.home.modal_views import open_modal
from draftsman_bots.slack.payloads import payloads
from draftsman_bots.slack.people.access import (
    authorize,
    authorize_person,
    check_modal_access,
    recognize,
)
from draftsman_bots.slack.permission_rules import show_in_message
from draftsman_bots.slack.requests import revisions, templates
from draftsman_bots.slack.requests.job_requests import RequestOrigin, job_target
from draftsman_bots.slack.schedules import schedules

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import BlockAction

GONE: Final = Reply("This is no longer active.")
_INTERACTIVE: Final = frozenset({"actions", "input"})
_IN_CHANNEL: Final = frozenset(
    {
        ids.REVISE,
        ids.TEMPLATE,
        ids.ADD_SCHEDULE,
    }
)
"""Controls for people, in a channel that accepts requests."""


def register(app: AsyncApp, ctx: BotContext) -> None:
    """Register the listeners; unknown actions are acknowledged."""

    async def action(ack: Any, body: dict[str, Any]) -> None:
        await on_action(ctx, body)
        await ack()

    async def options(ack: Any, body: dict[str, Any]) -> None:
        await ack(options=await on_options(ctx, body))

    app.action(re.compile(""))(action)
    app.options(re.compile(""))(options)


async def on_action(ctx: BotContext, body: dict[str, Any]) -> None:
    """Handle a block action; raises errors that the user can retry."""
    action = payloads.parse_block_action(body)
    if action is None:
        return
    reply_target = ReplyTarget(action.user.id, action.channel, action.thread, action.response_url)
    try:
        reply = await _route(ctx, action, reply_target)
    except NotFound:
        reply = GONE
        _remove_controls(ctx, action)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        reply = error_reply(error)
    if reply is not None and ctx.background.first((action.key, reply.text)):
        send_ephemeral(ctx, reply_target, reply)


async def on_options(ctx: BotContext, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of a question that contain the typed text, within Slack's limit."""
    request = payloads.parse_options_request(body)
    ref = ids.parse_answer(request.block) if request else None
    if request is None or ref is None:
        return []
    try:
        actor = await authorize(ctx, request.user)
        question = await ctx.rt.seen_by(actor).questions.get(ref.job, ref.question)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        return []
    query = request.query.strip().casefold()
    choices = question_choices(question)
    found = question_options(choices, Topic(job=question.job, question=question.ordinal))
    pairs = zip(choices, found, strict=True)
    return [option for choice, option in pairs if query in choice.label.casefold()][:MAX_OPTIONS]


async def _route(ctx: BotContext, action: BlockAction, reply_target: ReplyTarget) -> Reply | None:
    kind = action.action.partition(":")[0]
    if kind in CONTROLS:
        return await _act(ctx, action, kind)
    if kind in DIALOGS:
        _open_question_modal(ctx, action, reply_target, kind)
    elif kind == ids.NEW_JOB:
        _open_new_job(ctx, action, reply_target)
    elif kind == ids.REFRESH:
        home.publish(ctx, action.user)
    elif kind in _IN_CHANNEL:
        actor = await authorize_person(ctx, action.user, action.channel)
        return await _route_in_channel(ctx, actor, action, reply_target, kind)
    return None


async def _act(ctx: BotContext, click: BlockAction, kind: str) -> Reply | None:
    """Take the action of a control; the App Home is published again after it."""
    action = CONTROLS[kind]
    is_answer = action in (questions.answer, questions.approve)
    is_schedule = action.about is About.SCHEDULE  # in a channel that accepts requests
    conversation = SlackConversation(
        ctx,
        click.user,
        Access.EVERYBODY if is_answer else Access.PERSON,
        click.channel if is_schedule else "",
    )
    row, text = await row_and_text(ctx, click, kind)
    reply = spoken(await press(conversation, action, row, text, click.key))
    if not click.channel:
        home.publish(ctx, click.user)
    if reply is not None and action.about is About.RULE and show_in_message(ctx, click, reply.text):
        return None
    return reply


async def _route_in_channel(
    ctx: BotContext, actor: Actor, action: BlockAction, reply_target: ReplyTarget, kind: str
) -> Reply | None:
    if kind == ids.REVISE:
        await revisions.open_form(ctx, actor, action, reply_target)
        return None
    if kind == ids.TEMPLATE:
        return await _run_template(ctx, actor, action, reply_target)
    return await schedules.add(ctx, actor, action)


def _open_new_job(ctx: BotContext, action: BlockAction, reply_target: ReplyTarget) -> None:
    check_modal_access(ctx, action.user)
    view = modal_views.new_job(ctx.rt.settings.agent_names, f"slack:{action.user.id}")
    open_modal(ctx, reply_target, action.trigger_id, view)


def _open_question_modal(
    ctx: BotContext, action: BlockAction, reply_target: ReplyTarget, kind: str
) -> None:
    ref = ids.parse_answer(action.value)
    if ref is None:
        raise NotFound("question not found")
    ctx.background.spawn(recognize(ctx, action.user))  # the modal does not say where it was opened
    if kind == ids.DENY:
        view = modal_views.deny_reason(ref.job, ref.question)
    else:
        text = ctx.background.draft((action.user.account(*ctx.company), ref.job, ref.question))
        view = modal_views.free_text(ref.job, ref.question, text)
    open_modal(ctx, reply_target, action.trigger_id, view)


async def _run_template(
    ctx: BotContext, actor: Actor, action: BlockAction, reply_target: ReplyTarget
) -> Reply | None:
    name = ids.parse_template(action.value)
    if name is None:
        raise NotFound("template not found")
    target = job_target(action.channel, action.thread, action.user.id)
    origin = RequestOrigin(action.key, target, action.trigger_id)
    result = await templates.run_template(ctx, actor, origin, reply_target, name)
    if result is None or isinstance(result, Reply):
        return result
    return Reply(f"{result.name} is {result.status}. Updates follow.")


def _remove_controls(ctx: BotContext, action: BlockAction) -> None:
    """Remove the controls of a message whose question or job is gone."""
    if action.message is None or not action.channel or not action.ts:
        return
    blocks = action.message.get("blocks")
    remaining = [
        block
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, dict) and block.get("type") not in _INTERACTIVE
    ]
    text = json_fields.string(action.message, "text") or GONE.text
    update = ctx.client.chat_update(
        channel=action.channel, ts=action.ts, text=text, blocks=remaining
    )
    ctx.background.spawn(update)
