"""People in Slack, and whether they are of our company. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class UserOrigin(StrEnum):
    """Where a person belongs, as far as a payload says."""

    HOME = "home"
    UNSURE = "unsure"
    """In a workspace that may be one of our organization."""
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class SlackUser:
    """A person in Slack: of the workspace `team`, in one that has the app: `own`.

    Any of these is "" where the payload does not say.
    """

    id: str
    name: str = ""
    team: str = ""
    own: str = ""
    enterprise: str = ""
    """The organization of the workspace that has the app."""
    org: str = ""
    """The organization of the person's own workspace."""
    inside: bool | None = None
    """Whether this is a channel that no other organization shares."""
    channel: str = ""

    def origin(self, own: str | None, org: str | None = None) -> UserOrigin:
        """Return where they belong; `own` is our workspace, which may be known.

        `org` is its organization, "" for none; where neither is known, the payload's count. All
        workspaces of an organization share the ids of people.
        """
        ours = own or self.own
        org = self.enterprise if org is None else org
        org = org or (ours if ours.startswith("E") else "")
        if not self.team or not ours or self.team in (ours, org):
            return UserOrigin.HOME
        if not org:
            return UserOrigin.ELSEWHERE
        if self.org == org or self.inside:
            return UserOrigin.HOME
        return UserOrigin.ELSEWHERE if self.org or self.team.startswith("E") else UserOrigin.UNSURE

    def is_stranger(
        self, own: str | None, org: str | None = None, colleagues: Collection[str] = ()
    ) -> bool:
        """Return whether they are of another company than ours.

        `colleagues` are workspaces, and people as `U…@T…`, that are known to be of ours. An
        installation for a whole organization is taken to meet its own people.
        """
        origin = self.origin(own, org)
        if origin is not UserOrigin.UNSURE:
            return origin is UserOrigin.ELSEWHERE
        known = self.team in colleagues or f"{self.id}@{self.team}" in colleagues
        return not known and not (own or self.own).startswith("E")

    def account(
        self, own: str | None, org: str | None = None, colleagues: Collection[str] = ()
    ) -> str:
        """Return whom the id means: a stranger's is followed by `@` and the workspace it is of.

        Ids are unique within an organization only: elsewhere the same id is another person.
        """
        stranger = self.is_stranger(own, org, colleagues)
        return f"{self.id}@{self.team}" if stranger else self.id
