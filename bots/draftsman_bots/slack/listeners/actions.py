"""Listeners of buttons and selects: their values are ids, looked up in the database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.question import QuestionStatus
from draftsman.errors import DraftsmanError, NotFound, NotPermitted, UsageError
from draftsman_bots.slack import ids
from draftsman_bots.slack.ids import AnswerValue
from draftsman_bots.slack.listeners import home
from draftsman_bots.slack.outbound import modal_views, question_blocks
from draftsman_bots.slack.outbound.blocks import MAX_OPTIONS
from draftsman_bots.slack.parsers import payloads
from draftsman_bots.slack.usecases import answers, job_commands
from draftsman_bots.slack.usecases.access import (
    actor_of,
    authorize,
    authorize_person,
    check_modal_access,
)
from draftsman_bots.slack.usecases.ephemeral import (
    Reply,
    ReplyTarget,
    error_reply,
    is_retryable,
    send_ephemeral,
)
from draftsman_bots.slack.usecases.modals import open_modal
from draftsman_bots.slack.usecases.organization import recognize

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman.domain.answer import Response
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.parsers.payloads import BlockAction

GONE: Final = Reply("This is no longer active.")
_CONTROLS: Final = frozenset({"actions", "input"})


def register(app: AsyncApp, desk: BotContext) -> None:
    """Register the listeners; unknown actions are acknowledged."""

    async def action(ack: Any, body: dict[str, Any]) -> None:
        await press(desk, body)
        await ack()

    async def options(ack: Any, body: dict[str, Any]) -> None:
        await ack(options=await on_options(desk, body))

    app.action(re.compile(""))(action)
    app.options(re.compile(""))(options)


async def press(desk: BotContext, body: dict[str, Any]) -> None:
    """Handle a block action; raises errors that the user can retry."""
    found = payloads.parse_block_action(body)
    if found is None:
        return
    place = ReplyTarget(found.who.id, found.channel, found.thread, found.response_url)
    try:
        said = await _route(desk, found, place)
    except NotFound:
        said = GONE
        _strip(desk, found)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        said = error_reply(error, found.who.id)
    if said is not None:
        send_ephemeral(desk, place, said)


async def on_options(desk: BotContext, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of a question that contain the typed text, within Slack's limit."""
    found = payloads.parse_options_request(body)
    named = ids.parse_answer(found.block) if found else None
    if found is None or named is None:
        return []
    try:
        await authorize(desk, found.who)
        question = await desk.rt.questions.get(named.job, named.question)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        return []
    typed = found.typed.strip().casefold()
    labels = [str(choice["label"]).casefold() for choice in question.choices]
    pairs = zip(question_blocks.options(question), labels, strict=True)
    return [option for option, label in pairs if typed in label][:MAX_OPTIONS]


async def _route(desk: BotContext, press: BlockAction, place: ReplyTarget) -> Reply | None:
    kind = press.action.partition(":")[0]
    if kind in (ids.ANSWER, ids.CHOOSE):
        return await _choose(desk, press)
    if kind == ids.APPROVE:
        return await _approve(desk, press)
    if kind in (ids.FREE, ids.DENY):
        _open(desk, press, place, kind)
    elif kind in (ids.CANCEL, ids.RETRY):
        return await _operate(desk, press, kind)
    elif kind == ids.NEW_JOB:
        check_modal_access(desk, press.who)
        target = f"slack:{press.who.id}"
        open_modal(
            desk, place, press.trigger_id, modal_views.new_job(desk.rt.settings.agent_names, target)
        )
    elif kind == ids.REFRESH:
        home.publish(desk, press.who)
    return None


async def _choose(desk: BotContext, press: BlockAction) -> Reply | None:
    named = _named(press)
    question = await desk.rt.questions.get(named.job, named.question)
    value = answers.choice_value(question, named.choice)
    if value is None:
        if question.status is QuestionStatus.OPEN:  # its buttons stay
            raise UsageError(f"{question.name} has no such choice; use its buttons")
        raise NotFound(f"{question.name} has no such choice")
    return await _hand_in(desk, press, named, answers.build_response(press.key, text=value))


async def _approve(desk: BotContext, press: BlockAction) -> Reply | None:
    given = answers.build_response(press.key, decision=True)
    return await _hand_in(desk, press, _named(press), given)


async def _hand_in(
    desk: BotContext, press: BlockAction, named: AnswerValue, given: Response
) -> Reply | None:
    verdict = await answers.submit_as(desk, press.who, named.job, named.question, given)
    if not press.channel:
        home.publish(desk, press.who)
    return (
        answers.verdict_reply(verdict, press.who.id) if answers.is_new_to_reader(verdict) else None
    )


def _open(desk: BotContext, press: BlockAction, place: ReplyTarget, kind: str) -> None:
    named = _named(press)
    desk.background.spawn(recognize(desk, press.who))  # the window does not say where it was opened
    if kind == ids.DENY:
        view = modal_views.deny_reason(named.job, named.question)
    else:
        text = desk.background.draft((press.who.account(*desk.own), named.job, named.question))
        view = modal_views.free_text(named.job, named.question, text)
    open_modal(desk, place, press.trigger_id, view)


async def _operate(desk: BotContext, press: BlockAction, kind: str) -> Reply:
    job = ids.parse_job(press.value)
    if job is None:
        raise NotFound("job not found")
    what, work = (
        ("cancel", job_commands.cancel) if kind == ids.CANCEL else ("retry", job_commands.retry)
    )
    try:
        said = await work(desk, await authorize_person(desk, press.who), job)
    except NotPermitted as error:
        one = actor_of(desk, press.who)
        await desk.rt.job_control.refuse(job, what, press.key, one, str(error))
        raise
    if not press.channel:
        home.publish(desk, press.who)
    return said


def _named(press: BlockAction) -> AnswerValue:
    named = ids.parse_answer(press.value)
    if named is None:
        raise NotFound("question not found")
    return named


def _strip(desk: BotContext, press: BlockAction) -> None:
    """Remove the controls of a message whose question or job is gone."""
    if press.message is None or not press.channel or not press.ts:
        return
    found = press.message.get("blocks")
    blocks = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    kept = [one for one in blocks if one.get("type") not in _CONTROLS]
    text = payloads.text(press.message, "text") or GONE.text
    work = desk.client.chat_update(channel=press.channel, ts=press.ts, text=text, blocks=kept)
    desk.background.spawn(work)
