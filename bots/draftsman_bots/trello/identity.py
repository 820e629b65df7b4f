"""Who the bot is in Trello: asked until Trello says it, and nobody else's account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.errors import ConfigError, DatabaseUnreachable, Failure
from draftsman_bots.trello.ids import is_id

if TYPE_CHECKING:
    from draftsman.loops.lifecycle import StopSignal
    from draftsman_bots.trello.context import BotContext

BACKOFF: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds until Trello is asked again who we are, one after the other; the last repeats."""
PROBLEM: Final = "identity"


@dataclass(slots=True)
class Identity:
    """The bot's own member; "" until Trello said it."""

    id: str = ""
    username: str = ""

    def __bool__(self) -> bool:
        return bool(self.id)


async def resolve_identity(desk: BotContext, stop: StopSignal) -> None:
    """Ask Trello until it answers.

    Raises ConfigError where the account is a person's: what they say could not be told from what
    the bot says.
    """
    desk.health.pending(PROBLEM, "Trello has not said yet whose the token is")
    for attempt in range(10**9):
        try:
            found = await desk.trello.get("/members/me", fields="username,fullName")
            if is_id(found.get("id") if isinstance(found, dict) else None):
                await _check(desk, found["id"])
                desk.me.username = str(found.get("username") or "")
                desk.me.id = found["id"]
                desk.health.clear(PROBLEM)
                return
            desk.health.problem(PROBLEM, "Trello does not say whose the token is")
        except (Failure, DatabaseUnreachable) as error:
            desk.health.problem(PROBLEM, f"it is not known whose the Trello token is: {error}")
        if await stop.wait(BACKOFF[min(attempt, len(BACKOFF) - 1)]):
            return


async def _check(desk: BotContext, id: str) -> None:
    actor = await desk.rt.people.actor(Actor(Source.TRELLO, id, id))
    if actor.person is not None:
        raise ConfigError(
            f"[trello] token: it belongs to {actor.person}, whose comments could not be told from"
            " the bot's; make the bot a Trello account of its own"
        )
