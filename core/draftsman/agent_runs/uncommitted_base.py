"""Uncommitted changes that a request takes along, as the base commit of the work."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final

from draftsman.agent_runs.clones.commits import ChangesCommit, CommitIdentity, with_sign_off
from draftsman.agent_runs.clones.git import git
from draftsman.agent_runs.clones.mirror import fetch_base, open_mirror
from draftsman.agent_runs.clones.tree_removal import clone_tag
from draftsman.agent_runs.clones.workspace import clone_name, ref_of
from draftsman.agent_runs.iteration_plan import CHANGES, IterationPlan
from draftsman.agent_runs.policy_check import current_policy
from draftsman.agent_runs.uncommitted import ChangesRefused, check_changes
from draftsman.errors import Failure
from draftsman.forges.untrusted_text import line
from draftsman.jobs.requests.uncommitted_changes import UncommittedChanges
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.quota import LIMIT_PREFIX

MAX_NAME: Final = 200


async def commit_changes(plan: IterationPlan) -> ChangesCommit | None:
    """Write the commit with the changes to the mirror; None without any.

    The same in all runs and retries of the job. A follow-up has them in its branch. Raises Failure
    `changes` if they cannot be applied, and `limit:RULE` for what the policy refuses.
    """
    run = plan.run
    if plan.followed is not None:
        return None
    try:
        changes = UncommittedChanges.of(run.job.payload)
    except ValueError as error:
        raise _failure(str(error)) from None
    if changes is None:
        return None
    mirror = await open_mirror(run.settings.data_dir, plan.source)
    clone = clone_name(run.job.number, run.job.run, clone_tag(run.job.id))
    ref = ref_of(clone, "changes")
    await fetch_base(plan.source, mirror, changes.base, ref)
    tree = await _apply(mirror, changes)
    content = plan.checkpoint.get("changes") or plan.pinned_changes
    if content is None:
        policy = await current_policy(run, plan.repository.location)
        try:
            await asyncio.to_thread(check_changes, changes.patch, policy)
        except ChangesRefused as error:
            code = f"{LIMIT_PREFIX}{error.rule}"
            raise Failure(str(error), origin="agent", code=code, declared="PERMANENT") from None
        content = await _new_commit(plan, mirror, tree, changes)
        content = str(await run.step(CHANGES, lambda _: content, owner=Owner.WORKER))
    written = await git(
        "hash-object", "-t", "commit", "-w", "--stdin", cwd=mirror, stdin=_encoded(content)
    )
    commit = written.decode().strip()
    await git("update-ref", ref, commit, cwd=mirror)
    return ChangesCommit(commit, content, changes.files)


async def _new_commit(
    plan: IterationPlan, mirror: Path, tree: str, changes: UncommittedChanges
) -> str:
    """Return the content of a new commit, which is signed as that of the work."""
    run = plan.run
    identity = CommitIdentity.of(plan.git, run.job.invoker_id)
    message = (
        f"Uncommitted changes of {line(run.job.invoker_id, MAX_NAME)}\n\n"
        f"{run.job.name} began with them; they are no work of its agent."
    )
    if plan.git.sign_off:
        message = await with_sign_off(message, identity.author, mirror)
    date = f"{int(run.job.created_at.timestamp())} +0000"
    commit = await identity.commit(mirror, tree, (changes.base,), message, date, signed=True)
    content = await git("cat-file", "commit", commit, cwd=mirror)
    return content.decode("utf-8", "surrogateescape")


async def _apply(mirror: Path, changes: UncommittedChanges) -> str:
    """Return the tree of the base with the changes; raises Failure."""
    with tempfile.TemporaryDirectory(dir=mirror) as folder:
        env: dict[str, Any] = {"GIT_DIR": str(mirror), "GIT_INDEX_FILE": str(Path(folder, "index"))}
        await git("read-tree", changes.base, cwd=mirror, env=env)
        options = ("--cached", "--whitespace=nowarn")
        try:
            await git("apply", *options, cwd=mirror, env=env, stdin=changes.patch)
        except Failure as error:
            raise _failure(f"the uncommitted changes cannot be applied: {error}") from None
        return (await git("write-tree", cwd=mirror, env=env)).decode().strip()


def _encoded(content: str) -> bytes:
    return content.encode("utf-8", "surrogateescape")


def _failure(text: str) -> Failure:
    return Failure(text, origin="agent", code="changes", declared="PERMANENT")
