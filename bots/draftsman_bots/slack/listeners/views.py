"""Listener of submitted modals; errors are shown in the modal, which keeps the input."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.messages.plain_text import already_recorded
from draftsman.errors import DraftsmanError
from draftsman_bots.slack import ids
from draftsman_bots.slack.mrkdwn import address_in_modal, address_reader
from draftsman_bots.slack.outbound import modal_views
from draftsman_bots.slack.parsers import payloads
from draftsman_bots.slack.parsers.command_parser import MODES, JobRequest
from draftsman_bots.slack.usecases import answers, job_requests
from draftsman_bots.slack.usecases.access import authorize_person
from draftsman_bots.slack.usecases.ephemeral import is_retryable, modal_error
from draftsman_bots.slack.usecases.job_requests import RequestOrigin

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.parsers.payloads import ViewSubmission

_PLACE: Final = re.compile(r"slack:[A-Z0-9]{2,40}(/[0-9]{1,12}\.[0-9]{1,8})?")


def register(app: AsyncApp, desk: BotContext) -> None:
    """Register the modals; closing a modal changes nothing."""

    async def submitted(ack: Any, body: dict[str, Any]) -> None:
        errors = await on_submission(desk, body)
        if errors:
            await ack(response_action="errors", errors=errors)
        else:
            await ack()

    async def closed(ack: Any) -> None:
        await ack()

    app.view_submission(re.compile(""))(submitted)
    app.view_closed(re.compile(""))(closed)


async def on_submission(desk: BotContext, body: dict[str, Any]) -> dict[str, str]:
    """Handle a submitted modal; return its errors by block id."""
    found = payloads.parse_view_submission(body)
    if found is None:
        return {}
    try:
        if found.callback == ids.NEW_JOB:
            return await _new_job(desk, found)
        if found.callback == ids.FREE_VIEW:
            return await _answer(desk, found)
        if found.callback == ids.DENY_VIEW:
            return await _deny(desk, found)
    except DraftsmanError as error:
        if is_retryable(error):
            raise
        at = (
            modal_views.REPO
            if isinstance(error, job_requests.UnknownRepository)
            else _shown_at(found)
        )
        return {at: modal_error(error, found.who.id)}
    return {}


async def _new_job(desk: BotContext, view: ViewSubmission) -> dict[str, str]:
    text, repo = (
        view.values.get(modal_views.TEXT, "").strip(),
        view.values.get(modal_views.REPO, "").strip(),
    )
    if not text:
        return {modal_views.TEXT: "Describe the work."}
    mode = view.values.get(modal_views.MODE) or MODES[0]
    given = {"repo": repo, "agent": view.values.get(modal_views.AGENT, "")}
    place = view.metadata if _PLACE.fullmatch(view.metadata) else f"slack:{view.who.id}"
    channel = place.removeprefix("slack:").partition("/")[0]
    who = replace(view.who, channel=channel)
    actor = await authorize_person(desk, who, channel if channel != who.id else "")
    options = {name: value for name, value in given.items() if value}
    request = JobRequest(text, mode if mode in MODES else MODES[0], options)
    await job_requests.submit(desk, actor, RequestOrigin(view.key, place), request)
    return {}


async def _answer(desk: BotContext, view: ViewSubmission) -> dict[str, str]:
    text = view.values.get(modal_views.TEXT, "").strip()
    if not text:
        return {modal_views.TEXT: "Enter an answer."}
    return await _hand_in(desk, view, modal_views.TEXT, text=text)


async def _deny(desk: BotContext, view: ViewSubmission) -> dict[str, str]:
    reason = view.values.get(modal_views.REASON, "").strip() or None
    return await _hand_in(desk, view, modal_views.REASON, decision=False, reason=reason)


async def _hand_in(
    desk: BotContext, view: ViewSubmission, block: str, **given: Any
) -> dict[str, str]:
    named = ids.parse_answer(view.metadata)
    if named is None:
        return {block: "This question is no longer active."}
    response = answers.build_response(view.key, **given)
    verdict = await answers.submit_as(desk, view.who, named.job, named.question, response)
    if verdict.recorded:
        return {block: already_recorded(verdict)}
    if not verdict.accepted:
        return {
            block: address_reader(
                address_in_modal(verdict.reason or "your answer was not accepted"), view.who.id
            )
        }
    return {}


def _shown_at(view: ViewSubmission) -> str:
    """Return the input that shows an error of the whole modal."""
    return next(iter(view.values), modal_views.TEXT)
