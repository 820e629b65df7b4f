"""Schedules, their occurrences, and the decision which of them fire."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from draftsman.errors import UsageError
from draftsman.formats.amounts import counted
from draftsman.formats.near_names import did_you_mean
from draftsman.formats.times import span
from draftsman.jobs.status_display import Meaning
from draftsman.schedules.names import check_name
from draftsman.text import REQUEST_LIMIT, STORED_SENTENCE, clean_within_limit

# When a schedule is due: cron expressions in time zones, intervals, and single instants.
#
# cronsim evaluates an expression in wall time, without a zone. Instants follow the rules of Debian
# cron: an expression with a fixed minute and hour runs once, after the gap if the clock skips its
# time, and the first time if the clock repeats it; any other expression runs whenever the clock
# shows its time.


RULES: Final = "examples: '0 9 * * mon-fri', '@every 90m', '@daily', '@at 2030-12-31T18:00:00Z'"
_NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_EVERY: Final = re.compile(r"(?:[0-9]+[smhdw])+")
MIN_INTERVAL: Final = 60
MAX_INTERVAL: Final = 366 * 86400
"""Seconds between two occurrences of `@every`."""
_SHIFTS: Final = tuple(timedelta(hours=hours) for hours in (0, 1, 2, 3, 24))
"""Distances at which a change of the clock is searched for: it moves by at most a day."""
_START: Final = datetime.fromisoformat("2024-01-01")
"""A wall time from which a new expression is tried."""
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Timing:
    """A rule and its time zone. `anchor` is the instant from which `@every` counts."""

    rule: str
    zone: str
    anchor: datetime

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the occurrences after an instant, in order, in UTC."""
        if self.rule.startswith("@every "):
            seconds = _interval(self.rule)
            count = max((instant - self.anchor) // timedelta(seconds=seconds), 0)
            while True:
                count += 1
                yield self.anchor + timedelta(seconds=count * seconds)
        elif self.rule.startswith("@at "):
            at = _instant(self.rule)
            if at > instant:
                yield at
        else:
            yield from _cron(_NAMED.get(self.rule, self.rule), find_zone(self.zone), instant)

    def next(self, instant: datetime) -> datetime | None:
        """Return the first occurrence after an instant, or None."""
        return next(self.after(instant), None)


def parse_rule(text: str, zone: str) -> str:
    """Return a rule in its normal form; raises UsageError if it never occurs or is invalid."""
    rule = " ".join(text.split())
    find_zone(zone)
    if rule.startswith("@every"):
        _interval(rule)
    elif rule.startswith("@at"):
        rule = f"@at {_instant(rule).isoformat().replace('+00:00', 'Z')}"
    elif rule.startswith("@"):
        if rule not in _NAMED:
            raise UsageError(f"unknown rule {rule[:60]!r}; {RULES}")
    else:
        _expression(rule)
        if next(_walls(rule, _START), None) is None:
            raise UsageError(f"cron {rule[:60]!r} never occurs")
    return rule


def find_zone(name: str) -> ZoneInfo:
    """Return an IANA time zone; raises UsageError."""
    try:
        return _zone(name)
    except (KeyError, ValueError, OSError):
        near = did_you_mean(name, sorted(available_timezones()))
        tail = near or "; use a name such as Europe/Berlin"
        raise UsageError(f"unknown time zone {name[:60]!r}{tail}") from None


@lru_cache(maxsize=1000)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _interval(rule: str) -> int:
    text = rule.removeprefix("@every").strip()
    if _EVERY.fullmatch(text) is None:
        raise UsageError(f"{rule[:60]!r}: invalid interval; examples: @every 90m, @every 1h30m")
    counts = re.findall(r"([0-9]+)([smhdw])", text)
    seconds = sum(min(int(count), MAX_INTERVAL + 1) * _UNITS[unit] for count, unit in counts)
    if not MIN_INTERVAL <= seconds <= MAX_INTERVAL:
        raise UsageError(f"{rule[:60]!r}: an interval is at least 60s and at most 366d")
    return seconds


def _instant(rule: str) -> datetime:
    text = rule.removeprefix("@at").strip()
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError
        return at.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{rule[:60]!r}: invalid time; example: @at 2030-12-31T18:00:00Z"
        ) from None


def _expression(rule: str) -> None:
    """Raise UsageError for a cron expression that is not valid."""
    fields = rule.split()
    if len(fields) != 5:
        raise UsageError(
            f"cron {rule[:60]!r} has {counted(len(fields), 'field')}, not 5"
            " (minute, hour, day of month, month, day of week); " + RULES
        )
    try:
        CronSim(rule, _START)
    except (CronSimError, AssertionError, ValueError, RecursionError) as error:
        problem = str(error).removeprefix("Bad ") or "an invalid field"
        raise UsageError(f"cron {rule[:60]!r}: invalid {problem}; {RULES}") from None


def _walls(expression: str, after: datetime) -> Iterator[datetime]:
    """Yield the wall times of an expression after a wall time."""
    try:
        yield from CronSim(expression, after)
    except (RuntimeError, OverflowError):  # StopIteration inside of a generator; the year 9999
        return


