"""The accounts of people in pagers."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from draftsman.field_errors import matching
from draftsman.settings.section import Section

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


class PagerAccount(Section):
    """The accounts of a person."""

    pager: _PagerUsers = Field((), examples=[["ops:PLH1HKV"]])
    """Tables of pagers, each with a user id or e-mail address there; without one, acknowledgments
    there do not count."""
