"""A Slack user, as payloads show them. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class UserOrigin(StrEnum):
    """A user's origin, as far as a payload shows it."""

    HOME = "home"
    UNSURE = "unsure"
    """In a workspace that may belong to the organization."""
    ELSEWHERE = "elsewhere"


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

    def origin(self, home: str | None, org: str | None = None) -> UserOrigin:
        """Return the user's origin; `home` is the home workspace, if it is known.

        `org` is its organization, "" if it has none; unknown values come from the payload. All
        workspaces of an organization share user ids.
        """
        home_team = home or self.app_team
        org = self.enterprise if org is None else org
        org = org or (home_team if home_team.startswith("E") else "")
        if not self.team or not home_team or self.team in (home_team, org):
            return UserOrigin.HOME
        if not org:
            return UserOrigin.ELSEWHERE
        if self.org == org or self.is_internal_channel:
            return UserOrigin.HOME
        return UserOrigin.ELSEWHERE if self.org or self.team.startswith("E") else UserOrigin.UNSURE

    def is_stranger(
        self, home: str | None, org: str | None = None, colleagues: Collection[str] = ()
    ) -> bool:
        """Return whether the user belongs to another company.

        `colleagues` are workspaces, and users as `U…@T…`, that are verified. An installation for a
        whole organization is assumed to meet only its own users.
        """
        origin = self.origin(home, org)
        if origin is not UserOrigin.UNSURE:
            return origin is UserOrigin.ELSEWHERE
        is_colleague = self.team in colleagues or f"{self.id}@{self.team}" in colleagues
        return not is_colleague and not (home or self.app_team).startswith("E")

    def account(
        self, home: str | None, org: str | None = None, colleagues: Collection[str] = ()
    ) -> str:
        """Return the account: the id, for an external user followed by `@` and the workspace.

        Ids are unique only within an organization: elsewhere the same id is another person.
        """
        stranger = self.is_stranger(home, org, colleagues)
        return f"{self.id}@{self.team}" if stranger else self.id
