"""The App Home: open questions for its viewer, and the viewer's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import NotPermitted
from draftsman.people.policy import Verb
from draftsman_bots.slack.home import modal_views
from draftsman_bots.slack.home.modal_views import OwnJobs
from draftsman_bots.slack.payloads.payloads import OpenedTab
from draftsman_bots.slack.people.access import authorize, require_person
from draftsman_bots.slack.requests import suggested_prompts

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.questions.question import OpenQuestion
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.people.user import SlackUser
    from draftsman_bots.slack.transport.dispatcher import EventListener

MAX_SCANNED: Final = 200
"""Open questions that are filtered for the viewer; the first to expire come first."""


def events(ctx: BotContext) -> dict[str, EventListener]:
    """Return the listeners of the App Home, and of the conversation with the agent."""

    async def opened(body: dict[str, Any]) -> None:
        tab = OpenedTab.model_validate(body)
        if tab.tab == "messages":
            suggested_prompts.on_conversation(ctx, tab)
        elif tab.tab in ("", "home") and tab.user_id:
            publish(ctx, tab.user)

    async def started(body: dict[str, Any]) -> None:
        suggested_prompts.on_conversation(ctx, OpenedTab.model_validate(body))

    async def moved(body: dict[str, Any]) -> None:
        """Ignore it: requests do not depend on the channel that the user looks at."""

    return {
        "app_home_opened": opened,
        "assistant_thread_started": started,
        "assistant_thread_context_changed": moved,
    }


def publish(ctx: BotContext, user: SlackUser, actor: Actor | None = None) -> None:
    """Publish the user's App Home, in the background; `actor` is that of an authorized user."""
    ctx.background.spawn(_publish(ctx, user, actor))


async def _publish(ctx: BotContext, user: SlackUser, actor: Actor | None) -> None:
    try:
        if actor is None:
            actor = await authorize(ctx, user)
        require_person(ctx, user, actor)
        questions = await _open_questions(ctx, actor)
        own_jobs = await _own_jobs(ctx, actor)
        counts = await ctx.rt.seen_by(actor).questions.counts(actor)
        view = modal_views.home(questions, counts.for_you, own_jobs, ctx.settings.command)
    except NotPermitted as error:
        view = modal_views.home_denied(str(error))
    await ctx.client.views_publish(user_id=user.id, view=view)


async def _open_questions(ctx: BotContext, actor: Actor) -> list[OpenQuestion]:
    """Return the open questions that wait for this person."""
    questions = await ctx.rt.seen_by(actor).questions.open(limit=MAX_SCANNED, fold_for=actor)
    return [question for question in questions if question.for_viewer]


async def _own_jobs(ctx: BotContext, actor: Actor) -> OwnJobs:
    """Return this person's newest jobs from any channel, and the permitted actions."""
    rt = ctx.rt.seen_by(actor)
    page = await rt.read_model.page(invoker=actor.voter, limit=modal_views.HOME_JOBS + 1)
    allowed = [verb for verb in (Verb.CANCEL, Verb.RETRY) if _is_permitted(ctx, actor, verb)]
    return OwnJobs(page.jobs, frozenset(allowed), page.scanned_to is not None)


def _is_permitted(ctx: BotContext, actor: Actor, verb: Verb) -> bool:
    """Return whether this person may do that to their own jobs."""
    try:
        ctx.rt.policy.check(actor, verb, invoker=actor.voter)
    except NotPermitted:
        return False
    return True
