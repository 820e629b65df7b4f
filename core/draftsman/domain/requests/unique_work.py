"""Unique work: requests that repeat an earlier job, and join or replace it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

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

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.debounce is not None and (self.replace or self.seconds is not None):
            raise ValueError("use debounce alone, or a period and replace")
        if self.states not in (None, UniqueStates.UNFINISHED) and self.debounce is not None:
            raise ValueError("debounce replaces only a job that has not started; omit the states")
        if self.debounce_limit is not None and self.debounce_limit < (self.debounce or PERIOD):
            raise ValueError("the debounce limit requires a debounce, and is at least as long")
        return self

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
