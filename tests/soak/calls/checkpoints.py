"""Data saved by runs, and its later reads."""

from __future__ import annotations

from typing import Final

from draftsman.agent_runs.activity import store as activity
from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.database.database import Connection
from draftsman.jobs.runs.quota import Quota, QuotaLimit
from draftsman.jobs.runs.service.checkpoints import MAX_RUN
from draftsman.jobs.runs.store import checkpoints
from tests.soak.calls.call import MIDDLE, MISSING, NEWEST, OLDEST, RUNNING, Call

RUN = RUNNING[0]


async def _content(conn: Connection) -> object:
    artifact = await checkpoints.find_artifact(conn, MIDDLE, "report")
    assert artifact is not None
    return await checkpoints.content(conn, artifact.id)


ARTIFACT = Call(lambda conn: checkpoints.artifact(conn, RUN, "report", "report", b"x" * 10))
CALLS: Final[dict[str, Call]] = {
    "checkpoints.checkpoint": Call(lambda conn: checkpoints.checkpoint(conn, RUN, {"at": 2}, None)),
    "checkpoints.last_checkpoint": Call(lambda conn: checkpoints.last_checkpoint(conn, MIDDLE)),
    "checkpoints.last_checkpoint: none": Call(
        lambda conn: checkpoints.last_checkpoint(conn, MISSING)
    ),
    "checkpoints.begin_step": Call(lambda conn: checkpoints.begin_step(conn, RUN, "new", "id")),
    "checkpoints.begin_step: known": Call(
        lambda conn: checkpoints.begin_step(conn, RUN, "step1", "id")
    ),
    "checkpoints.finish_step": Call(lambda conn: checkpoints.finish_step(conn, RUN, "step1", 1)),
    "checkpoints.steps": Call(lambda conn: checkpoints.steps(conn, MIDDLE)),
    "checkpoints.step_summaries": Call(lambda conn: checkpoints.step_summaries(conn, MIDDLE, 20)),
    "checkpoints.checkpoint_summaries": Call(
        lambda conn: checkpoints.checkpoint_summaries(conn, MIDDLE)
    ),
    "checkpoints.steps: none": Call(lambda conn: checkpoints.steps(conn, MIDDLE + 1)),
    "checkpoints.event": Call(lambda conn: checkpoints.event(conn, RUN, "said", {"text": "x"})),
    "checkpoints.artifact": ARTIFACT,
    "checkpoints.clear_chunks": ARTIFACT,
    "checkpoints.chunk": ARTIFACT,
    "checkpoints.log": Call(lambda conn: checkpoints.log(conn, RUN, 99, "a line")),
    "checkpoints.log_parked": Call(lambda conn: checkpoints.log_parked(conn, RUN, "a line")),
    "checkpoints.consume_quota": Call(
        lambda conn: checkpoints.consume_quota(conn, RUN, Quota.EVENTS, 10, QuotaLimit(100, 1000))
    ),
    "checkpoints.find_patch": Call(lambda conn: checkpoints.find_patch(conn, MIDDLE)),
    "checkpoints.find_patch: of a run": Call(lambda conn: checkpoints.find_patch(conn, MIDDLE, 1)),
    "checkpoints.find_patch: none": Call(lambda conn: checkpoints.find_patch(conn, MIDDLE + 1)),
    "checkpoints.artifacts": Call(lambda conn: checkpoints.artifacts(conn, MIDDLE)),
    "checkpoints.artifacts: none": Call(lambda conn: checkpoints.artifacts(conn, MIDDLE + 1)),
    "checkpoints.find_artifact": Call(
        lambda conn: checkpoints.find_artifact(conn, MIDDLE, "report")
    ),
    "checkpoints.find_artifact: none": Call(
        lambda conn: checkpoints.find_artifact(conn, MIDDLE, "no")
    ),
    "checkpoints.chunks": Call(_content),
    "checkpoints.logs": Call(lambda conn: checkpoints.logs(conn, MIDDLE, (0, 0), 200)),
    "checkpoints.logs: further on": Call(lambda conn: checkpoints.logs(conn, MIDDLE, (1, 2), 200)),
    "checkpoints.logs: none": Call(lambda conn: checkpoints.logs(conn, MIDDLE + 1, (0, 0), 200)),
    "checkpoints.log_end": Call(
        lambda conn: checkpoints.log_end(conn, MIDDLE, (0, 0), (MAX_RUN, 0), 200)
    ),
    "checkpoints.log_end: of a run": Call(
        lambda conn: checkpoints.log_end(conn, MIDDLE, (1, -1), (2, 0), 200)
    ),
    "checkpoints.log_end: none": Call(
        lambda conn: checkpoints.log_end(conn, MIDDLE + 1, (0, 0), (MAX_RUN, 0), 200)
    ),
    "activity.append": Call(
        lambda conn: activity.append(conn, RUN, 9, [Activity(ActivityKind.MESSAGE, "x")])
    ),
    "activity.evict": Call(lambda conn: activity.evict(conn, MIDDLE, 1, 1000)),
    "activity.transcript": Call(
        lambda conn: activity.transcript(conn, RUN, 0, b"x", size=1, sha256="x", most=9)
    ),
    "activity.show": Call(lambda conn: activity.show(conn, RUN, {})),
    "activity.page": Call(lambda conn: activity.page(conn, MIDDLE, (1, 1), 200)),
    "activity.newest": Call(lambda conn: activity.newest(conn, MIDDLE, (0, 0), 200)),
    "activity.figures": Call(
        lambda conn: activity.figures(conn, list(range(NEWEST - 200, NEWEST))), rows=2000
    ),
    "activity.latest": Call(lambda conn: activity.latest(conn, [MIDDLE, OLDEST])),
    "checkpoints.now": Call(checkpoints.now),
}
