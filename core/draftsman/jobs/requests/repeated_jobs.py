"""Which earlier jobs a request can repeat. Without pydantic, for the help of commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

UniqueBy = Literal["key", "subject", "args"]
"""The common part of a request and an earlier job; `args` is all that a digest includes."""


class UniqueStates(StrEnum):
    """The jobs that a request can repeat, by their status."""

    UNFINISHED = "unfinished"
    SUCCESSFUL = "successful"
    """Unfinished and completed jobs."""
    ANY = "any"