def _cron(expression: str, zone: ZoneInfo, instant: datetime) -> Iterator[datetime]:
    """Yield the instants of an expression after an instant."""
    minute, hour = expression.split()[:2]
    fixed = not minute.startswith("*") and not hour.startswith("*")
    walls = _walls(expression, _first_wall(zone, instant) - _SECOND)
    repeated: list[datetime] = []
    last = instant
    for wall in walls:
        first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if first > second:  # the clock skips this time
            if not fixed:
                continue
            first = _end_of_gap(zone, second, first)
        while repeated and repeated[0] <= first:
            if (due := heapq.heappop(repeated)) > last:
                yield (last := due)
        if first > last:
            yield (last := first)
        if second > first and not fixed:
            heapq.heappush(repeated, second)
    while repeated:
        yield heapq.heappop(repeated)


def _first_wall(zone: ZoneInfo, instant: datetime) -> datetime:
    """Return the earliest wall time that the clock shows at an instant or later."""
    offsets = [(instant + shift).astimezone(zone).utcoffset() or timedelta() for shift in _SHIFTS]
    return (instant + min(offsets)).replace(tzinfo=None, microsecond=0) + (
        _SECOND if instant.microsecond else timedelta()
    )


def _end_of_gap(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """Return the instant between two others at which the clock of a zone is moved."""
    before = low.astimezone(zone).utcoffset()
    while high - low > _SECOND:
        middle = low + (high - low) // 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


GRACE: Final = timedelta(seconds=60)
"""Delay after which an occurrence counts as missed."""
MAX_LISTED: Final = 100
"""Missed occurrences of a schedule that are recorded one by one."""
MAX_JITTER: Final = 86_400
MAX_MISFIRES: Final = 1000
_SAMPLE: Final = 50
"""Occurrences whose distance is compared with the jitter."""


CODE: Final = "code"
"""Origin of the schedules that job types declare."""
DECLARED_BY: Final = f"schedule:{CODE}"
"""Who submits their jobs, and pauses those that are no longer declared."""


class Misfire(StrEnum):
    """Policy for occurrences that were missed, for example while no worker ran."""

    SKIP = "skip"
    LAST = "last"
    ALL = "all"


class Overlap(StrEnum):
    """Policy for an occurrence while the previous job is unfinished."""

    SKIP = "skip"
    QUEUE = "queue"
    CANCEL_RUNNING = "cancel-running"


class FireStatus(StrEnum):
    """Outcome of an occurrence."""

    WAITING = "waiting"
    FIRED = "fired"
    SKIPPED = "skipped"
    REFUSED = "refused"


MEANINGS: Final[Mapping[FireStatus, Meaning]] = {
    FireStatus.WAITING: Meaning.PENDING,
    FireStatus.FIRED: Meaning.SUCCESS,
    FireStatus.SKIPPED: Meaning.WARNING,
    FireStatus.REFUSED: Meaning.FAILURE,
}


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """The definition of a schedule; `template` or `request` is set."""

    name: str
    rule: str
    timezone: str = "UTC"
    template: str | None = None
    params: Mapping[str, Any] | None = None
    request: Mapping[str, Any] | None = None
    misfire: Misfire = Misfire.LAST
    misfire_limit: int = 10
    jitter: int = 0
    overlap: Overlap = Overlap.SKIP


@dataclass(frozen=True, slots=True)
class Schedule:
    """A stored schedule; `last_status` is that of its newest occurrence."""

    id: int
    name: str
    rule: str
    timezone: str
    template: str | None
    params: dict[str, Any]
    request: dict[str, Any] | None
    misfire: Misfire
    misfire_limit: int
    jitter: int
    overlap: Overlap
    origin: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    due_at: datetime | None
    fire_at: datetime | None
    last_job: int | None
    """The job of the newest due occurrence that fired, for the overlap."""
    last_due_at: datetime | None
    last_status: FireStatus | None
    last_reason: str | None = field(metadata=STORED_SENTENCE)
    newest_job: int | None
    """The job of the newest occurrence, also if a person ran it; else the last job."""

    def __post_init__(self) -> None:
        """Convert the texts of closed sets."""
        object.__setattr__(self, "misfire", Misfire(self.misfire))
        object.__setattr__(self, "overlap", Overlap(self.overlap))
        if self.last_status is not None:
            object.__setattr__(self, "last_status", FireStatus(self.last_status))

    @property
    def timing(self) -> Timing:
        """When it is due."""
        return Timing(self.rule, self.timezone, self.created_at)

    @property
    def target(self) -> str:
        """The template or job type that it submits."""
        return self.template or str((self.request or {}).get("type", "run_agent"))

    def fire_time(self, due_at: datetime) -> datetime:
        """Return when an occurrence fires: its time plus its jitter."""
        return due_at + jitter(self.id, due_at, self.jitter)

    def key(self, due_at: datetime) -> str:
        """Return the idempotency key of the job of an occurrence."""
        return f"schedule:{self.id}:{due_at.astimezone(UTC).isoformat().replace('+00:00', 'Z')}"

    def spec(self) -> ScheduleSpec:
        """Return the definition."""
        return ScheduleSpec(
            name=self.name,
            rule=self.rule,
            timezone=self.timezone,
            template=self.template,
            params=self.params or None,
            request=self.request,
            misfire=self.misfire,
            misfire_limit=self.misfire_limit,
            jitter=self.jitter,
            overlap=self.overlap,
        )

    def upcoming(self, after: datetime) -> Iterator[datetime]:
        """Yield its occurrences from the next on, whether or not it is paused."""
        if self.due_at is None:
            return
        start = max(self.due_at - timedelta(microseconds=1), after)
        yield from self.timing.after(start)


@dataclass(frozen=True, slots=True)
class Fire:
    """An occurrence and its outcome."""

    schedule: str
    due_at: datetime
    status: FireStatus
    job: int | None
    reason: str | None = field(metadata=STORED_SENTENCE)
    recorded_at: datetime
    timezone: str
    """Time zone of the schedule."""

    def __post_init__(self) -> None:
        """Convert the text of the status."""
        object.__setattr__(self, "status", FireStatus(self.status))


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """A difference between stored schedules and a file: `action` is add, change or remove."""

    action: str
    name: str
    spec: ScheduleSpec | None
    """The definition in the file; None: it is removed."""
    current: ScheduleSpec | None


@dataclass(frozen=True, slots=True)
class Due:
    """An occurrence that is due; with a `reason`, it is skipped."""

    at: datetime
    reason: str | None = None


def jitter(schedule: int, due_at: datetime, seconds: int) -> timedelta:
    """Return the delay of an occurrence: random, but always the same for an occurrence."""
    if not seconds:
        return timedelta()
    digest = hashlib.sha256(f"{schedule} {due_at.timestamp():.6f}".encode()).digest()
    return timedelta(seconds=int.from_bytes(digest[:8], "big") % (seconds + 1))


def due_occurrences(schedule: Schedule, now: datetime) -> tuple[list[Due], datetime | None]:
    """Return the occurrences that are due, oldest first, and the next.

    The policy of the schedule decides which of those that were missed are skipped. Of more than
    MAX_LISTED skipped occurrences, only the newest are returned.
    """
    due: deque[datetime] = deque(maxlen=MAX_LISTED + schedule.misfire_limit)
    count = 0
    following = None
    for at in schedule.upcoming(datetime.min.replace(tzinfo=UTC)):
        if schedule.fire_time(at) > now:
            following = at
            break
        due.append(at)
        count += 1
    reasons = {at: _skipped(schedule, at, newer, now) for newer, at in enumerate(reversed(due))}
    result = [Due(at, reasons[at]) for at in due]
    if (omitted := count - len(due)) and result:
        first = result[0]
        reason = first.reason or "missed"
        result[0] = Due(first.at, f"{reason}; {omitted:,} earlier were missed, too")
    return result, following


def _skipped(schedule: Schedule, at: datetime, newer: int, now: datetime) -> str | None:
    """Return why an occurrence is skipped, or None; `newer` of those that are due follow it."""
    match schedule.misfire:
        case Misfire.SKIP if now - schedule.fire_time(at) > GRACE:
            return f"missed: it was noticed {span((now - at).total_seconds())} late"
        case Misfire.LAST if newer:
            return "missed: a later occurrence was due"
        case Misfire.ALL if newer >= schedule.misfire_limit:
            return f"missed: only the last {schedule.misfire_limit} fire"
    return None


def normal_spec(spec: ScheduleSpec) -> ScheduleSpec:
    """Return a definition in its normal form; raises UsageError for an invalid one."""
    check_name(spec.name)
    rule = parse_rule(spec.rule, spec.timezone)
    if (spec.template is None) == (spec.request is None):
        raise UsageError("a schedule needs a template or a request, not both")
    if not 1 <= spec.misfire_limit <= MAX_MISFIRES:
        raise UsageError(f"the limit of missed occurrences must be 1 to {MAX_MISFIRES}")
    if not 0 <= spec.jitter <= MAX_JITTER:
        raise UsageError("the jitter must be 0s to 24h")
    subject = f"schedule {spec.name}"
    params = clean_within_limit(dict(spec.params or {}), REQUEST_LIMIT, subject) or None
    request = spec.request
    if request is not None:
        request = clean_within_limit(dict(request), REQUEST_LIMIT, subject)
    return replace(spec, rule=rule, params=params, request=request)


def check_spec(spec: ScheduleSpec, now: datetime) -> ScheduleSpec:
    """Return a definition in its normal form; raises UsageError, also if it is never due again."""
    spec = normal_spec(spec)
    timing = Timing(spec.rule, spec.timezone, now)
    times = [at for at, _ in zip(timing.after(now), range(_SAMPLE), strict=False)]
    if not times:
        raise UsageError(f"{spec.rule!r} has passed")
    distance = min((later - at for at, later in pairwise(times)), default=timedelta.max)
    if spec.jitter and timedelta(seconds=spec.jitter) >= distance:
        interval = span(distance.total_seconds())
        raise UsageError(f"the jitter must be shorter than {interval}, the interval")
    return spec
