"""The App Home: what waits for the person who looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman_bots.slack import forms, inbound
from draftsman_bots.slack.listeners.people import admit, may_answer

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
    actor = await admit(desk, who)
    asked = [] if actor.person is None else await _asked(desk, actor)
    view = forms.home(asked, actor.person is not None, desk.settings.command)
    await desk.client.views_publish(user_id=who.id, view=view)


async def _asked(desk: Desk, actor: Actor) -> list[Question]:
    """Return the open questions that this person may answer."""
    found = await desk.rt.questions.open(limit=LOOKED_AT)
    return [question for question in found if await may_answer(desk, actor, question)]
