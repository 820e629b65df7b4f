"""The App Home: open questions for its viewer, and the viewer's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.people.policy import Verb
from draftsman.errors import NotPermitted
from draftsman_bots.slack.outbound import modal_views
from draftsman_bots.slack.outbound.modal_views import OwnJobs
from draftsman_bots.slack.parsers import payloads
from draftsman_bots.slack.usecases.access import authorize_person, may_answer

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman.domain.people.actor import Actor
    from draftsman.domain.question import Question
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.parsers.payloads import SlackUser

MAX_SCANNED: Final = 200
"""Open questions that are filtered for the viewer; the first to expire come first."""


def register(app: AsyncApp, desk: BotContext) -> None:
    """Register the event."""

    async def opened(ack: Any, body: dict[str, Any]) -> None:
        who = payloads.parse_home_opened(body)
        if who is not None:
            publish(desk, who)
        await ack()

    app.event("app_home_opened")(opened)


def publish(desk: BotContext, who: SlackUser) -> None:
    """Publish the user's App Home, in the background."""
    desk.background.spawn(_publish(desk, who))


async def _publish(desk: BotContext, who: SlackUser) -> None:
    try:
        actor = await authorize_person(desk, who)
        found = await _asked(desk, actor), await _jobs(desk, actor)
        view = modal_views.home(*found, desk.settings.command)
    except NotPermitted as error:
        view = modal_views.home_denied(str(error))
    await desk.client.views_publish(user_id=who.id, view=view)


async def _asked(desk: BotContext, actor: Actor) -> list[Question]:
    """Return the open questions that this person may answer."""
    found = await desk.rt.questions.open(limit=MAX_SCANNED)
    return [question for question in found if await may_answer(desk, actor, question)]


async def _jobs(desk: BotContext, actor: Actor) -> OwnJobs:
    """Return this person's newest jobs from any channel, and the permitted actions."""
    page = await desk.rt.read_model.page(invoker=actor.voter, limit=modal_views.HOME_JOBS + 1)
    allowed = [verb for verb in (Verb.CANCEL, Verb.RETRY) if _may(desk, actor, verb)]
    return OwnJobs(page.jobs, frozenset(allowed), page.scanned_to is not None)


def _may(desk: BotContext, actor: Actor, verb: Verb) -> bool:
    """Return whether this person may do that to their own jobs."""
    try:
        desk.rt.policy.check(actor, verb, invoker=actor.voter)
    except NotPermitted:
        return False
    return True
