"""The App Home: what waits for the person who looks at it, and what they asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.policy import Verb
from draftsman.errors import NotPermitted
from draftsman_bots.slack import forms, inbound
from draftsman_bots.slack.forms import Mine
from draftsman_bots.slack.listeners.people import admit_known, may_answer

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman.domain.actor import Actor
    from draftsman.domain.question import Question
    from draftsman_bots.slack.inbound import Who
    from draftsman_bots.slack.listeners.desk import Desk

LOOKED_AT: Final = 200
"""Open questions, of everybody, among which one's own are found; those that expire first."""


def register(app: AsyncApp, desk: Desk) -> None:
    """Put the event on the app."""

    async def opened(ack: Any, body: dict[str, Any]) -> None:
        who = inbound.opener(body)
        if who is not None:
            publish(desk, who)
        await ack()

    app.event("app_home_opened")(opened)


def publish(desk: Desk, who: Who) -> None:
    """Draw somebody's App Home, beside."""
    desk.aside.begin(_publish(desk, who))


async def _publish(desk: Desk, who: Who) -> None:
    try:
        actor = await admit_known(desk, who)
        found = await _asked(desk, actor), await _jobs(desk, actor)
        view = forms.home(*found, desk.settings.command)
    except NotPermitted as error:
        view = forms.home_of_nobody(str(error))
    await desk.client.views_publish(user_id=who.id, view=view)


async def _asked(desk: Desk, actor: Actor) -> list[Question]:
    """Return the open questions that this person may answer."""
    found = await desk.rt.questions.open(limit=LOOKED_AT)
    return [question for question in found if await may_answer(desk, actor, question)]


async def _jobs(desk: Desk, actor: Actor) -> Mine:
    """Return the newest jobs that this person asked for, wherever, and what they may do to them."""
    page = await desk.rt.inspect.page(invoker=actor.voter, limit=forms.HOME_JOBS + 1)
    allowed = [verb for verb in (Verb.CANCEL, Verb.RETRY) if _may(desk, actor, verb)]
    return Mine(page.jobs, frozenset(allowed), page.looked_to is not None)


def _may(desk: Desk, actor: Actor, verb: Verb) -> bool:
    """Return whether this person may do that to what they asked for."""
    try:
        desk.rt.policy.check(actor, verb, invoker=actor.voter)
    except NotPermitted:
        return False
    return True
