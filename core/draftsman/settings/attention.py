"""Settings of people's attention: ladders, on-call schedules and holidays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from datetime import date, datetime
from typing import Annotated, Final, Literal, Protocol, Self

from pydantic import Field, model_validator

from draftsman.channels.targets import parse_target
from draftsman.errors import UsageError
from draftsman.field_errors import matching
from draftsman.settings import channel_tables
from draftsman.settings.hours import Zone
from draftsman.settings.people import PersonSettings
from draftsman.settings.questions import QuestionSettings
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section, UserPath

_WEEK: Final = 86_400.0 * 7
Recipient = Annotated[
    str,
    matching(
        r"@asker|@owners|@oncall(:[A-Za-z0-9_-]{1,100})?|[^@\s]\S*",
        "must be @asker, @owners, @oncall, @oncall:NAME, a person, a group or a target",
    ),
]


class LadderStepSettings(Section):
    """A step of a ladder."""

    notify: tuple[Recipient, ...] = Field(min_length=1, max_length=20)
    """`@asker`, `@owners` (code owners), `@oncall`, `@oncall:NAME`, people, groups, targets such as
    `slack:C012ABCDEF`, and `pager:NAME`."""
    after: float = Field(0.0, ge=0, le=_WEEK)
    """Seconds since the step before, and of the first step since the question."""
    when_away: Literal["next", "wait"] = "next"
    """If none of its people may be interrupted: `next` goes on, `wait` waits for the first."""
    escalate: bool = False
    """Whether its people may answer from then on."""


class LadderSettings(Section):
    """Ladders: the steps by which people are notified of a question, until it is answered."""

    steps: tuple[LadderStepSettings, ...] = Field(min_length=1, max_length=20)
    """The steps in their order."""


class DutyOverrideSettings(Section):
    """A person on duty instead of the rotation."""

    person: str = Field(min_length=1, examples=["anna"])
    """The person on duty."""
    start: datetime = Field(examples=[datetime.fromisoformat("2026-12-24T09:00:00")])
    """Local time of the schedule, as is `end`."""
    end: datetime = Field(examples=[datetime.fromisoformat("2026-12-27T09:00:00")])
    """When the rotation continues."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if self.start.tzinfo is not None or self.end.tzinfo is not None:
            raise ValueError("start and end are local times without an offset")
        if self.end <= self.start:
            raise ValueError("end must be after start")
        return self


class OnCallSettings(Section):
    """On-call schedules: who `@oncall` (the table default) and `@oncall:NAME` are."""

    people: tuple[str, ...] = Field((), examples=[["anna"]])
    """A rotation: people in the order of their turns."""
    start: datetime | None = Field(None, examples=[datetime.fromisoformat("2026-01-05T09:00:00")])
    """Local time of the first handover; the others have the same time. Unset: not a rotation."""
    days: int = Field(7, ge=1, le=366)
    """Days of a turn."""
    timezone: Zone | None = Field(None, examples=["Europe/Berlin"])
    """Time zone of the handovers. Unset: that of [questions]."""
    overrides: tuple[DutyOverrideSettings, ...] = Field((), max_length=1000, examples=[[{}]])
    """People on duty instead of the rotation."""
    file: UserPath | None = Field(None, examples=["/etc/draftsman/oncall.ics"])
    """Or a calendar: an iCalendar file whose events have a person in their title. Unset: a rotation
    or a URL."""
    url: SecretSettings | None = Field(None, examples=[{"env": "ONCALL_CALENDAR_URL"}])
    """Or the URL of such a calendar; it is a secret, because it often has a key. Unset: a rotation
    or a file."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if [bool(self.people), self.file is not None, self.url is not None].count(True) != 1:
            raise ValueError("needs either people, file or url")
        if self.people and self.start is None:
            raise ValueError("a rotation of people needs start, such as 2026-01-05T09:00:00")
        if self.start is not None and self.start.tzinfo is not None:
            raise ValueError("start is a local time without an offset")
        if self.overrides and not self.people:
            raise ValueError("overrides are for a rotation of people; change the calendar instead")
        return self


class HolidaySettings(Section):
    """Days without working hours."""

    dates: tuple[date, ...] = Field(
        (), max_length=10_000, examples=[[date(2026, 12, 25), date(2026, 12, 26)]]
    )
    """Dates, such as [2026-12-25]."""
    file: UserPath | None = Field(None, examples=["/etc/draftsman/holidays.ics"])
    """An iCalendar file, each event of which is a holiday; read again when it changes. Unset:
    none."""


class AttentionTables(Protocol):
    """The tables of the configuration that refer to each other by name."""

    @property
    def questions(self) -> QuestionSettings: ...
    @property
    def people(self) -> Mapping[str, PersonSettings]: ...
    @property
    def groups(self) -> Mapping[str, object]: ...
    @property
    def webhooks(self) -> Mapping[str, object]: ...
    @property
    def ladders(self) -> Mapping[str, LadderSettings]: ...
    @property
    def oncall(self) -> Mapping[str, OnCallSettings]: ...
    @property
    def holidays(self) -> Mapping[str, HolidaySettings]: ...


def check_attention(settings: AttentionTables) -> None:
    """Raise ValueError for a ladder, schedule or table of holidays with an unknown name."""
    names = {*settings.people, *settings.groups}
    escalate_to = settings.questions.escalate_to
    if escalate_to is not None and escalate_to not in names:
        raise ValueError(f"questions.escalate_to: {escalate_to!r} is not a group or person")
    for kind, name in settings.questions.ladders.items():
        _check_name(f"questions.ladders.{kind}", name, {*settings.ladders, "none"})
    for ladder, item in settings.ladders.items():
        for step in item.steps:
            for recipient in step.notify:
                _check_recipient(f"ladders.{ladder}", recipient, settings, names)
    holidays = {*settings.holidays, "none"}
    for key, table in _people(settings):
        if table.holidays is not None:
            _check_name(f"{key}.holidays", table.holidays, holidays)
    for schedule, shifts in settings.oncall.items():
        for person in (*shifts.people, *(item.person for item in shifts.overrides)):
            _check_name(f"oncall.{schedule}", person, {*settings.people})


def _people(settings: AttentionTables) -> Iterator[tuple[str, PersonSettings | QuestionSettings]]:
    yield "questions", settings.questions
    for name, person in settings.people.items():
        yield f"people.{name}", person


def _check_recipient(key: str, recipient: str, settings: AttentionTables, names: set[str]) -> None:
    if recipient.startswith("@oncall"):
        _check_name(key, recipient.partition(":")[2] or "default", {*settings.oncall})
    elif recipient.startswith("webhook:"):
        _check_name(key, recipient.partition(":")[2], {*settings.webhooks})
    elif not recipient.startswith("@") and recipient not in names:
        _check_target(key, recipient, settings, names)


def _check_target(key: str, recipient: str, settings: AttentionTables, names: set[str]) -> None:
    try:
        channel, target, _ = parse_target(recipient, critical=True)
    except UsageError as error:
        if ":" in recipient:
            raise ValueError(f"{key}: {error}") from None
        _check_name(key, recipient, names)
    else:
        tables = channel_tables.target_names(settings, channel)
        if tables is not None:
            _check_name(key, target, tables)


def _check_name(key: str, name: str, known: Set[str]) -> None:
    if name not in known:
        allowed = ", ".join(sorted(known)) or "none are configured"
        raise ValueError(f"{key}: unknown name {name!r}; known: {allowed}")
