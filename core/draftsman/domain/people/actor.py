"""Who does something."""

from __future__ import annotations

from dataclasses import dataclass

from draftsman.domain.job import Source


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody on a channel, and the person behind it where one is mapped.

    `id` is the channel's own id: a login, a Slack user, a Trello member.
    """

    channel: Source
    id: str
    display_name: str
    person: str | None = None
    roles: frozenset[str] = frozenset()
    owner: bool = False
    """The owner of an embedded database: has every role and may approve his own jobs."""

    @property
    def name(self) -> str:
        """How the trail records it: `cli:anna`."""
        return f"{self.channel}:{self.id}"

    @property
    def voter(self) -> str:
        """One per human: the person, whatever the channel; else the channel's id."""
        return self.person or self.name


SYSTEM = Actor(Source.INTERNAL, "system", "draftsman")
