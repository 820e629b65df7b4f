"""The accounts of people on forges."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from draftsman.field_errors import matching
from draftsman.settings.section import Section, Several

_ForgeLogin = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]+:[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
        "must be the name of a forge and a login, such as github:anna",
    ),
    AfterValidator(str.lower),
]


class ForgeAccount(Section):
    """The accounts of a person."""

    forge: Several[_ForgeLogin] = Field((), examples=[["github:anna", "gitlab:anna.berg"]])
    """Tables of forges, and the logins there. Empty: not on a forge."""
