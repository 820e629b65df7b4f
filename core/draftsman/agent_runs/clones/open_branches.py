"""Branches of a source as they are now, and their merges.

They are the branches of other jobs, the base, and that of earlier work, which a job that follows
it up continues.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from draftsman.agent_runs.clones.commits import HEADS
from draftsman.agent_runs.clones.git import git, git_failure, git_status, git_version
from draftsman.agent_runs.clones.mirror import open_mirror
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import (
    ContinuedBranch,
    Snapshot,
    Workspace,
    unbundle,
)
from draftsman.agent_runs.policies.conflicts import BranchConflict
from draftsman.errors import CommandHint

MERGE_TREE: Final = (2, 38)
"""First version of git with `merge-tree --write-tree`."""
MAX_BRANCHES: Final = 50
"""Maximum number of branches that are compared, the newest jobs first."""
FOLLOWED: Final = "refs/draftsman/follow/"
"""Prefix of the references of a mirror to branches that jobs continue, by their number."""


@dataclass(frozen=True, slots=True)
class SourceBranches:
    """The base branch and the branches of other jobs, with their commits."""

    base: str | None
    """The commit of the base branch; None if the base is a tag or a commit."""
    others: dict[str, str] = field(default_factory=dict)


async def source_branches(workspace: Workspace, base: str | None) -> SourceBranches:
    """Return the branches of the source now; `base` is the base branch, None for its default."""
    name = "HEAD" if base is None else f"{HEADS}{base.removeprefix(HEADS)}"
    tips = await workspace.source.tips(workspace.mirror, [*workspace.branches.patterns, name])
    numbers = {
        branch: number
        for branch in (ref.removeprefix(HEADS) for ref in tips if ref.startswith(HEADS))
        if branch not in (workspace.branch, name.removeprefix(HEADS))
        and (number := workspace.branches.number(branch)) is not None
    }
    newest = sorted(numbers, key=numbers.__getitem__, reverse=True)[:MAX_BRANCHES]
    return SourceBranches(tips.get(name), {branch: tips[f"{HEADS}{branch}"] for branch in newest})


async def find_conflicts(
    workspace: Workspace, snapshot: Snapshot, base: str | None
) -> list[BranchConflict]:
    """Return the branches of other jobs that conflict with the work, and the base if it does.

    A branch is open if the source has it, and the base does not have its commit. Raises Failure.
    """
    branches = await source_branches(workspace, base)
    moved = branches.base is not None and branches.base != snapshot.base_sha
    if not branches.others and not moved:
        return []
    prefix = workspace.ref("open/")
    specs = [f"+{HEADS}{branch}:{prefix}{branch}" for branch in branches.others]
    if branches.base:
        specs.append(_base_spec(workspace, base))
    await workspace.source.fetch_refs(workspace.mirror, specs)
    conflicts = []
    for branch in branches.others:
        ref = f"{prefix}{branch}"
        if branches.base and await _is_ancestor(workspace.mirror, ref, workspace.ref("now")):
            continue
        if (paths := await _conflicting(workspace.mirror, snapshot.commit, ref)) is not None:
            title = await _subject(workspace.mirror, ref)
            job = workspace.branches.job_of(branch)
            conflicts.append(BranchConflict(branch, title, paths, job))
    if moved:
        paths = await _conflicting(workspace.mirror, snapshot.commit, workspace.ref("now"))
        if paths is not None:
            name = (base or "the default branch").removeprefix(HEADS)
            conflicts.append(BranchConflict(name, "the base, which has moved", paths))
    return conflicts


async def onto_current_base(
    workspace: Workspace, snapshot: Snapshot, base: str | None, message: str
) -> tuple[Workspace, Snapshot]:
    """Merge the base branch as it is now into the work, which is then a commit on top of it.

    Unchanged if the base has not moved forward, or if they conflict. Raises Failure.
    """
    tip = (await source_branches(workspace, base)).base
    if tip is None or tip == snapshot.base_sha:
        return workspace, snapshot
    mirror = workspace.mirror
    await workspace.source.fetch_refs(mirror, [_base_spec(workspace, base)])
    now = (await git("rev-parse", "--verify", workspace.ref("now"), cwd=mirror)).decode().strip()
    if not await _is_ancestor(mirror, snapshot.base_sha, now):
        return workspace, snapshot
    tree, paths = await _merge(mirror, now, snapshot.commit)
    if paths is not None:
        return workspace, snapshot
    # without the base as a parent, a branch with earlier commits would have it as its own work
    parents = (workspace.parents[0], now) if workspace.parents else ()
    moved = replace(workspace, base_sha=now, parents=parents)
    return moved, replace(
        await moved.commit(tree, message),
        skipped=snapshot.skipped,
        left_out=snapshot.left_out,
        refused=snapshot.refused,
    )


async def first_file(mirror: Path, commit: str, paths: Sequence[str], most: int) -> bytes:
    """Return the first of these files that a commit has.

    Empty without any, and for a file of more than `most` bytes.
    """
    for path in paths:
        entry = await git("ls-tree", "--full-tree", "--long", "-z", commit, "--", path, cwd=mirror)
        fields = entry.partition(b"\t")[0].split()
        if len(fields) == 4 and fields[1] == b"blob":
            if int(fields[3]) > most:
                return b""
            return await git("cat-file", "blob", fields[2].decode(), cwd=mirror)
    return b""


async def branch_work(
    data_dir: Path,
    source: RepoSource,
    *,
    branch: str,
    base_branch: str,
    base: str | None,
    job: int,
) -> ContinuedBranch | None:
    """Return the work on a branch of the source, with commits of people; None if it is gone.

    If it conflicts with the base branch as it is now, this is the new base, and the files of the
    work have the conflict markers of the merge. Else it is the newest commit of the base branch
    that the branch has: people may have merged that branch, or moved the work onto it. `base` is
    that of a base branch which is gone. Raises Failure with origin `git`.
    """
    mirror = await open_mirror(data_dir, source)
    names = {"head": f"{HEADS}{branch}", "tip": f"{HEADS}{base_branch}"}
    tips = await source.tips(mirror, list(names.values()))
    head = tips.get(names["head"])
    tip = tips.get(names["tip"])
    if head is None:
        return None
    prefix = f"{FOLLOWED}{job}/"
    specs = [f"+{ref}:{prefix}{name}" for name, ref in names.items() if ref in tips]
    await source.fetch_refs(mirror, specs)
    if tip is None:
        return ContinuedBranch(branch, parents=(head,), work=head, base=base)
    fork = await _fork_point(mirror, head, tip)
    tree, paths = ("", None) if fork == tip else await _merge(mirror, head, tip)
    if paths is None:
        return ContinuedBranch(branch, parents=(head,), work=head, base=fork)
    commit = await git("commit-tree", tree, "-p", tip, "-m", "merge", cwd=mirror)
    work = commit.decode().strip()
    await git("update-ref", f"{prefix}work", work, cwd=mirror)
    return ContinuedBranch(branch, parents=(head, tip), work=work, base=tip)


async def with_earlier_work(
    data_dir: Path, source: RepoSource, *, branch: ContinuedBranch, bundle: bytes, job: int
) -> ContinuedBranch:
    """Return a branch of `branch_work` with the work of a bundle, which began at an earlier commit.

    Raises Failure `branch_moved` if they conflict.
    """
    assert branch.work is not None  # noqa: S101 - as of `branch_work`
    mirror = await open_mirror(data_dir, source)
    work = await unbundle(mirror, bundle)
    if "work" not in work:
        return branch
    tree, paths = await _merge(mirror, branch.work, work["work"])
    if paths is not None:
        text = f"commits of people on {branch.name} conflict with the work in {', '.join(paths)}"
        hint = CommandHint("retry", "JOB --fresh", lead="to begin with theirs")
        raise git_failure(text, "branch_moved", hint)
    commit = await git("commit-tree", tree, "-p", branch.work, "-m", "merge", cwd=mirror)
    merged = commit.decode().strip()
    await git("update-ref", f"{FOLLOWED}{job}/work", merged, cwd=mirror)
    return replace(branch, work=merged)


async def _fork_point(mirror: Path, ours: str, theirs: str) -> str:
    """Return the newest commit that both have."""
    code, output = await git_status("merge-base", ours, theirs, cwd=mirror, most=1)
    if code != 0:
        text = f"commit {ours[:12]} of the branch has no commit in common with its base branch"
        raise git_failure(text, "no_common_commit")
    return output.decode().strip()


def _base_spec(workspace: Workspace, base: str | None) -> str:
    name = "HEAD" if base is None else f"{HEADS}{base.removeprefix(HEADS)}"
    return f"+{name}:{workspace.ref('now')}"


async def _conflicting(mirror: Path, ours: str, theirs: str) -> tuple[str, ...] | None:
    """Return the files in which two commits conflict; None if they can be merged."""
    return (await _merge(mirror, ours, theirs))[1]


async def _merge(mirror: Path, ours: str, theirs: str) -> tuple[str, tuple[str, ...] | None]:
    """Return the tree of a merge, and its conflicting files; None without a conflict."""
    if await git_version() < MERGE_TREE:
        raise git_failure("merges need git 2.38 or later on the worker; install it", "git_version")
    code, output = await git_status(
        "merge-tree",
        "--write-tree",
        "--name-only",
        "--no-messages",
        "-z",
        ours,
        theirs,
        cwd=mirror,
        most=1,
    )
    tree, *paths = os.fsdecode(output).split("\0")
    return tree, None if code == 0 else tuple(dict.fromkeys(filter(None, paths)))


async def _is_ancestor(mirror: Path, older: str, newer: str) -> bool:
    code, _ = await git_status("merge-base", "--is-ancestor", older, newer, cwd=mirror, most=1)
    return code == 0


async def _subject(mirror: Path, commit: str) -> str:
    """Return the first line of the message of a commit: the title of its job."""
    output = await git("show", "--no-patch", "--format=%s", commit, cwd=mirror)
    return output.decode(errors="replace").strip()[:200]
