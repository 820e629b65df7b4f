"""Listener of submitted modals; errors are shown in the modal, which keeps the input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import questions
from draftsman.errors import DraftsmanError
from draftsman_bots.conversation.replies import ReplyKind, press
from draftsman_bots.conversation.requests import MODES, JobRequest
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.mrkdwn import plain_spans
from draftsman_bots.slack.ephemeral import is_retryable, modal_error
from draftsman_bots.slack.home import modal_views
from draftsman_bots.slack.payloads.payloads import PAYLOAD
from draftsman_bots.slack.people.access import SlackConversation, authorize_form
from draftsman_bots.slack.requests import job_requests, revisions, templates
from draftsman_bots.slack.requests.job_requests import RequestOrigin

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman.actions.action import Action
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import ViewSubmission

_TARGET: Final = re.compile(r"slack:[A-Z0-9]{2,40}(/[0-9]{1,12}\.[0-9]{1,8})?")


def register(app: AsyncApp, ctx: BotContext) -> None:
    """Register the modals; closing a modal changes nothing."""

    async def submitted(ack: Any, context: dict[str, Any]) -> None:
        errors = await on_submission(ctx, context[PAYLOAD])
        if errors:
            await ack(response_action="errors", errors=errors)
        else:
            await ack()

    async def closed(ack: Any) -> None:
        await ack()

    app.view_submission(re.compile(""))(submitted)
    app.view_closed(re.compile(""))(closed)


async def on_submission(ctx: BotContext, view: ViewSubmission) -> dict[str, str]:
    """Handle a submitted modal; return its errors by block id."""
    try:
        if view.callback == ids.NEW_JOB:
            return await _new_job(ctx, view)
        if view.callback == ids.TEMPLATE_VIEW:
            return await templates.submit_form(ctx, view)
        if view.callback == ids.REVISE_VIEW:
            return await revisions.submit_form(ctx, view)
        if view.callback == ids.FREE_VIEW:
            return await _submit(ctx, view, questions.answer, modal_views.TEXT)
        if view.callback == ids.DENY_VIEW:
            return await _submit(ctx, view, questions.deny, modal_views.REASON)
        if view.callback == ids.REQUEST_CHANGES_VIEW:
            return await _submit(ctx, view, questions.request_changes, modal_views.TEXT)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        block = (
            modal_views.REPO
            if isinstance(error, job_requests.UnknownRepository)
            else _error_block(view)
        )
        return {block: modal_error(error, view.user.id)}
    return {}


async def _new_job(ctx: BotContext, view: ViewSubmission) -> dict[str, str]:
    text = view.values.get(modal_views.TEXT, "").strip()
    repo = view.values.get(modal_views.REPO, "").strip()
    if not text:
        return {modal_views.TEXT: "Describe the work."}
    mode = view.values.get(modal_views.MODE) or MODES[0]
    fields = {"repo": repo, "agent": view.values.get(modal_views.AGENT, "")}
    target = view.metadata if _TARGET.fullmatch(view.metadata) else f"slack:{view.user.id}"
    actor = await authorize_form(ctx, view.user, target)
    channel, _, thread = target.removeprefix("slack:").partition("/")
    options = {name: value for name, value in fields.items() if value}
    request = JobRequest(text, mode if mode in MODES else MODES[0], options)
    refs = job_requests.request_refs(ctx, channel, thread, "")
    origin = RequestOrigin(view.key, target, attachments=refs)
    await job_requests.submit(ctx, actor, origin, request)
    return {}


async def _submit(
    ctx: BotContext,
    view: ViewSubmission,
    action: Action[questions.QuestionRow, ..., Any],
    block: str,
) -> dict[str, str]:
    """Submit an answer, the reason of a denial or what to change; return why it does not count."""
    ref = ids.parse_answer(view.metadata)
    if ref is None:
        return {block: "This question is no longer active."}
    text = view.values.get(block, "").strip()
    if not text and action is not questions.deny:
        return {block: "Enter an answer." if action is questions.answer else "Say what to change."}
    conversation = SlackConversation(ctx, view.user)
    reply = await press(conversation, action, (ref.job, ref.question), text, view.key)
    if reply.kind is ReplyKind.ANSWERED:
        return {}
    return {block: plain_spans(reply.spans, view.user.id)}


def _error_block(view: ViewSubmission) -> str:
    """Return the input that shows an error of the whole modal."""
    return next(iter(view.values), modal_views.TEXT)
