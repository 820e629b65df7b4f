"""The `checkout` command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import Refused, UsageError
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.changes.user_repository import UserRepository, reason_of
from draftsman_tui.common import params
from draftsman_tui.common.text.artifact_text import no_diff_reason

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.runtime import Runtime

FOLDER = click.Path(file_okay=False, path_type=Path)


@command(
    "checkout",
    examples=(
        "draftsman checkout D-142",
        "draftsman checkout D-142 --detach",
        "cd $(draftsman checkout D-142 --worktree)",
    ),
)
@click.argument("job", type=params.JOB)
@click.option("--detach", is_flag=True, help="Check out the commit, without a branch.")
@click.option("--worktree", is_flag=True, help="In a new working tree beside the repository.")
@click.option("--path", type=FOLDER, help="Folder of the new working tree; default: REPO-D-142.")
@click.option("-C", "folder", type=FOLDER, default=".", help="Your repository. Default: .")
async def checkout(
    app: App, job: JobRef, detach: bool, worktree: bool, path: Path | None, folder: Path
) -> None:
    """Check out the branch of a job in your own repository.

    Nothing is changed if you have local changes, or if your branch of that name has other commits.
    """
    if path is not None and not worktree:
        raise UsageError("--path requires --worktree")
    async with app.runtime(read_only=True) as rt:
        work = await _published(rt, await number_of(rt, job))
    repository = UserRepository.at(folder)
    existing = None if detach else _existing_tree(repository, work.branch, path, worktree=worktree)
    if existing is not None:
        repository = existing
    if existing is not None or not worktree:
        repository.check_clean("--detach" if worktree else "--worktree")
    commit = _fetch(repository, work)
    target = commit if detach else work.branch
    if not detach:
        _set_branch(repository, work, commit)
    if existing is not None:
        place = existing.top
    elif worktree:
        place = (path or repository.top.with_name(f"{repository.top.name}-{work.job}")).absolute()
        flag = ("--detach",) if detach else ()
        repository.switch("worktree", "add", "--quiet", *flag, str(place), target)
    else:
        place = repository.top
        repository.switch("checkout", "--quiet", *(("--detach",) if detach else ()), target, "--")
    head = UserRepository(place).git("rev-parse", "HEAD")
    app.out.info(f"{place}: {'detached' if detach else f'branch {work.branch}'} at {head[:12]}")
    if app.json:
        branch = None if detach else work.branch
        document = {"job": work.job, "branch": branch, "commit": head, "path": str(place)}
        app.out.document(document)
    elif worktree:
        app.out.write(f"{place}\n")


def _existing_tree(
    repository: UserRepository, branch: str, path: Path | None, *, worktree: bool
) -> UserRepository | None:
    """Return the other working tree of an earlier `--worktree`; raises Refused if it is in the way.

    git checks out a branch in a single working tree.
    """
    place = repository.working_tree_of(branch)
    if place is None or (place == repository.top and not worktree):
        return None
    if worktree and place != repository.top and path in (None, place):
        return UserRepository(place)
    raise Refused(f"{branch} is already checked out in {place}; go there, or use --detach")


@dataclass(frozen=True, slots=True)
class PublishedWork:
    """The branch of a job, its commit, and the repository where it is."""

    job: str
    branch: str
    commit: str
    source: str


async def _published(rt: Runtime, number: int) -> PublishedWork:
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


def _fetch(repository: UserRepository, work: PublishedWork) -> str:
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


def _set_branch(repository: UserRepository, work: PublishedWork, commit: str) -> None:
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
