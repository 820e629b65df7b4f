"""Limits of concurrency and rates, and how much of them is used. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from draftsman.formats.times import clock_with_zone
from draftsman.ids import job_name

SHOWN_JOBS: Final = 5
"""Jobs that a text names."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_NAMES: Final = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_SCOPES: Final = {"all": "all jobs", "concurrency_key": "concurrency key"}


def period_text(seconds: float) -> str:
    """Return a period in its largest whole unit, such as `1h` or `90m`."""
    unit = next(name for name in reversed(_UNITS) if seconds % _UNITS[name] == 0 or name == "s")
    return f"{seconds / _UNITS[unit]:g}{unit}"


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit of a value, and its use now.

    `taken` counts jobs that may be claimed, are claimed or run, of which `jobs` are the first;
    `free` is the number of jobs that may start now, None where it has no bound; `waiting` is at
    most 10,000. `next_at` is the next start that the rate allows, while jobs wait for it.
    """

    name: str
    running: int | None
    rate: int | None
    period: float | None
    burst: int | None
    taken: int
    started: int
    """Starts in the last period, of a limit without `burst`."""
    free: int | None
    waiting: int
    jobs: list[int]
    next_at: datetime | None

    @property
    def scope(self) -> str:
        """The scope, such as `repo`."""
        return self.name.partition(":")[0]

    @property
    def value(self) -> str:
        """The value of the scope, such as the name of a repository; `*`: each."""
        return self.name.partition(":")[2]

    @property
    def title(self) -> str:
        """Scope and value for people, such as `repo shop`."""
        scope = _SCOPES.get(self.scope, self.scope)
        if self.scope == "all":
            return scope
        return f"each {scope}" if self.value == "*" else f"{scope} {self.value}"

    @property
    def is_rule(self) -> bool:
        """Whether it applies to each value, and is not the use of one of them."""
        return self.value == "*" and self.scope != "all"

    @property
    def job_names(self) -> str:
        """The first jobs that have places."""
        names = ", ".join(job_name(number) for number in self.jobs[:SHOWN_JOBS])
        omitted = self.taken - min(len(self.jobs), SHOWN_JOBS)
        return f"{names} and {omitted} more" if names and omitted > 0 else names

    @property
    def rate_text(self) -> str:
        """The rate as configured, such as `20/1h`."""
        if self.rate is None or self.period is None:
            return ""
        burst = f", burst {self.burst}" if self.burst is not None else ""
        return f"{self.rate}/{period_text(self.period)}{burst}"

    def full(self) -> str:
        """Return why no further job may start now; empty if one may."""
        subject = self.title if self.scope != "all" else "all jobs together"
        if self.running is not None and self.taken >= self.running:
            names = f": {self.job_names}" if self.jobs else ""
            return f"{self.taken} of {self.running} running for {subject}{names}"
        if self.free is None or self.free > 0 or self.rate is None:
            return ""
        then = f"; next at {clock_with_zone(self.next_at)}" if self.next_at else ""
        if self.burst is not None:
            return f"the rate of {self.rate_text} is used for {subject}{then}"
        return f"{self.started} of {self.rate} started {self._window()} for {subject}{then}"

    def _window(self) -> str:
        text = period_text(self.period or 0)
        if text[:-1] == "1":
            return f"in the last {_NAMES[text[-1]]}"
        return f"in the last {text[:-1]} {_NAMES[text[-1]]}s"


@dataclass(frozen=True, slots=True)
class LimitChange:
    """A change of the limits, which replaced all of them."""

    id: int
    limits: list[dict[str, Any]]
    actor: str
    created_at: datetime

    @property
    def text(self) -> str:
        """The limits, such as `repo shop: running 2, rate 20/1h`."""
        return "; ".join(_rule_text(rule) for rule in self.limits) or "no limits"


def _rule_text(rule: dict[str, Any]) -> str:
    use = LimitUse(
        name=f"{rule['scope']}:{rule['value']}",
        running=None,
        rate=rule.get("rate"),
        period=rule.get("period"),
        burst=rule.get("burst"),
        taken=0,
        started=0,
        free=None,
        waiting=0,
        jobs=[],
        next_at=None,
    )
    clauses = [f"running {rule['running']}"] if "running" in rule else []
    if use.rate_text:
        clauses.append(f"rate {use.rate_text}")
    if rule.get("partition"):
        clauses.append(f"in turn by {rule['partition']}")
    if rule.get("release_while_waiting"):
        clauses.append("release_while_waiting")
    return f"{use.title}: {', '.join(clauses)}"


def bucket_title(name: str) -> str:
    """Return the title of a bucket: `repo shop` of `repo:shop`."""
    return LimitUse(
        name=name,
        running=None,
        rate=None,
        period=None,
        burst=None,
        taken=0,
        started=0,
        free=None,
        waiting=0,
        jobs=[],
        next_at=None,
    ).title
