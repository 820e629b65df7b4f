"""Conflicts of work with other open branches of its repository, before and after it is published.

Of two branches that are published at the same time, the later push sees the other branch, because
each is compared after its push. So no conflict stays unknown.
"""

from __future__ import annotations

from typing import Any, Final

from draftsman.agent_runs.clones.open_branches import find_conflicts
from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.policies.conflicts import BranchConflict, conflict_text
from draftsman.errors import Failure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.questions.question_spec import QuestionSpec

ATTEMPTS: Final = 3
"""Attempts to fetch branches, of which others may be deleted meanwhile."""
MAX_CONTEXT: Final = 19_000


async def conflicts_of(
    run: WorkerRun, workspace: Workspace, snapshot: Snapshot, base: str | None
) -> list[BranchConflict] | str:
    """Return the conflicts; a reason if the branches cannot be compared."""
    attempt = 1
    while True:
        try:
            return await find_conflicts(workspace, snapshot, base)
        except Failure as error:
            if error.code != "no_such_ref" or attempt == ATTEMPTS:
                run.log_line(f"[conflicts unknown] {error}")
                return str(error)
            attempt += 1


async def with_conflicts(
    run: WorkerRun,
    workspace: Workspace,
    snapshot: Snapshot,
    base: str | None,
    question: QuestionSpec,
) -> QuestionSpec:
    """Return an approval with the conflicts in its context.

    They are not part of its digest: a branch that is published later does not take it back.
    """
    conflicts = await conflicts_of(run, workspace, snapshot, base)
    text = f"Conflicts unknown: {conflicts}" if isinstance(conflicts, str) else ""
    text = text or conflict_text([item for item in conflicts if isinstance(item, BranchConflict)])
    if not text:
        return question
    context = "\n".join(filter(None, (text, question.context)))
    return question.model_copy(update={"context": context[:MAX_CONTEXT]})


def conflict_fields(conflicts: list[BranchConflict] | str) -> dict[str, Any]:
    """Return the fields of a result or an event that name the conflicts; empty without any."""
    if isinstance(conflicts, str):
        return {"conflicts_unknown": conflicts[:500]}
    return {"conflicts": [item.as_json() for item in conflicts]} if conflicts else {}
