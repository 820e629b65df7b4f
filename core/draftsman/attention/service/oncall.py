"""On-call schedules of the configuration, and of calendars."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final
from zoneinfo import ZoneInfo

from draftsman.attention.oncall import (
    CalendarDuties,
    Duty,
    DutySchedule,
    Rotation,
    next_duty,
    on_duty,
    person_in,
)
from draftsman.calendars.calendar_reader import read_calendar
from draftsman.calendars.icalendar import CalendarEvent
from draftsman.errors import DraftsmanError, Failure
from draftsman.outbound import secret_values
from draftsman.outbound.timeouts import Timeouts
from draftsman.people.policy import Policy
from draftsman.settings import Settings
from draftsman.settings.attention import OnCallSettings

HORIZON: Final = timedelta(days=400)
"""Time ahead in which the next duty is looked for."""
CALENDAR_HORIZON: Final = timedelta(days=60)
"""Time around now of the events that are read from a calendar."""
CALENDAR_AGE: Final = 300.0
"""Seconds for which a calendar is kept."""
_log = logging.getLogger(__name__)


class OnCall:
    """The people on duty, by schedule."""

    def __init__(self, settings: Settings, policy: Policy) -> None:
        self._settings = settings
        self._policy = policy
        self._calendars: dict[str, tuple[float, CalendarDuties]] = {}

    async def on_duty(self, now: datetime) -> dict[str, tuple[str, ...]]:
        """Return the people on duty of each schedule; empty for a calendar that cannot be read."""
        names = list(self._settings.oncall)
        duties = await asyncio.gather(*(self._on_duty(name, now) for name in names))
        return dict(zip(names, duties, strict=True))

    async def _on_duty(self, name: str, now: datetime) -> tuple[str, ...]:
        try:
            duties = on_duty(await self._read(name, now), now)
        except DraftsmanError as error:
            _log.warning("on-call schedule %s: %s", name, error)
            duties = []
        return tuple(dict.fromkeys(duty.person for duty in duties))

    async def duties(self, name: str, now: datetime) -> tuple[list[Duty], Duty | None]:
        """Return the duties at a time, and the next; raises Failure, UsageError.

        A schedule of a calendar looks 60 days ahead.
        """
        schedule = await self._read(name, now)
        return on_duty(schedule, now), next_duty(schedule, now, HORIZON)

    def zone(self, name: str) -> str:
        """Return the time zone of a schedule."""
        return self._settings.oncall[name].timezone or self._settings.questions.timezone

    def away_until(self, person: str, now: datetime) -> datetime | None:
        """Return until when a person may not be interrupted; None for a person who may be."""
        if (entry := self._policy.people.get(person)) is None:
            return None
        free_at = entry.free_at(now)
        return free_at if free_at > now else None

    @property
    def names(self) -> list[str]:
        """Names of the schedules."""
        return sorted(self._settings.oncall)

    async def _read(self, name: str, now: datetime) -> DutySchedule:
        settings = self._settings.oncall[name]
        zone = ZoneInfo(self.zone(name))
        if settings.start is not None:
            return rotation(settings, zone)
        read_at, duties = self._calendars.get(name, (-CALENDAR_AGE, CalendarDuties(())))
        if monotonic() < read_at + CALENDAR_AGE and _covers(duties, now):
            return duties
        try:
            duties = await self._read_calendar(settings, now, zone)
        except DraftsmanError:
            if not _covers(duties, now) or not duties.duties:
                raise
            _log.warning("on-call schedule %s: using the calendar that was read before", name)
        self._calendars[name] = monotonic(), duties
        return duties

    async def _read_calendar(
        self, settings: OnCallSettings, now: datetime, zone: ZoneInfo
    ) -> CalendarDuties:
        data = await self._load(settings)
        start = now - CALENDAR_HORIZON
        end = now + CALENDAR_HORIZON
        events = await read_calendar(data, start, end, zone)
        return CalendarDuties(tuple(_duties(events, self._policy.people)))

    async def _load(self, settings: OnCallSettings) -> bytes:
        if settings.file is not None:
            try:
                return await asyncio.to_thread(settings.file.read_bytes)
            except OSError as error:
                raise Failure(f"{settings.file}: {error.strerror}", code="calendar") from error
        from draftsman.outbound.http_client import HttpCall, HttpClient

        assert settings.url is not None  # noqa: S101 - the settings have a file or a URL
        url = secret_values.read_secret(settings.url, "the calendar of a schedule")
        client = HttpClient(self._settings.http, trusted=[url])
        timeouts = Timeouts(call=20.0, connect=10.0)
        async with client.stream(HttpCall("GET", url), timeouts) as response:
            if response.status != 200:
                raise Failure(f"the calendar: HTTP {response.status}", http_status=response.status)
            return await response.read()


def rotation(settings: OnCallSettings, zone: ZoneInfo) -> Rotation:
    """Return the rotation of a schedule with people."""
    assert settings.start is not None  # noqa: S101 - the settings require it
    overrides = (
        Duty(
            item.person,
            item.start.replace(tzinfo=zone).astimezone(UTC),
            item.end.replace(tzinfo=zone).astimezone(UTC),
        )
        for item in settings.overrides
    )
    return Rotation(settings.people, settings.start, settings.days, zone, tuple(overrides))


def _covers(duties: CalendarDuties, now: datetime) -> bool:
    """Return whether duties that were read before include this time."""
    return any(duty.end > now for duty in duties.duties)


def _duties(events: Collection[CalendarEvent], people: Collection[str]) -> list[Duty]:
    """Return the events that name a person."""
    named = [(person_in(event.title, people), event) for event in events]
    return [Duty(name, event.start, event.end) for name, event in named if name is not None]
