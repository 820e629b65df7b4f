"""The branch of a job, brought into the repository of a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from draftsman.errors import Refused
from draftsman_tui.changes.user_repository import UserRepository, reason_of
from draftsman_tui.entities.artifacts import no_diff_reason

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@dataclass(frozen=True, slots=True)
class PublishedWork:
    """The branch of a job, its commit, and the repository where it is."""

    job: str
    branch: str
    commit: str
    source: str


async def published_work(rt: Runtime, number: int) -> PublishedWork:
    """Return the published work of a job; raises Refused."""
    job, runs = await rt.read_model.job(number), await rt.read_model.runs(number)
    result: dict[str, Any] = job.result or {}
    sources = [run.params_snapshot["repo"] for run in runs if "repo" in run.params_snapshot]
    branch, commit = result.get("branch"), result.get("commit")
    if not isinstance(branch, str) or not isinstance(commit, str) or not sources:
        patch = await rt.checkpoints.patch(number)
        if patch is None or patch.size == 0:
            raise Refused(await no_diff_reason(rt, job.name, number, missing=False))
        text = f"{job.name} has no published branch; to use its changes: draftsman apply {job.name}"
        raise Refused(text)
    return PublishedWork(job.name, branch, commit, str(sources[-1]))


def fetch(repository: UserRepository, work: PublishedWork) -> str:
    """Return the newest commit of the branch, which has that of the job."""
    source = repository.source_of(work.source)
    if source is None:
        commit = repository.commit_of(f"refs/heads/{work.branch}") or work.commit
    else:
        ref = f"refs/heads/{work.branch}"
        done = repository.attempt("fetch", "--quiet", "--no-tags", "--", source, ref)
        if done.returncode:
            raise Refused(f"cannot fetch {work.branch} of {source}: {reason_of(done.stderr)}")
        commit = repository.git("rev-parse", "FETCH_HEAD")
    if repository.commit_of(work.commit) is None or not repository.is_ancestor(work.commit, commit):
        text = f"{work.branch} of {work.source} does not have the commit {work.commit[:12]}"
        raise Refused(f"{text} of {work.job}; to use its changes: draftsman apply {work.job}")
    if source is not None and repository.attempt("merge-base", "HEAD", commit).returncode == 1:
        text = f"{repository.top} has no commit in common with {work.source}"
        raise Refused(f"{text}; use a clone of that repository")
    return commit


def set_branch(repository: UserRepository, work: PublishedWork, commit: str) -> None:
    """Create the person's branch, or move it forward; raises Refused if it has other commits."""
    existing = repository.commit_of(f"refs/heads/{work.branch}")
    if existing is None:
        repository.git("branch", "--no-track", work.branch, commit)
    elif repository.is_ancestor(commit, existing):
        return  # with commits of the person on top
    elif not repository.is_ancestor(existing, commit):
        text = f"your branch {work.branch} has other commits ({existing[:12]})"
        raise Refused(f"{text}; rename it, or use --detach")
    elif repository.attempt("symbolic-ref", "--short", "-q", "HEAD").stdout.decode().strip() == (
        work.branch
    ):
        repository.switch("merge", "--quiet", "--ff-only", commit)
    else:
        repository.git("branch", "--quiet", "--force", work.branch, commit)


def check_out(repository: UserRepository, work: PublishedWork) -> str:
    """Check out the branch in the working tree; return its commit. Raises Refused."""
    place = repository.working_tree_of(work.branch)
    if place is not None and place != repository.top:
        raise Refused(f"{work.branch} is already checked out in {place}")
    repository.check_clean(f"draftsman checkout {work.job} --worktree")
    set_branch(repository, work, fetch(repository, work))
    repository.switch("checkout", "--quiet", work.branch, "--")
    return repository.git("rev-parse", "HEAD")
