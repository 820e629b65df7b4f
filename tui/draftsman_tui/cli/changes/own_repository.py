"""The commands `checkout` and `apply`, which change the repository of a person."""

from __future__ import annotations

from pathlib import Path

import click

from draftsman.agent_runs.changes.diff import changed_files
from draftsman.errors import Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.ids import JobRef, job_name
from draftsman_tui.changes.user_repository import (
    UserRepository,
    fetch,
    patch_of,
    published_work,
    reason_of,
    set_branch,
)
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.terminal import params

FOLDER = click.Path(file_okay=False, path_type=Path)


@command(
    "checkout",
    section="Changes",
    examples=(
        "draftsman checkout D-142",
        "draftsman checkout D-142 --detach",
        "cd $(draftsman checkout D-142 --worktree)",
    ),
)
@click.argument("job", type=params.JOB_OF)
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
    folder = repository.working_tree_of(branch)
    if folder is None or (folder == repository.top and not worktree):
        return None
    if worktree and folder != repository.top and path in (None, folder):
        return UserRepository(folder)
    raise Refused(f"{branch} is already checked out in {folder}; go there, or use --detach")


# The `apply` command.


@command(
    "apply",
    section="Changes",
    examples=(
        "draftsman apply D-142",
        "draftsman apply D-142/3 --check",
        "draftsman apply D-142 --reverse",
    ),
)
@click.argument("job", metavar="JOB[/QUESTION]", type=params.QUESTION)
@click.option("--check", is_flag=True, help="Only test whether the changes apply.")
@click.option("--reverse", is_flag=True, help="Undo the changes.")
@click.option("--dirty", is_flag=True, help="Apply despite local changes, without merging.")
@click.option(
    "-C",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    help="Your repository. Default: .",
)
async def apply(
    app: App,
    job: tuple[JobRef, int | None],
    check: bool,
    reverse: bool,
    dirty: bool,
    folder: Path,
) -> None:
    """Apply the changes of a job to your working tree.

    Changes are merged into files that have changed since. Conflicts are left in the files, and the
    exit code is 1. --reverse needs no --dirty while these files have no other changes.
    """
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job[0])
        patch = await patch_of(rt, number, job[1])
    repository = UserRepository.at(folder)
    flags = ["--whitespace=nowarn", *(["--reverse"] if reverse else [])]
    merge = False
    if check:
        flags.append("--check")
    elif reverse and _is_staged(repository, patch):
        flags.append("--index")
    elif not dirty:
        repository.check_clean("--dirty")
        merge = True
        flags.append("--3way")
    done = repository.attempt("apply", *flags, "-", stdin=patch)
    conflicts = repository.git("diff", "--name-only", "--diff-filter=U").splitlines()
    if done.returncode and not (conflicts and not dirty):
        raise Refused(f"{job_name(number)} does not apply: {reason_of(done.stderr)}")
    files = [name for name, _, _ in changed_files(patch.decode("utf-8", "replace"))]
    unchanged = merge and repository.attempt("diff", "--quiet", "HEAD").returncode == 0
    if app.json:
        app.out.document(
            {"job": job_name(number), "path": str(repository.top), "files": files}
            | {"applied": not (check or unchanged), "conflicts": conflicts}
        )
    verb = "applies" if check else ("was taken back" if reverse else "applied")
    count = counted(len(files), "file")
    if conflicts:
        names = ", ".join(conflicts[:5])
        raise Refused(f"{job_name(number)} {verb} with conflicts; resolve them: {names}")
    if unchanged:
        has = "does not have" if reverse else "already has"
        app.out.info(f"{repository.top} {has} the changes of {job_name(number)}; nothing changed")
    else:
        app.out.info(f"{repository.top}: {job_name(number)} {verb} ({count})")


def _is_staged(repository: UserRepository, patch: bytes) -> bool:
    """Return whether the index and the working tree both have the changes, as `apply` leaves them.

    They are taken back from both, else the next commit would have them.
    """
    return not repository.attempt(
        "apply", "--check", "--reverse", "--index", "-", stdin=patch
    ).returncode
