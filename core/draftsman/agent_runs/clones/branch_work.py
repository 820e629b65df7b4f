"""The published branch of earlier work, which a job that follows it up continues."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from draftsman.agent_runs.clones.git import git
from draftsman.agent_runs.clones.mirror import open_mirror
from draftsman.agent_runs.clones.open_branches import HEADS, conflicting_merge
from draftsman.agent_runs.clones.source import Login, RepoSource
from draftsman.settings.http import HttpSettings

PLACE: Final = "refs/draftsman/follow/"


@dataclass(frozen=True, slots=True)
class BranchWork:
    """The work on a branch, to go on from: `work` has its tree, on top of `base`."""

    work: str
    base: str
    parents: tuple[str, ...]
    """The parents of the next commit: the head, and the base if that has to be merged."""


async def branch_work(
    data_dir: Path,
    source: str,
    branch: str,
    base_branch: str,
    base: str,
    *,
    job: int,
    http: HttpSettings | None,
    login: Login | None,
) -> BranchWork | None:
    """Return the work on a branch of the source, with commits of people; None if it is gone.

    If it conflicts with the base branch as it is now, this is the new base, and the files of the
    work have the conflict markers of the merge. Raises Failure with origin `git`.
    """
    repo = RepoSource.of(source, http, login)
    mirror = await open_mirror(data_dir, repo)
    names = {"head": f"{HEADS}{branch}", "tip": f"{HEADS}{base_branch}"}
    tips = await repo.tips(mirror, list(names.values()))
    head = tips.get(names["head"])
    tip = tips.get(names["tip"])
    if head is None:
        return None
    prefix = f"{PLACE}{job}/"
    specs = [f"+{ref}:{prefix}{name}" for name, ref in names.items() if ref in tips]
    await repo.fetch_refs(mirror, specs)
    if tip is None or (tree := await conflicting_merge(mirror, head, tip)) is None:
        return BranchWork(head, base, (head,))
    commit = await git("commit-tree", tree, "-p", tip, "-m", "merge", cwd=mirror)
    work = commit.decode().strip()
    await git("update-ref", f"{prefix}work", work, cwd=mirror)
    return BranchWork(work, tip, (head, tip))
