"""Publishing of a branch, over commits of earlier runs of the same job only.

A job that follows up adds a commit to the branch, on the head that it started from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.errors import Failure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.reserved_names import Owner

PUSH: Final = "agent:push:"
"""Prefix of steps of runs that pushed, whose invocation ids are the commits."""
COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


async def publish(run: WorkerRun, workspace: Workspace, snapshot: Snapshot) -> str:
    """Push the branch, and return its commit.

    A run that died before it could record its push may have left another commit of this job
    there, because an agent that runs again makes another. Raises Failure `branch_moved`, …
    """
    steps = await run.steps(Owner.WORKER)
    pushed = [step.invocation_id for key, step in steps.items() if key.startswith(PUSH)]
    key = f"{PUSH}{run.job.run}"
    await run.note_step(key, snapshot.commit, Owner.WORKER)
    await _push(workspace, snapshot, [commit for commit in pushed if COMMIT.fullmatch(commit)])
    await run.finish_step(key, snapshot.commit, Owner.WORKER)
    return snapshot.commit


async def _push(workspace: Workspace, snapshot: Snapshot, own_commits: Sequence[str]) -> None:
    head = workspace.parents[0] if workspace.parents else None
    for expected in (head, *own_commits):
        try:
            await workspace.publish(snapshot, expected)
        except Failure as error:
            if error.code != "branch_moved":
                raise
            branch_moved = error
        else:
            return
    raise branch_moved
