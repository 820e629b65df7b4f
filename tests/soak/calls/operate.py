"""What people do to jobs."""

from __future__ import annotations

from typing import Final

from draftsman.domain.job import Status
from draftsman.store import operate
from tests.soak.calls.call import LATE, MIDDLE, MISSING, NEWEST, RUNNING, Call, last_of


def _cancel(status: str) -> Call:
    number = last_of(status)
    return Call(lambda conn: operate.cancel_now(conn, number, "soak", "no"))


def _ended(after: int, **filters: str) -> Call:
    every = {"type": None, "agent": None, "repo": None, "since": None} | filters
    return Call(
        lambda conn: operate.ended(conn, Status.DEAD_LETTER, every, after, 1000),
        3000,
        "a page of a thousand, and what followed each",
    )


CALLS: Final[dict[str, Call]] = {
    "operate.lock: live": Call(lambda conn: operate.lock(conn, NEWEST)),
    "operate.lock: of the past": Call(lambda conn: operate.lock(conn, MIDDLE)),
    "operate.lock: missing": Call(lambda conn: operate.lock(conn, MISSING)),
    "operate.refuse": Call(lambda conn: operate.refuse(conn, MIDDLE, "soak", {"event": "one"})),
    "operate.request_cancel": Call(
        lambda conn: operate.request_cancel(conn, RUNNING[0].job, "soak", "no")
    ),
    "operate.cancel_now: queued": _cancel("queued"),
    "operate.cancel_now: waiting": _cancel("waiting_for_input"),
    "operate.cancel_now: running": _cancel("running"),
    "operate.ended: everything": _ended(0),
    "operate.ended: nobody's": _ended(MIDDLE, agent="nobody"),
    "operate.request: the last of a chain": Call(
        lambda conn: operate.request(conn, last_of("queued"))
    ),
    "operate.request: alone": Call(lambda conn: operate.request(conn, MIDDLE)),
    "operate.inherit": Call(lambda conn: operate.inherit(conn, MIDDLE, NEWEST)),
    "operate.inherit: nothing": Call(lambda conn: operate.inherit(conn, MIDDLE + 1, NEWEST)),
    "operate.late_answer": Call(lambda conn: operate.late_answer(conn, LATE)),
    "operate.late_answer: none": Call(lambda conn: operate.late_answer(conn, MIDDLE)),
}
