"""Cell formatting: short, on one line, without control characters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.jobs.job import Status
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.status_display import PAUSED, SHORT, Meaning, display_of
from draftsman.text import humanize


@dataclass(frozen=True, slots=True)
class Cell:
    """Text with a role that a terminal colors."""

    text: str
    role: str = ""
    when: datetime | None = None
    """The time that it says, for a medium that can show that exactly."""
    is_clock: bool = False
    """Whether the text is that time, not a duration."""
    full: str = ""
    """The text where there is room, if that is another."""


ROLES: Final[Mapping[Meaning, str]] = {
    Meaning.PENDING: "calm",
    Meaning.ACTIVE: "busy",
    Meaning.WAITING: "asks",
    Meaning.WARNING: "warns",
    Meaning.SUCCESS: "good",
    Meaning.FAILURE: "bad",
    Meaning.DENIED: "denied",
    Meaning.NEUTRAL: "dim",
}
"""The role of each meaning."""


def job_status(
    status: Status, error_class: str | None = None, *, paused: bool = False, full: bool = False
) -> Cell:
    """Format the status of a job, short unless `full`; `paused`: as paused instead."""
    if paused:
        return status_cell(PAUSED.word, PAUSED.meaning)
    display = display_of(status, denied=error_class == ErrorClass.DENIED)
    word = display.word if full else SHORT.get(status, display.word)
    cell = status_cell(word, display.meaning)
    return cell if word == display.word else replace(cell, full=display.word)


def status_cell(status: str, meaning: Meaning) -> Cell:
    """Format a status with the role of its meaning."""
    return Cell(humanize(status), ROLES[meaning])


def text(value: object, role: str = "") -> Cell:
    """Format untrusted text on one line."""
    return Cell(one_line(str(value)) if value is not None else "", role)


def age(moment: datetime | None, now: datetime) -> Cell:
    """Format the time since a moment."""
    return Cell(times.span((now - moment).total_seconds()) if moment else "", "dim", moment)


def clock(moment: datetime, now: datetime) -> Cell:
    """Format the local time of day, or day and minute if it is not today."""
    return Cell(times.clock(moment, now, narrow=True), "dim", moment, is_clock=True)


def until(moment: datetime | None, now: datetime) -> Cell:
    """Format the time left, with a stronger role when it is short."""
    if moment is None:
        return Cell("never", "dim")
    seconds = (moment - now).total_seconds()
    role = "bad" if seconds < 300 else "asks" if seconds < 3600 else ""
    return Cell(times.until(moment, now), role, moment)
