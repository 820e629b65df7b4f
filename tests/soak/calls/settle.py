"""Ends of runs, and heartbeats."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import Lease, RunStatus
from draftsman.jobs.runs.store import run_state
from draftsman.jobs.runs.store.run_state import RunEnd
from tests.soak.calls.call import ENDS, MISSING, RUNNING, Call
from tests.soak.calls.limits import FULL
from tests.soak.history import WORKER

RUN = RUNNING[0]
ENDINGS: Final = {
    "completed": RunEnd(Status.COMPLETED, RunStatus.COMPLETED, result={"n": 1}),
    "retrying": RunEnd(
        *(Status.RETRYING, RunStatus.FAILED), error="busy", error_class="TRANSIENT_INFRA", delay=9
    ),
    "snoozed": RunEnd(Status.SCHEDULED, RunStatus.PARKED, delay=9),
    "released": RunEnd(Status.RESUMED, RunStatus.INTERRUPTED, detail={"reason": "shutdown"}),
}


def _settle(ending: RunEnd) -> Call:
    return Call(lambda conn: run_state.settle(conn, RUN, ending))


CALLS: Final[dict[str, Call]] = {
    **{f"run_state.settle: {name}": _settle(ending) for name, ending in ENDINGS.items()},
    "run_state.settle: of a full limit": replace(_settle(ENDINGS["completed"]), given=FULL),
    "run_state.settle: a lost run": Call(
        lambda conn: run_state.settle(conn, Lease(MISSING, 1, 1), ENDINGS["completed"])
    ),
    "run_state.heartbeat: a hundred": Call(
        lambda conn: run_state.heartbeat(conn, WORKER, RUNNING, draining=False),
        2000,
        "what runs, of which there are 1,000",
    ),
    "run_state.heartbeat: idle": Call(
        lambda conn: run_state.heartbeat(conn, WORKER, [], draining=False)
    ),
    **{
        f"run_state.runs: {name}": Call(partial(run_state.runs, job=number))
        for name, number in ENDS.items()
    },
    "run_state.ticket_url": Call(lambda conn: run_state.ticket_url(conn, RUN.job)),
    "run_state.pull_request": Call(
        lambda conn: run_state.pull_request(conn, RUN, "https://host/acme/pay/pull/7")
    ),
    "run_state.assign_agent": Call(lambda conn: run_state.assign_agent(conn, RUN, "coder")),
    "run_state.describe": Call(lambda conn: run_state.describe(conn, RUN, {"agent": "a"}, 0)),
}
