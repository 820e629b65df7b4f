"""The bot's Trello account: read at startup, and never a linked person's account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.errors import ConfigError, DatabaseUnreachable, Failure
from draftsman.people.actor import Actor
from draftsman_bots.trello.ids import is_id

if TYPE_CHECKING:
    from draftsman.processes.lifecycle import StopSignal
    from draftsman_bots.trello.context import BotContext

BACKOFF: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before each retry; the last repeats."""
PROBLEM: Final = "identity"


async def resolve_identity(context: BotContext, stop: StopSignal) -> None:
    """Read the bot's account from Trello, with retries.

    Raises ConfigError if the account is linked to a person: their comments could not be
    distinguished from the bot's.
    """
    context.health.pending(PROBLEM, "waiting for Trello to return the token's account")
    for attempt in range(10**9):
        try:
            member = await context.trello.get("/members/me", fields="username,fullName")
            if is_id(member.get("id") if isinstance(member, dict) else None):
                await _check(context, member["id"])
                context.me.username = str(member.get("username") or "")
                context.me.id = member["id"]
                context.health.clear(PROBLEM)
                return
            context.health.problem(PROBLEM, "Trello returned no account for the token")
        except (Failure, DatabaseUnreachable) as error:
            context.health.problem(PROBLEM, f"cannot read the account of the Trello token: {error}")
        if await stop.wait(BACKOFF[min(attempt, len(BACKOFF) - 1)]):
            return


async def _check(context: BotContext, id: str) -> None:
    actor = await context.rt.people.actor(Actor("trello", id, id))
    if actor.person is not None:
        raise ConfigError(
            f"[trello] token: belongs to {actor.person}, and the bot cannot tell its comments from"
            " theirs; create a separate Trello account for the bot and use its token"
        )
