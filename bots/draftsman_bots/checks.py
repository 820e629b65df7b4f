"""What `draftsman doctor` finds out about a chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at; `then` says what to do about it."""

    status: Literal["ok", "warn", "fail"]
    text: str
    then: str | None = None
