"""What a run saves, and what is read of it later."""

from __future__ import annotations

from typing import Final

from draftsman.domain.quota import Limit, Quota
from draftsman.services.checkpoint import LAST
from draftsman.store import progress
from draftsman.store.db import Connection
from tests.soak.calls.call import MIDDLE, MISSING, RUNNING, Call

RUN = RUNNING[0]


async def _content(conn: Connection) -> object:
    found = await progress.find_artifact(conn, MIDDLE, "report")
    assert found is not None
    return await progress.content(conn, found.id)


ARTIFACT = Call(lambda conn: progress.artifact(conn, RUN, "report", "report", b"x" * 10))
CALLS: Final[dict[str, Call]] = {
    "progress.checkpoint": Call(lambda conn: progress.checkpoint(conn, RUN, {"at": 2}, None)),
    "progress.last_checkpoint": Call(lambda conn: progress.last_checkpoint(conn, MIDDLE)),
    "progress.last_checkpoint: none": Call(lambda conn: progress.last_checkpoint(conn, MISSING)),
    "progress.begin_step": Call(lambda conn: progress.begin_step(conn, RUN, "new", "id")),
    "progress.begin_step: known": Call(lambda conn: progress.begin_step(conn, RUN, "step1", "id")),
    "progress.finish_step": Call(lambda conn: progress.finish_step(conn, RUN, "step1", 1)),
    "progress.steps": Call(lambda conn: progress.steps(conn, MIDDLE)),
    "progress.steps: none": Call(lambda conn: progress.steps(conn, MIDDLE + 1)),
    "progress.event": Call(lambda conn: progress.event(conn, RUN, "said", {"text": "x"})),
    "progress.artifact": ARTIFACT,
    "progress.clear_chunks": ARTIFACT,
    "progress.chunk": ARTIFACT,
    "progress.log": Call(lambda conn: progress.log(conn, RUN, 99, "a line")),
    "progress.spend": Call(
        lambda conn: progress.spend(conn, RUN, Quota.EVENTS, 10, Limit(100, 1000))
    ),
    "progress.find_patch": Call(lambda conn: progress.find_patch(conn, MIDDLE)),
    "progress.find_patch: of a run": Call(lambda conn: progress.find_patch(conn, MIDDLE, 1)),
    "progress.find_patch: none": Call(lambda conn: progress.find_patch(conn, MIDDLE + 1)),
    "progress.artifacts": Call(lambda conn: progress.artifacts(conn, MIDDLE)),
    "progress.artifacts: none": Call(lambda conn: progress.artifacts(conn, MIDDLE + 1)),
    "progress.find_artifact": Call(lambda conn: progress.find_artifact(conn, MIDDLE, "report")),
    "progress.find_artifact: none": Call(lambda conn: progress.find_artifact(conn, MIDDLE, "no")),
    "progress.chunks": Call(_content),
    "progress.logs": Call(lambda conn: progress.logs(conn, MIDDLE, (0, 0), 200)),
    "progress.logs: further on": Call(lambda conn: progress.logs(conn, MIDDLE, (1, 2), 200)),
    "progress.logs: none": Call(lambda conn: progress.logs(conn, MIDDLE + 1, (0, 0), 200)),
    "progress.log_end": Call(lambda conn: progress.log_end(conn, MIDDLE, (0, 0), (LAST, 0), 200)),
    "progress.log_end: of a run": Call(
        lambda conn: progress.log_end(conn, MIDDLE, (1, -1), (2, 0), 200)
    ),
    "progress.log_end: none": Call(
        lambda conn: progress.log_end(conn, MIDDLE + 1, (0, 0), (LAST, 0), 200)
    ),
    "progress.now": Call(progress.now),
}
