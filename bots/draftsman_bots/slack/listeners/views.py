"""Submitted windows: what is wrong is said inside of them, so that what was typed stays."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.wording import already_recorded
from draftsman.errors import DraftsmanError
from draftsman_bots.slack import forms, ids, inbound
from draftsman_bots.slack.grammar import MODES, Request
from draftsman_bots.slack.listeners import answers, requests
from draftsman_bots.slack.listeners.people import admit_known
from draftsman_bots.slack.listeners.requests import Asked
from draftsman_bots.slack.listeners.whisper import comes_again, refusal_in_a_window
from draftsman_bots.slack.text import addressed, unmentioned

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.inbound import Submission
    from draftsman_bots.slack.listeners.desk import Desk

_PLACE: Final = re.compile(r"slack:[A-Z0-9]{2,40}(/[0-9]{1,12}\.[0-9]{1,8})?")


def register(app: AsyncApp, desk: Desk) -> None:
    """Put the windows on the app; one that is closed leaves everything as it is."""

    async def submitted(ack: Any, body: dict[str, Any]) -> None:
        errors = await submit(desk, body)
        if errors:
            await ack(response_action="errors", errors=errors)
        else:
            await ack()

    async def closed(ack: Any) -> None:
        await ack()

    app.view_submission(re.compile(""))(submitted)
    app.view_closed(re.compile(""))(closed)


async def submit(desk: Desk, body: dict[str, Any]) -> dict[str, str]:
    """Take a window; return what is wrong, by the input that shows it."""
    found = inbound.submission(body)
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
        if comes_again(error):
            raise
        at = forms.REPO if isinstance(error, requests.WrongRepo) else _shown_at(found)
        return {at: refusal_in_a_window(error, found.who.id)}
    return {}


async def _new_job(desk: Desk, view: Submission) -> dict[str, str]:
    text, repo = view.values.get(forms.TEXT, "").strip(), view.values.get(forms.REPO, "").strip()
    if not text:
        return {forms.TEXT: "say what is to be done"}
    mode = view.values.get(forms.MODE) or MODES[0]
    given = {"repo": repo, "agent": view.values.get(forms.AGENT, "")}
    place = view.metadata if _PLACE.fullmatch(view.metadata) else f"slack:{view.who.id}"
    channel = place.removeprefix("slack:").partition("/")[0]
    who = replace(view.who, channel=channel)
    actor = await admit_known(desk, who, channel if channel != who.id else "")
    options = {name: value for name, value in given.items() if value}
    request = Request(text, mode if mode in MODES else MODES[0], options)
    await requests.submit(desk, actor, Asked(view.key, place), request)
    return {}


async def _answer(desk: Desk, view: Submission) -> dict[str, str]:
    text = view.values.get(forms.TEXT, "").strip()
    if not text:
        return {forms.TEXT: "say what your answer is"}
    return await _hand_in(desk, view, forms.TEXT, text=text)


async def _deny(desk: Desk, view: Submission) -> dict[str, str]:
    reason = view.values.get(forms.REASON, "").strip() or None
    return await _hand_in(desk, view, forms.REASON, decision=False, reason=reason)


async def _hand_in(desk: Desk, view: Submission, block: str, **given: Any) -> dict[str, str]:
    named = ids.parse_answer(view.metadata)
    if named is None:
        return {block: "this question is no longer active"}
    response = answers.response(view.key, **given)
    verdict = await answers.hand_in_of(desk, view.who, named.job, named.question, response)
    if verdict.recorded:
        return {block: already_recorded(verdict)}
    if not verdict.accepted:
        return {block: addressed(unmentioned(verdict.reason or "it did not count"), view.who.id)}
    return {}


def _shown_at(view: Submission) -> str:
    """Return the input that shows an error of the whole window."""
    return next(iter(view.values), forms.TEXT)
