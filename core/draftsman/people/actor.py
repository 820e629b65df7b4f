"""Actors: the origin of an action."""

from __future__ import annotations

from dataclasses import dataclass

from draftsman.channels import ChannelName
from draftsman.jobs.job import Source


@dataclass(frozen=True, slots=True)
class Actor:
    """An account on a channel, with the person that it is mapped to.

    `id` is the channel's id: a login, a user of a chat.
    """

    channel: ChannelName
    id: str
    display_name: str
    person: str | None = None
    roles: frozenset[str] = frozenset()
    owner: bool = False
    """Whether it is the owner of an embedded database, who has every role and may self-approve.

    Only in a terminal and the dashboard, which prove that it is the user of the operating system.
    """

    @property
    def name(self) -> str:
        """Name of the actor in events: `cli:anna`."""
        return f"{self.channel}:{self.id}"

    @property
    def voter(self) -> str:
        """Identity for votes: the person on all channels, else the account."""
        return self.person or self.name


SYSTEM = Actor(Source.INTERNAL, "system", "draftsman")
