"""Cancel and retry of jobs."""

from __future__ import annotations

from typing import Final

from draftsman.domain.job import Status
from draftsman.store import job_control
from tests.soak.calls.call import LATE, MIDDLE, MISSING, NEWEST, RUNNING, Call, last_of


def _cancel(status: str) -> Call:
    number = last_of(status)
    return Call(lambda conn: job_control.cancel_now(conn, number, "soak", "no"))


def _ended(after: int, **filters: str) -> Call:
    every = {"type": None, "agent": None, "repo": None, "since": None} | filters
    return Call(
        lambda conn: job_control.finished(conn, Status.DEAD_LETTER, every, after, 1000),
        3000,
        "a page of a thousand, and what followed each",
    )


CALLS: Final[dict[str, Call]] = {
    "operate.lock: live": Call(lambda conn: job_control.lock(conn, NEWEST)),
    "operate.lock: of the past": Call(lambda conn: job_control.lock(conn, MIDDLE)),
    "operate.lock: missing": Call(lambda conn: job_control.lock(conn, MISSING)),
    "job_control.refuse": Call(
        lambda conn: job_control.refuse(conn, MIDDLE, "soak", {"event": "one"})
    ),
    "job_control.request_cancel": Call(
        lambda conn: job_control.request_cancel(conn, RUNNING[0].job, "soak", "no")
    ),
    "operate.cancel_now: queued": _cancel("queued"),
    "operate.cancel_now: waiting": _cancel("waiting_for_input"),
    "operate.cancel_now: running": _cancel("running"),
    "operate.ended: everything": _ended(0),
    "operate.ended: nobody's": _ended(MIDDLE, agent="nobody"),
    "operate.request: the last of a chain": Call(
        lambda conn: job_control.request_columns(conn, last_of("queued"))
    ),
    "operate.request: alone": Call(lambda conn: job_control.request_columns(conn, MIDDLE)),
    "job_control.copy_checkpoint": Call(
        lambda conn: job_control.copy_checkpoint(conn, MIDDLE, NEWEST)
    ),
    "operate.inherit: nothing": Call(
        lambda conn: job_control.copy_checkpoint(conn, MIDDLE + 1, NEWEST)
    ),
    "job_control.late_answer": Call(lambda conn: job_control.late_answer(conn, LATE)),
    "operate.late_answer: none": Call(lambda conn: job_control.late_answer(conn, MIDDLE)),
}
