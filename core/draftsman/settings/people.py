"""People, with accounts and roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from draftsman.settings.hours import Hours, WorkingHours, Zone
from draftsman.settings.section import Section

Role = Literal["invoker", "responder", "approver", "operator"]


class PersonSettings(Section):
    """People, their roles and identities.

    The embedded database loads them at each start; a server stores its own, which its owner imports
    from here: draftsman people import (docs/security.md).
    """

    login: str | None = Field(None, examples=["anna"])
    """Login on this machine, or the database role on a remote server. Unset: no command line."""
    roles: tuple[Role, ...] = Field((), examples=[["invoker", "responder", "approver", "operator"]])
    """invoker (submits), responder (answers), approver (approves), operator (all other actions)."""
    timezone: Zone | None = Field(None, examples=["Europe/Berlin"])
    """Time zone, a name of the IANA database. Unset: that of [questions]."""
    quiet_hours: Hours | None = Field(None, examples=["22:00-07:00"])
    """Quiet hours, in this time zone; "none": none. Unset: those of [questions]."""
    working_hours: WorkingHours | None = Field(
        None, examples=["Mon-Thu 09:00-17:00, Fri 09:00-13:00"]
    )
    """Working hours, in this time zone; "none": at any time. Unset: those of [questions]."""
    holidays: str | None = Field(None, min_length=1, examples=["berlin"])
    """Table of [holidays]; "none": no holidays. Unset: that of [questions]."""

    @property
    def accounts(self) -> dict[str, tuple[str, ...]]:
        """Accounts by channel, the keys that packages add."""
        values = {
            name: getattr(self, name)
            for name in type(self).model_fields.keys() - PersonSettings.model_fields.keys()
        }
        return {
            name: (value,) if isinstance(value, str) else tuple(value)
            for name, value in sorted(values.items())
            if value
        }


def check_people(people: Mapping[str, PersonSettings], groups: Mapping[str, Iterable[str]]) -> None:
    """Raise ValueError for an unknown member of a group, or an account of two people."""
    for group, members in groups.items():
        if unknown := [name for name in members if name not in people]:
            raise ValueError(f"groups.{group} contains {unknown[0]!r}, which is not in people")
    owners: dict[tuple[str, str], str] = {}
    for name, person in people.items():
        logins = {"login": (person.login,) if person.login else ()}
        for channel, accounts in {**logins, **person.accounts}.items():
            for account in accounts:
                if (other := owners.setdefault((channel, account), name)) != name:
                    raise ValueError(
                        f"people.{other} and people.{name} have the same {channel}: {account!r}"
                    )
