"""Listeners of buttons and selects: their values are ids, looked up in the database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import questions
from draftsman.actions.action import About
from draftsman.deliveries.documents.builder import question_choices
from draftsman.errors import DraftsmanError, NotFound
from draftsman_bots.conversation.commands import Access
from draftsman_bots.conversation.replies import press
from draftsman_bots.json_fields import string
from draftsman_bots.slack import ids
from draftsman_bots.slack.controls import CONTROLS, parse_ref, row_and_text
from draftsman_bots.slack.deliveries.blocks import MAX_OPTIONS, context
from draftsman_bots.slack.deliveries.render import Topic
from draftsman_bots.slack.deliveries.render import options as question_options
from draftsman_bots.slack.ephemeral import Reply, error_reply, is_retryable, send_once, spoken
from draftsman_bots.slack.home import home, modal_views
from draftsman_bots.slack.home.modal_views import open_modal
from draftsman_bots.slack.ids import AnswerValue
from draftsman_bots.slack.payloads.payloads import PAYLOAD
from draftsman_bots.slack.people.access import (
    SlackConversation,
    authorize,
    authorize_person,
    recognize,
)
from draftsman_bots.slack.requests import job_requests, revisions, templates
from draftsman_bots.slack.schedules import schedules

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.deliveries.blocks import Block
    from draftsman_bots.slack.payloads.payloads import BlockAction, OptionsRequest

GONE: Final = Reply("This is no longer active.")
_INTERACTIVE: Final = frozenset({"actions", "input"})


def register(app: AsyncApp, ctx: BotContext) -> None:
    """Register the listeners; unknown actions are acknowledged."""

    async def action(ack: Any, context: dict[str, Any]) -> None:
        await on_action(ctx, context[PAYLOAD])
        await ack()

    async def options(ack: Any, context: dict[str, Any]) -> None:
        await ack(options=await on_options(ctx, context[PAYLOAD]))

    app.action(re.compile(""))(action)
    app.options(re.compile(""))(options)


async def on_action(ctx: BotContext, click: BlockAction) -> None:
    """Handle a block action; raises errors that the user can retry."""
    try:
        reply = await _route(ctx, click)
    except NotFound:
        reply = GONE
        _replace_controls(ctx, click, click.text or GONE.text)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        reply = error_reply(error)
    send_once(ctx, click.key, click.reply_target, reply)


async def on_options(ctx: BotContext, request: OptionsRequest) -> list[dict[str, Any]]:
    """Return the choices of a question that contain the typed text, within Slack's limit."""
    ref = ids.parse_answer(request.block)
    if ref is None:
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


async def _route(ctx: BotContext, click: BlockAction) -> Reply | None:
    """Take the action of a control, or open its modal; return the reply."""
    match click.kind, parse_ref(click):
        case ((ids.DENY | ids.REQUEST_CHANGES | ids.FREE), AnswerValue() as ref):
            _open_question(ctx, click, ref)
        case ids.NEW_JOB, _:
            job_requests.open_new_job(ctx, click)
        case ids.REFRESH, _:
            home.publish(ctx, click.user)
        case ids.REVISE, int() as job:
            actor = await authorize_person(ctx, click.user, click.channel)
            await revisions.open_form(ctx, actor, click, job)
        case ids.TEMPLATE, str() as name:
            actor = await authorize_person(ctx, click.user, click.channel)
            return await templates.run_pressed(ctx, actor, click, name)
        case ids.ADD_SCHEDULE, _:
            actor = await authorize_person(ctx, click.user, click.channel)
            return await schedules.add(ctx, actor, click)
        case kind, ref if kind in CONTROLS:
            return await _act(ctx, click, ref)
    return None


async def _act(ctx: BotContext, click: BlockAction, ref: Any) -> Reply | None:
    """Take the action of a control; the App Home is published again after it."""
    action = CONTROLS[click.kind]
    is_answer = action in (questions.answer, questions.approve)
    is_schedule = action.about is About.SCHEDULE  # in a channel that accepts requests
    conversation = SlackConversation(
        ctx,
        click.user,
        Access.EVERYBODY if is_answer else Access.PERSON,
        click.channel if is_schedule else "",
    )
    row, text = await row_and_text(ctx, click, ref)
    options = {"choice": ref.choice} if action is questions.answer else {}
    result = await press(conversation, action, row, text, click.key, **options)
    if not click.channel:
        home.publish(ctx, click.user)
    reply = spoken(result)
    if reply is None or action.about is not About.RULE or not click.is_editable:
        return reply
    _replace_controls(ctx, click, reply.text, context(reply.text))
    return None


def _open_question(ctx: BotContext, click: BlockAction, ref: AnswerValue) -> None:
    ctx.background.spawn(recognize(ctx, click.user))  # the modal does not say where it was opened
    if click.kind == ids.DENY:
        view = modal_views.deny_reason(ref.job, ref.question)
    elif click.kind == ids.REQUEST_CHANGES:
        view = modal_views.wanted_changes(ref.job, ref.question)
    else:
        text = ctx.background.draft((click.user.actor(ctx.company).id, ref.job, ref.question))
        view = modal_views.free_text(ref.job, ref.question, text)
    open_modal(ctx, click, view)


def _replace_controls(ctx: BotContext, click: BlockAction, text: str, *blocks: Block) -> None:
    """Remove the controls of a click's message, and add blocks to it."""
    if click.is_editable:
        shown = [block for block in click.blocks if string(block, "type") not in _INTERACTIVE]
        update = ctx.client.chat_update(
            channel=click.channel, ts=click.ts, text=text, blocks=[*shown, *blocks]
        )
        ctx.background.spawn(update)
