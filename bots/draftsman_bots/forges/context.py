"""Shared state of the bot for forges, and the forge of an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from draftsman.errors import NotPermitted
from draftsman.forges.api.connection import discussion_of
from draftsman.forges.forge_event import EventKind
from draftsman.forges.issue_target import IssueTarget
from draftsman.people.actor import Actor

if TYPE_CHECKING:
    from draftsman.forges.forge import Discussion
    from draftsman.forges.forge_event import ForgeEvent
    from draftsman.runtime import Runtime
    from draftsman.settings.forges import ForgeSettings


class OtherAccount(NotPermitted):
    """The login of a person has another account than before."""


@dataclass(frozen=True, slots=True)
class EventContext:
    """Services, and the issue or pull request that an event is about."""

    rt: Runtime
    forge: str
    """Table of the forge."""
    settings: ForgeSettings
    event: ForgeEvent

    @property
    def issue(self) -> IssueTarget:
        """The issue or pull request."""
        is_pull = self.event.kind is EventKind.ANSWER
        separate = is_pull and self.settings.plugin.has_pull_numbers
        return IssueTarget(self.forge, self.event.project, self.event.number, separate)

    @property
    def target(self) -> str:
        """Its notation as a target of messages."""
        return f"forge:{self.issue.target}"

    @property
    def key(self) -> str:
        """Key of the event among all forges."""
        return f"{self.target}:{self.event.key}"

    @property
    def discussion(self) -> Discussion:
        """The comments there."""
        return discussion_of(self.rt.settings, self.issue)

    @property
    def account(self) -> Actor:
        """The author of the event, without a person."""
        login = f"{self.forge}:{self.event.author}".casefold()
        return Actor("forge", login, self.event.author)

    async def actor(self) -> Actor:
        """Return the author of the event, with the person of the login if it is mapped.

        Raises OtherAccount if another account acted under this login before.
        """
        login = self.account.id
        actor = await self.rt.people.actor(self.account)
        if actor.person is not None and self.event.author_id:
            bound_id = await self.rt.people.bind_account(actor, self.event.author_id)
            if bound_id != self.event.author_id:
                raise OtherAccount(
                    f"this is not the account that is {actor.person}'s: {login} was used by the"
                    f" account {bound_id} of the forge, and this is {self.event.author_id}. If it"
                    " is the same person, an operator can run"
                    f" `draftsman people unlink forge:{login}`"
                )
        return actor
