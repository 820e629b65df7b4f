"""Cell formatting: short, on one line, without control characters."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from draftsman.jobs.job import Status
from draftsman.jobs.retries import ErrorClass
from draftsman.text import humanize
from draftsman_tui.dashboard.tables.resource import Cell
from draftsman_tui.terminal import times
from draftsman_tui.terminal.output import one_line

ROLES: Final = {
    **dict.fromkeys(("queued", "claimed", "resumed", "scheduled", "pending"), "calm"),
    **dict.fromkeys(("running", "sending", "alive"), "busy"),
    **dict.fromkeys(("waiting_for_input", "waiting_for_approval", "open"), "asks"),
    **dict.fromkeys(("retrying", "unconfirmed", "silent", "draining", "paused", "parked"), "warns"),
    **dict.fromkeys(("failed", "dead_letter", "expired", "lost"), "bad"),
    **dict.fromkeys(("completed", "sent", "answered"), "good"),
    **dict.fromkeys(("canceled", "superseded"), "dim"),
}
"""The role of each status, of jobs, runs, deliveries and workers."""
DENIED: Final = "denied"
"""The role of a job that failed because a person denied it, which is no fault."""
_SHORT: Final = {
    Status.WAITING_FOR_INPUT: "question",
    Status.WAITING_FOR_APPROVAL: "approval",
}


def status(value: object, error_class: str | None = None) -> Cell:
    """Format a status with its role; a denial has its own role."""
    name = str(value)
    if error_class == ErrorClass.DENIED:
        return Cell(name, DENIED)
    return Cell(_SHORT.get(name, humanize(name)), ROLES.get(name, ""))  # type: ignore[call-overload]


def text(value: object, role: str = "") -> Cell:
    """Format untrusted text on one line."""
    return Cell(one_line(str(value)) if value is not None else "", role)


def age(moment: datetime | None, now: datetime) -> Cell:
    """Format the time since a moment."""
    return Cell(times.span((now - moment).total_seconds()) if moment else "", "dim")


def clock(moment: datetime, now: datetime) -> Cell:
    """Format the local time of day, or day and minute if it is not today."""
    here = moment.astimezone()
    today = now.astimezone().date()
    return Cell(here.strftime("%H:%M:%S" if here.date() == today else "%m-%d %H:%M"), "dim")


def until(moment: datetime | None, now: datetime) -> Cell:
    """Format the time left, with a stronger role when it is short."""
    if moment is None:
        return Cell("never", "dim")
    seconds = (moment - now).total_seconds()
    role = "bad" if seconds < 300 else "asks" if seconds < 3600 else ""
    return Cell(times.until(moment, now), role)
