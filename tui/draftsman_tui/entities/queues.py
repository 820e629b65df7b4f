"""Text rendering of queues: pauses, reservations, and the conditions that jobs wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.formats import times
from draftsman.ids import actor_name, job_name
from draftsman.queues.usage_limits import bucket_title
from draftsman_tui.terminal.output import one_line

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.jobs.job_summary import JobSummary
    from draftsman.queues.queue_models import QueueSummary


def blocks_text(summary: QueueSummary, now: datetime | None = None) -> str:
    """Return who reserved a queue until when; and since when, by whom and why it is paused."""
    blocks = []
    if reserved := summary.reservation:
        by = actor_name(reserved.actor)
        until = times.clock(reserved.expires_at, now)
        blocks.append(f"reserved by {by} for {job_name(reserved.job)} until {until}")
    blocks += [
        (f"{pause.type}: " if pause.type else "")
        + f"{times.ago(pause.paused_at, now)} by {actor_name(pause.paused_by)}:"
        + f" {one_line(pause.reason)}"
        for pause in summary.pauses
    ]
    blocks += [
        f"{item.jobs:,} {'waits' if item.jobs == 1 else 'wait'}"
        f" for a worker with the type {one_line(item.type)}"
        for item in summary.unhandled
    ]
    if summary.limited:
        blocks.append(f"{summary.limited:,} wait for limits")
    return "; ".join(blocks)


def hold_text(job: JobSummary) -> str:
    """Return the condition that a held job waits for, or the person and reason of its pause."""
    if job.job_paused:
        return f"paused by {actor_name(job.paused_by or '')}: {one_line(job.pause_reason or '')}"
    return condition_text(job.hold or "", job.held_by)


def worker_text(missing: str | None, queue: str, type: str) -> str:
    """Return the worker or the slot that a job waits for if it can be claimed."""
    if missing == "unknown_type":
        return f"a worker with the type {type}"
    return "a free slot" if missing is None else f"a worker for queue {queue}"


def condition_text(hold: str, held_by: str | None) -> str:
    """Return the condition of a hold."""
    if hold == "limit" and held_by is not None and ":" in held_by:
        return f"a place: {bucket_title(held_by)}"
    names = {
        "key": "its concurrency key",
        "parents": "its parents",
        "children": "the jobs that it spawned",
        "reserved": "its reserved queue",
        "trial": "its turn: jobs that were lost together run one at a time",
    }
    return names.get(hold, "its paused queue")
