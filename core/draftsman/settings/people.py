"""People, with accounts and roles."""

from __future__ import annotations

from typing import Annotated, Literal

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


class PersonSettings(Section):
    """A person, with accounts and roles."""

    login: str | None = None
    """Login on this machine, or the database role on a remote server."""
    slack: str | None = None
    trello: str | None = None
    forge: _ForgeLogin | None = None
    """Table of the forge, and login there: `github:anna`."""
    pager: _PagerUsers = ()
    """Tables of pagers, each with a user id or e-mail address there: `ops:PLH1HKV`."""
    roles: tuple[Role, ...] = ()
    timezone: Zone | None = None
    """Time zone; None: as in `[questions]`."""
    quiet_hours: Hours | None = None
    """Quiet hours in that time zone, without interruptions; None: as in `[questions]`."""
    working_hours: WorkingHours | None = None
    """Working hours in that time zone; `none`: at any time; None: as in `[questions]`."""
    holidays: str | None = Field(None, min_length=1)
    """Table of `[holidays]`; `none`: no holidays; None: as in `[questions]`."""
