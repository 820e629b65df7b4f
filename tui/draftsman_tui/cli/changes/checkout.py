"""The `checkout` command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from draftsman.errors import Refused, UsageError
from draftsman_tui.changes.published_work import fetch, published_work, set_branch
from draftsman_tui.changes.user_repository import UserRepository
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.ids import JobRef

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
        work = await published_work(rt, await number_of(rt, job))
    repository = UserRepository.at(folder)
    existing = None if detach else _existing_tree(repository, work.branch, path, worktree=worktree)
    if existing is not None:
        repository = existing
    if existing is not None or not worktree:
        repository.check_clean("--detach" if worktree else "--worktree")
    commit = fetch(repository, work)
    target = commit if detach else work.branch
    if not detach:
        set_branch(repository, work, commit)
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
