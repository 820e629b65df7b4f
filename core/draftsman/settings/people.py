"""People, with accounts and roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from draftsman.field_errors import matching
from draftsman.settings.hours import Hours, WorkingHours, Zone
from draftsman.settings.section import Section

Role = Literal["invoker", "responder", "approver", "operator"]
_ForgeLogin = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]+:[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
        "must be the name of a forge and a login, such as github:anna",
    ),
    AfterValidator(str.lower),
]
_PagerUser = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]+:[^\s:]{1,254}",
        "must be the name of a pager and a user id or an e-mail address, such as ops:PLH1HKV",
    ),
    AfterValidator(str.lower),
]
_PagerUsers = Annotated[
    tuple[_PagerUser, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value or ()),
    AfterValidator(lambda value: tuple(dict.fromkeys(value))),
]
ACCOUNTS: Final = ("login", "slack", "trello", "forge", "pager")
"""Keys of a person with accounts, each of which belongs to a single person."""


class PersonSettings(Section):
    """People, their roles and identities.

    The embedded database loads them at each start; a server stores its own, which its owner imports
    from here: draftsman people import (docs/security.md).
    """

    login: str | None = Field(None, examples=["anna"])
    """Login on this machine, or the database role on a remote server. Unset: no command line."""
    slack: str | None = Field(None, examples=["U012ABCDEF"])
    """Slack member id. Unset: not in Slack."""
    trello: str | None = Field(None, examples=["5f1e0c9a8b7d6e5f4a3b2c1d"])
    """Trello member id. Unset: not in Trello."""
    forge: _ForgeLogin | None = Field(None, examples=["github:anna"])
    """Table of a forge, and login there. Unset: not on a forge."""
    pager: _PagerUsers = Field((), examples=[["ops:PLH1HKV"]])
    """Tables of pagers, each with a user id or e-mail address there; without one, acknowledgments
    there do not count."""
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


def check_people(people: Mapping[str, PersonSettings], groups: Mapping[str, Iterable[str]]) -> None:
    """Raise ValueError for an unknown member of a group, or an account of two people."""
    for group, members in groups.items():
        if unknown := [name for name in members if name not in people]:
            raise ValueError(f"groups.{group} contains {unknown[0]!r}, which is not in people")
    for channel in ACCOUNTS:
        owners: dict[str, str] = {}
        for name, person in people.items():
            value = getattr(person, channel) or ()
            for account in (value,) if isinstance(value, str) else value:
                if (other := owners.setdefault(account, name)) != name:
                    raise ValueError(
                        f"people.{other} and people.{name} have the same {channel}: {account!r}"
                    )
