"""Cancel and retry of jobs."""

from __future__ import annotations

from typing import Final

from draftsman.jobs.control.store import control as job_control
from draftsman.jobs.job import Status
from draftsman.jobs.runs.store import locked_jobs
from tests.soak.calls.call import LATE, MIDDLE, MISSING, NEWEST, RUNNING, Call, last_of


def _cancel(status: str) -> Call:
    number = last_of(status)
    return Call(lambda conn: locked_jobs.cancel_now(conn, number, "soak", "no"))


def _ended(after: int, **filters: str) -> Call:
    every = {"type": None, "agent": None, "repo": None, "since": None} | filters
    return Call(
        lambda conn: job_control.finished(conn, Status.DEAD_LETTER, every, after, 1000),
        3000,
        "a page of a thousand, and what followed each",
    )


CALLS: Final[dict[str, Call]] = {
    "job_control.replacement": Call(lambda conn: job_control.replacement(conn, MIDDLE)),
    "locked_jobs.lock: live": Call(lambda conn: locked_jobs.lock(conn, NEWEST)),
    "locked_jobs.lock: of the past": Call(lambda conn: locked_jobs.lock(conn, MIDDLE)),
    "locked_jobs.lock: missing": Call(lambda conn: locked_jobs.lock(conn, MISSING)),
    "job_control.refuse": Call(
        lambda conn: job_control.refuse(conn, MIDDLE, "soak", {"event": "one"})
    ),
    "locked_jobs.request_cancel": Call(
        lambda conn: locked_jobs.request_cancel(conn, RUNNING[0].job, "soak", "no")
    ),
    "job_control.pause": Call(
        lambda conn: job_control.pause(conn, last_of("queued"), "soak", "later")
    ),
    "job_control.has_pause_event": Call(
        lambda conn: job_control.has_pause_event(conn, last_of("queued"), "trello:comment:x")
    ),
    "job_control.paused": Call(lambda conn: job_control.paused(conn, 2**62, 1000)),
    "job_control.unpause: not paused": Call(
        lambda conn: job_control.unpause(conn, last_of("queued"), "soak")
    ),
    "locked_jobs.cancel_now: queued": _cancel("queued"),
    "locked_jobs.cancel_now: waiting": _cancel("waiting_for_input"),
    "locked_jobs.cancel_now: running": _cancel("running"),
    "job_control.finished: everything": _ended(0),
    "job_control.finished: nobody's": _ended(MIDDLE, agent="nobody"),
    "job_control.retries": Call(
        lambda conn: job_control.retries(conn, list(range(MIDDLE, MIDDLE + 200))),
        2000,
        "two hundred jobs, and what followed each",
    ),
    "job_control.request_columns: the last of a chain": Call(
        lambda conn: job_control.request_columns(conn, last_of("queued"))
    ),
    "job_control.request_columns: alone": Call(
        lambda conn: job_control.request_columns(conn, MIDDLE)
    ),
    "job_control.copy_checkpoint": Call(
        lambda conn: job_control.copy_checkpoint(conn, MIDDLE, NEWEST)
    ),
    "job_control.copy_checkpoint: nothing": Call(
        lambda conn: job_control.copy_checkpoint(conn, MIDDLE + 1, NEWEST)
    ),
    "job_control.late_answer": Call(lambda conn: job_control.late_answer(conn, LATE)),
    "job_control.late_answer: none": Call(lambda conn: job_control.late_answer(conn, MIDDLE)),
}
