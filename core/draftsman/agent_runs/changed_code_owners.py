"""The people who own the changed code, whom a ladder may notify."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from draftsman.agent_runs.changes.patch_files import patch_files
from draftsman.agent_runs.clones.open_branches import first_file
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.policies.code_owners import FILES, MAX_SIZE, OwnerRules
from draftsman.handlers.worker_run import WorkerRun

ANY_FILE = "file"
"""Path whose owners are those of the repository, for work without changes."""


async def owners_of_changes(
    run: WorkerRun, workspace: Workspace, patch: Callable[[], Awaitable[bytes | None]]
) -> list[str]:
    """Return the people and groups who own the changes; nothing if no ladder notifies owners.

    CODEOWNERS are those of the base commit, which the agent cannot change.
    """
    ladders = run.services.questions.ladders
    if ladders is None or not ladders.uses_owners:
        return []
    text = await first_file(workspace.mirror, workspace.base_sha, FILES, MAX_SIZE)
    rules = OwnerRules(text.decode("utf-8", "replace"), run.settings.codeowners)
    changes = (await patch() or b"").decode("utf-8", "surrogateescape")
    paths = [path for file in patch_files(changes) for path in file.paths] or [ANY_FILE]
    return rules.people_of(
        dict.fromkeys(owner for path in paths for owner in rules.owners_of(path))
    )
