"""How runs end, and how they beat."""

from __future__ import annotations

from typing import Final

from draftsman.domain.job import Status
from draftsman.domain.run import Lease, RunStatus
from draftsman.store import settle
from draftsman.store.settle import Ending
from tests.soak.calls.call import MISSING, RUNNING, Call
from tests.soak.history import WORKER

RUN = RUNNING[0]
ENDINGS: Final = {
    "completed": Ending(Status.COMPLETED, RunStatus.COMPLETED, result={"n": 1}),
    "retrying": Ending(
        *(Status.RETRYING, RunStatus.FAILED), error="busy", error_class="TRANSIENT_INFRA", delay=9
    ),
    "snoozed": Ending(Status.SCHEDULED, RunStatus.PAUSED, delay=9),
    "handed back": Ending(Status.RESUMED, RunStatus.INTERRUPTED, detail={"reason": "shutdown"}),
}


def _settle(ending: Ending) -> Call:
    return Call(lambda conn: settle.settle(conn, RUN, ending))


CALLS: Final[dict[str, Call]] = {
    **{f"settle.settle: {name}": _settle(ending) for name, ending in ENDINGS.items()},
    "settle.settle: a lost run": Call(
        lambda conn: settle.settle(conn, Lease(MISSING, 1, 1), ENDINGS["completed"])
    ),
    "settle.heartbeat: a hundred": Call(
        lambda conn: settle.heartbeat(conn, WORKER, RUNNING, draining=False),
        2000,
        "what runs, of which there are 1,000",
    ),
    "settle.heartbeat: idle": Call(lambda conn: settle.heartbeat(conn, WORKER, [], draining=False)),
    "settle.usage": Call(lambda conn: settle.usage(conn, RUN, {"tokens": 1})),
}
