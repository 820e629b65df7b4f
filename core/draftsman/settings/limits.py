"""Limits of the jobs that run at a time, and of the starts of runs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from draftsman.settings.repo_keys import ByRepo
from draftsman.settings.section import Section

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MAX_PERIOD: Final = 31 * 86_400
_MAX_COUNT: Final = 1_000_000
_RATE: Final = re.compile(r"(\d{1,7})\s*/\s*(\d{0,7})([smhd])")


def parse_rate(text: str) -> tuple[int, float]:
    """Return the count and the seconds of a rate such as `20/1h`; raises ValueError."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise ValueError("a rate must be COUNT/PERIOD, such as 20/1h or 5/s; units: s, m, h, d")
    count = int(match[1])
    seconds = int(match[2] or 1) * _UNITS[match[3]]
    if not 1 <= count <= _MAX_COUNT:
        raise ValueError(f"the count of a rate must be 1 to {_MAX_COUNT}")
    if not 1 <= seconds <= _MAX_PERIOD:
        raise ValueError("the period of a rate must be 1 second to 31 days")
    return count, float(seconds)


def _check_rate(value: str) -> str:
    parse_rate(value)
    return value


_Rate = Annotated[str, AfterValidator(_check_rate)]
_Count = Annotated[int, Field(ge=1, le=1_000_000)]


class RateSettings(Section):
    """A limit of the starts of runs."""

    rate: _Rate | None = Field(None, examples=["20/1h"])
    """Starts of runs, as COUNT/PERIOD in s, m, h or d: no more than COUNT in any PERIOD. Unset:
    unlimited."""
    burst: _Count | None = Field(None, examples=[5])
    """Size of a token bucket that the rate fills instead: that many starts at once, and then the
    rate. Unset: no bucket."""

    @model_validator(mode="after")
    def _check_burst(self) -> Self:
        if self.burst is not None and self.rate is None:
            raise ValueError("burst needs a rate, such as rate = '20/1h'")
        return self


class UsageLimitSettings(RateSettings):
    """A limit of the jobs that run at a time, of the starts of runs, or of both."""

    running: _Count | None = Field(None, examples=[2])
    """Jobs that are claimed or run at a time. Unset: unlimited."""

    @model_validator(mode="after")
    def _check_limit(self) -> Self:
        if self.running is None and self.rate is None:
            raise ValueError("a limit needs running, rate or both")
        return self


class QueueLimitSettings(UsageLimitSettings):
    """A limit of the jobs of a queue, and the order of its jobs."""

    partition: Literal["repo", "person", "agent", "type"] | None = Field(None, examples=["repo"])
    """repo, person, agent or type: jobs of equal priority are taken in turn across these, so
    that many jobs of one repository do not delay the few of another. Unset: in the order of
    submission."""

    @model_validator(mode="after")
    def _check_limit(self) -> Self:
        if self.running is None and self.rate is None and self.partition is None:
            raise ValueError("a limit of a queue needs running, rate or partition")
        return self


class KeyLimitSettings(RateSettings):
    """A limit of the jobs of a concurrency key, of which a single job runs at a time."""

    release_while_waiting: bool = False
    """Whether a job gives up its key while it waits for a person; it waits for the key again when
    it is resumed."""

    @model_validator(mode="after")
    def _check_limit(self) -> Self:
        if self.rate is None and not self.release_while_waiting:
            raise ValueError("a limit of a key needs rate or release_while_waiting")
        return self


class UsageSettings(Section):
    """Limits of the jobs that run at a time, and of the starts of runs (docs/limits.md).

    They are over all workers and hosts, by scope and value. "*" is each value without a limit of
    its own. The leader writes them to the database at the start of its term, and all workers obey
    these.
    """

    all: UsageLimitSettings | None = Field(
        None, examples=[{"running": 50, "rate": "1000/1h", "burst": 100}]
    )
    """All jobs together, with the keys of the tables below. Unset: unlimited."""
    queue: dict[str, QueueLimitSettings] = Field(default_factory=dict, examples=[{"nightly": {}}])
    """Jobs of a queue."""
    type: dict[str, UsageLimitSettings] = Field(
        default_factory=dict, examples=[{"run_agent": {"running": 4, "rate": "60/1h", "burst": 10}}]
    )
    """Jobs of a type."""
    agent: dict[str, UsageLimitSettings] = Field(
        default_factory=dict, examples=[{"*": {"running": 10, "rate": "60/1h", "burst": 10}}]
    )
    """Jobs that name this agent in their request."""
    repo: Annotated[dict[str, UsageLimitSettings], ByRepo] = Field(
        default_factory=dict, examples=[{"*": {"running": 2, "rate": "20/1h", "burst": 5}}]
    )
    """Jobs of a repository, by name, owner/name or host/owner/name; a name without its host is a
    single limit for all hosts."""
    person: dict[str, UsageLimitSettings] = Field(
        default_factory=dict, examples=[{"*": {"running": 10, "rate": "100/1d", "burst": 20}}]
    )
    """Jobs of a requester."""
    concurrency_key: dict[str, KeyLimitSettings] = Field(
        default_factory=dict, examples=[{"deploy": {"rate": "4/1h", "burst": 2}}]
    )
    """Jobs of a concurrency key, of which a single job runs at a time in any case."""

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        for scope in ("queue", "type", "agent", "repo", "person", "concurrency_key"):
            if "" in getattr(self, scope):
                raise ValueError(f"a limit of {scope} has an empty name; '*' is each {scope}")
        return self

    def rules(self) -> list[dict[str, Any]]:
        """Return a row of the table `limits` for each limit, in sorted order."""
        rules = [] if self.all is None else [_rule("all", "*", self.all)]
        for scope in ("agent", "concurrency_key", "person", "queue", "repo", "type"):
            limits = getattr(self, scope)
            rules += [_rule(scope, value, limits[value]) for value in sorted(limits)]
        return rules


def _rule(scope: str, value: str, limit: RateSettings) -> dict[str, Any]:
    values = limit.model_dump(exclude_defaults=True)
    if limit.rate is not None:
        values["rate"], values["period"] = parse_rate(limit.rate)
    return {"scope": scope, "value": value, **values}
