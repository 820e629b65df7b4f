"""Results of the checks of `draftsman doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check; `hint` says how to fix the problem."""

    status: Literal["ok", "warn", "fail"]
    text: str
    hint: str | None = None
