"""Unique work: requests that repeat an earlier job, and join or replace it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

PERIOD = 86_400 * 366
"""Longest period, in seconds."""
DEBOUNCES = 10
"""Periods of a debounce after which the job starts in any case."""


UniqueBy = Literal["key", "subject", "args"]
"""The common part of a request and an earlier job; `args` is all that a digest includes."""


class UniqueStates(StrEnum):
    """The jobs that a request can repeat, by their status."""

    UNFINISHED = "unfinished"
    SUCCESSFUL = "successful"
    """Unfinished and completed jobs."""
    ANY = "any"


class Unique(BaseModel):
    """The condition under which a request repeats an earlier job, and joins or replaces it.

    A job that has not started is replaced with `replace` and with `debounce`; the request then
    waits `debounce` seconds, but starts at the latest `debounce_limit` seconds after the first
    request. Otherwise the request joins the job: it is kept as an event of it.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    by: UniqueBy | None = None
    """Default: the first of these that the request has."""
    seconds: float | None = Field(None, gt=0, le=PERIOD)
    """How old the job may be; default: any age."""
    states: UniqueStates | None = None
    """Default: successful with `seconds`, else unfinished."""
    replace: bool = False
    debounce: float | None = Field(None, gt=0, le=PERIOD)
    debounce_limit: float | None = Field(None, gt=0, le=PERIOD)
    """Longest time from the first request to the start; default: DEBOUNCES times `debounce`."""

    @field_validator("debounce")
    @classmethod
    def _check_debounce(cls, value: float | None, info: ValidationInfo) -> float | None:
        others = info.data
        if value is None:
            return None
        if others.get("replace") or others.get("seconds") is not None:
            raise ValueError("use debounce alone, or a period and replace")
        if others.get("states") not in (None, UniqueStates.UNFINISHED):
            raise ValueError("replaces only a job that has not started; omit the states")
        return value

    @field_validator("debounce_limit")
    @classmethod
    def _check_limit(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and value < (info.data.get("debounce") or PERIOD):
            raise ValueError("requires a debounce, and must be at least as long")
        return value

    @property
    def longest_debounce(self) -> float | None:
        """Seconds from the first request to the start of the job; None without debounce."""
        if self.debounce is None:
            return None
        return self.debounce_limit or min(PERIOD, self.debounce * DEBOUNCES)

    @property
    def considered(self) -> UniqueStates:
        """The jobs that a request can repeat."""
        if self.states is not None:
            return self.states
        return UniqueStates.UNFINISHED if self.seconds is None else UniqueStates.SUCCESSFUL

    @property
    def newest_wins(self) -> bool:
        """Whether a request replaces a job that has not started."""
        return self.replace or self.debounce is not None
