"""Cancel and retry of jobs."""

from __future__ import annotations

from typing import Final

from draftsman.jobs.control import store as control
from draftsman.jobs.details import store as details
from draftsman.jobs.job import Status
from draftsman.jobs.runs.store import jobs
from tests.soak.calls.call import LATE, MIDDLE, MISSING, NEWEST, RUNNING, Call, last_of


def _cancel(status: str) -> Call:
    number = last_of(status)
    return Call(lambda conn: jobs.cancel_now(conn, number, "soak", "no"))


def _ended(after: int, **filters: str) -> Call:
    names = ("type", "agent", "repo", "queue", "tags", "invoker", "source", "since", "until")
    every = dict.fromkeys((*names, "finished_since", "finished_until")) | filters
    return Call(
        lambda conn: details.finished(conn, Status.DEAD_LETTER, every, after, 1000),
        6000,
        "a page of a thousand, its requests, and what became of each",
    )


CALLS: Final[dict[str, Call]] = {
    "control.replacement": Call(lambda conn: control.replacement(conn, MIDDLE)),
    "jobs.lock_to_cancel: live": Call(lambda conn: jobs.lock_to_cancel(conn, NEWEST)),
    "jobs.lock_to_cancel: of the past": Call(lambda conn: jobs.lock_to_cancel(conn, MIDDLE)),
    "jobs.lock_to_cancel: missing": Call(lambda conn: jobs.lock_to_cancel(conn, MISSING)),
    "control.refuse": Call(lambda conn: control.refuse(conn, MIDDLE, "soak", {"event": "one"})),
    "jobs.request_cancel": Call(
        lambda conn: jobs.request_cancel(conn, RUNNING[0].job, "soak", "no")
    ),
    "control.pause": Call(lambda conn: control.pause(conn, last_of("queued"), "soak", "later")),
    "control.has_control_event": Call(
        lambda conn: control.has_control_event(conn, last_of("queued"), "trello:comment:x")
    ),
    "control.dismiss": Call(
        lambda conn: control.dismiss(conn, last_of("dead_letter"), "soak", "no")
    ),
    "control.dismiss: not open": Call(lambda conn: control.dismiss(conn, MIDDLE, "soak", None)),
    "control.undismiss: not dismissed": Call(lambda conn: control.undismiss(conn, MIDDLE, "soak")),
    "control.dismissal": Call(lambda conn: control.dismissal(conn, MIDDLE)),
    "control.open_failures": Call(lambda conn: control.open_failures(conn, 2**62, 1000), 1000),
    "control.paused": Call(lambda conn: control.paused(conn, 2**62, 1000)),
    "control.unpause: not paused": Call(
        lambda conn: control.unpause(conn, last_of("queued"), "soak")
    ),
    "jobs.cancel_now: queued": _cancel("queued"),
    "jobs.cancel_now: waiting": _cancel("waiting_for_input"),
    "jobs.cancel_now: running": _cancel("running"),
    "details.finished: everything": _ended(0),
    "details.finished: nobody's": _ended(MIDDLE, agent="nobody"),
    "control.retries": Call(
        lambda conn: control.retries(conn, list(range(MIDDLE, MIDDLE + 200))),
        2000,
        "two hundred jobs, and what followed each",
    ),
    "control.request_columns: the last of a chain": Call(
        lambda conn: control.request_columns(conn, last_of("queued"))
    ),
    "control.request_columns: alone": Call(lambda conn: control.request_columns(conn, MIDDLE)),
    "control.copy_checkpoint": Call(lambda conn: control.copy_checkpoint(conn, MIDDLE, NEWEST)),
    "control.copy_checkpoint: nothing": Call(
        lambda conn: control.copy_checkpoint(conn, MIDDLE + 1, NEWEST)
    ),
    "control.late_answer": Call(lambda conn: control.late_answer(conn, LATE)),
    "control.late_answer: none": Call(lambda conn: control.late_answer(conn, MIDDLE)),
}
