"""A Slack user, as payloads show them. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from draftsman.people.actor import Actor


class UserOrigin(StrEnum):
    """A user's origin, as far as a payload shows it."""

    HOME = "home"
    UNSURE = "unsure"
    """In a workspace that may belong to the organization."""
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Company:
    """The company whose members use the app, as far as it is known; None stands for unknown."""

    home: str | None = None
    """Its workspace with the app."""
    org: str | None = None
    """The organization of this workspace; "": none."""
    colleagues: Collection[str] = ()
    """Workspaces, and users as `U…@T…`, that are verified."""


@dataclass(frozen=True, slots=True)
class SlackUser:
    """A user of the workspace `team`, in the workspace `app_team`, which has the app.

    Each field is "" if the payload does not contain it.
    """

    id: str
    name: str = ""
    team: str = ""
    app_team: str = ""
    enterprise: str = ""
    """The organization of the workspace that has the app."""
    org: str = ""
    """The organization of the user's own workspace."""
    is_internal_channel: bool | None = None
    """Whether this is a channel that no other organization shares."""
    channel: str = ""

    def origin(self, company: Company) -> UserOrigin:
        """Return the user's origin; what is unknown of the company comes from the payload.

        All workspaces of an organization share user ids.
        """
        home_team = company.home or self.app_team
        org = self.enterprise if company.org is None else company.org
        org = org or (home_team if home_team.startswith("E") else "")
        if not self.team or not home_team or self.team in (home_team, org):
            return UserOrigin.HOME
        if not org:
            return UserOrigin.ELSEWHERE
        if self.org == org or self.is_internal_channel:
            return UserOrigin.HOME
        return UserOrigin.ELSEWHERE if self.org or self.team.startswith("E") else UserOrigin.UNSURE

    def is_stranger(self, company: Company) -> bool:
        """Return whether the user belongs to another company.

        An installation for a whole organization is assumed to meet only its own users.
        """
        origin = self.origin(company)
        if origin is not UserOrigin.UNSURE:
            return origin is UserOrigin.ELSEWHERE
        known = company.colleagues
        is_colleague = self.team in known or f"{self.id}@{self.team}" in known
        return not is_colleague and not (company.home or self.app_team).startswith("E")

    def actor(self, company: Company) -> Actor:
        """Return the user without a person; the id of a stranger has `@` and the workspace.

        Ids are unique only within an organization: elsewhere the same id is another person.
        """
        id = f"{self.id}@{self.team}" if self.is_stranger(company) else self.id
        return Actor("slack", id, self.name or self.id)
