"""A link that signs the author of a command in to the web inbox, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.actions.action import Call
from draftsman.actions.people import sign_in
from draftsman_bots.slack.deliveries.mrkdwn import escape, local_time
from draftsman_bots.slack.ephemeral import Reply
from draftsman_bots.web.settings import WebSettings

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.requests.job_requests import RequestOrigin

NO_URL: Final = (
    "The web inbox has no public address. An operator can set `url` of `[web]` in the configuration"
    " of the bots and of `draftsman web`."
)
COMMAND_ONLY: Final = "To get a link, type `{} web` outside of threads: only you see the reply."


async def create(ctx: BotContext, actor: Actor, origin: RequestOrigin) -> Reply:
    """Return a link for the person; it replaces their previous link. Raises NotPermitted.

    A message may be delivered several times, and each link replaces the previous: only the reply
    to a slash command has one.
    """
    if origin.interaction is None:
        return Reply(COMMAND_ONLY.format(ctx.settings.command))
    web = WebSettings.in_use(ctx.rt.settings)
    if web.url is None or not web.is_secure:
        return Reply(NO_URL)
    url, expires_at = (await sign_in(Call(ctx.rt, actor), web.origin)).value
    return Reply(
        f"<{escape(url)}|Sign in to the web inbox> as {escape(actor.person or '')}: it works once,"
        f" until {local_time(expires_at)}. Do not share it."
    )
