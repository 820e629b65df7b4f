"""Cost, changes and progress of a job in a row. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from draftsman.jobs.read_models import JobSummary
from draftsman.text import first_line
from draftsman_tui.terminal import times
from draftsman_tui.terminal.output import one_line

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def changes_text(row: JobSummary) -> str:
    """Return the changed lines of the newest patch: `+55 -3`; "" if there are none."""
    figures = row.figures
    if figures is None or not (figures.added or figures.removed):
        return ""
    return f"+{figures.added or 0} -{figures.removed or 0}"


def cost_text(row: JobSummary) -> str:
    """Return the cost in dollars; "" for none."""
    dollars = cost(row)
    return "" if not dollars else f"${dollars:.2f}" if dollars >= 0.005 else "<$0.01"


def live_text(row: JobSummary, now: datetime) -> str:
    """Return a spinner, the time and the progress of a running job."""
    frame = SPINNER[int(now.timestamp()) % len(SPINNER)]
    elapsed = times.span((now - (row.started_at or now)).total_seconds())
    progress = row.figures.progress if row.figures else ""
    return " ".join(filter(None, (frame, elapsed, one_line(progress))))


def asked_text(row: JobSummary) -> str:
    """Return the question or action of a waiting job: `push draftsman/D-3`; "" if unknown."""
    return first_line(row.figures.asks, 80) if row.figures else ""


def cost(row: JobSummary) -> float:
    """Return the cost in dollars; 0 if it is unknown."""
    return (row.figures.cost_usd or 0.0) if row.figures else 0.0


def changed_lines(row: JobSummary) -> int:
    """Return the number of changed lines."""
    return (row.figures.added or 0) + (row.figures.removed or 0) if row.figures else 0
