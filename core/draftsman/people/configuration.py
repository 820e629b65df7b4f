"""The people and groups of the configuration, and their hours."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from draftsman.jobs.job import Source
from draftsman.people import hours as quiet_hours
from draftsman.people.directory import Directory, DirectoryEntry
from draftsman.people.policy import Person, Policy

if TYPE_CHECKING:
    from draftsman.people.hours import Holidays, InterruptibleHours, QuietHours
    from draftsman.settings import Settings
    from draftsman.settings.people import PersonSettings


def configured_directory(settings: Settings) -> Directory:
    """Return the people and groups of the configuration."""
    return Directory(
        people={name: entry_of(person) for name, person in settings.people.items()},
        groups={name: tuple(members) for name, members in settings.groups.items()},
        self_approval=settings.questions.self_approval,
    )


def entry_of(person: PersonSettings) -> DirectoryEntry:
    """Return the entry of a person of the configuration."""
    login = [("cli", person.login)] if person.login else []
    accounts = [(channel, id) for channel, ids in person.accounts.items() for id in ids]
    return DirectoryEntry(
        roles=frozenset(person.roles),
        quiet_hours=person.quiet_hours,
        timezone=person.timezone,
        working_hours=person.working_hours,
        holidays=person.holidays,
    ).with_accounts([*login, *accounts])


def configured_policy(settings: Settings, stored: Directory | None = None) -> Policy:
    """Return the policy of a stored directory, else of the configuration."""
    source = stored or configured_directory(settings)
    return Policy(
        people={name: _person(name, entry, settings) for name, entry in source.people.items()},
        groups=source.groups,
        self_approval=source.self_approval,
        zone=ZoneInfo(settings.questions.timezone),
    )


def _person(name: str, entry: DirectoryEntry, settings: Settings) -> Person:
    ids = dict(entry.ids)
    if Source.CLI in ids:
        ids[Source.TUI] = ids[Source.API] = ids[Source.CLI]
    return Person(
        name=name,
        roles=entry.roles,
        ids=ids,
        quiet=_hours(entry, settings),
        further_ids=entry.further_ids,
        zone=ZoneInfo(entry.timezone or settings.questions.timezone),
    )


def default_quiet_hours(settings: Settings) -> QuietHours | None:
    """Return the quiet hours of questions without known respondents."""
    return quiet_hours.parse(settings.questions.quiet_hours, settings.questions.timezone)


def _hours(entry: DirectoryEntry, settings: Settings) -> InterruptibleHours | None:
    """Return when a person may be interrupted, by default as in `[questions]`; None: always."""
    defaults = settings.questions
    timezone = entry.timezone or defaults.timezone
    quiet = quiet_hours.parse(entry.quiet_hours or defaults.quiet_hours, timezone)
    working = entry.working_hours or defaults.working_hours or quiet_hours.NONE
    days = entry.holidays or defaults.holidays or quiet_hours.NONE
    if working == days == quiet_hours.NONE:
        return quiet
    return quiet_hours.PersonHours(
        quiet,
        () if working == quiet_hours.NONE else quiet_hours.parse_working_hours(working),
        _holidays(days, settings),
        ZoneInfo(timezone),
    )


def _holidays(name: str, settings: Settings) -> Holidays | None:
    """Return the holidays of a table; None if this process has no such table."""
    if name == quiet_hours.NONE or (table := settings.holidays.get(name)) is None:
        return None
    if table.file is None:
        return quiet_hours.Holidays(name, frozenset(table.dates))
    from draftsman.calendars.holiday_calendar import holidays_of

    days = holidays_of(table.file)
    return quiet_hours.Holidays(name, frozenset(table.dates), str(table.file), days)
