"""Figures of people's time as text."""

from __future__ import annotations

from draftsman.attention.figures import AttentionFigures, FigureGroup
from draftsman_tui.terminal.times import span

KINDS = {"input": "questions", "approval": "approvals"}


def name_text(figures: AttentionFigures) -> str:
    """Return the person, channel or kind of question."""
    if figures.by is FigureGroup.KIND:
        return KINDS.get(figures.value, figures.value)
    return figures.value or "all"


def time_text(seconds: float | None) -> str:
    """Return a duration; empty without one."""
    return "" if seconds is None else span(seconds)


def ratio_text(value: float | None) -> str:
    """Return pings per answer; empty without an answer."""
    return "" if value is None else f"{value:.1f}"


def summary_text(figures: AttentionFigures) -> str:
    """Describe the figures of all: `20 questions of 8 jobs, 2.5 per job`."""
    if not figures.jobs:
        return f"{figures.answers:,} answers"
    per_job = figures.questions / figures.jobs
    questions = f"{figures.questions:,} question{'' if figures.questions == 1 else 's'}"
    jobs = f"{figures.jobs:,} job{'' if figures.jobs == 1 else 's'}"
    return (
        f"{questions} of {jobs}, {per_job:.1f} per job;"
        f" interruptions in quiet hours: {figures.quiet_pings}"
    )
