"""The commands `checkout` and `apply`, which change the repository of a person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from draftsman.actions import changes as actions
from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.perform import act
from draftsman_tui.terminal import params
from draftsman_tui.terminal.results import result_line

if TYPE_CHECKING:
    from draftsman.ids import JobRef

FOLDER = click.Path(file_okay=False, path_type=Path)


@command(
    "checkout",
    section="Changes",
    examples=(
        "draftsman checkout D-142",
        "draftsman checkout D-142 --detach",
        "cd $(draftsman checkout D-142 --worktree)",
    ),
    does=(actions.checkout,),
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
        result = await act(
            app,
            rt,
            actions.checkout,
            await number_of(rt, job),
            folder=folder,
            detach=detach,
            worktree=worktree,
            path=path,
            prints=app.json,
        )
    if not app.json:  # stdout has the folder alone
        app.out.print_stderr(result_line(result))
        if worktree:
            app.out.write(f"{result.value}\n")


# The `apply` command.


@command(
    "apply",
    section="Changes",
    examples=(
        "draftsman apply D-142",
        "draftsman apply D-142/3 --check",
        "draftsman apply D-142 --reverse",
    ),
    does=(actions.apply,),
)
@click.argument("job", metavar="JOB[/QUESTION]", type=params.QUESTION)
@click.option("--check", is_flag=True, help="Only test whether the changes apply.")
@click.option("--reverse", is_flag=True, help="Undo the changes.")
@click.option("--dirty", is_flag=True, help="Apply despite local changes, without merging.")
@click.option("-C", "folder", type=FOLDER, default=".", help="Your repository. Default: .")
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
        await act(
            app,
            rt,
            actions.apply,
            await number_of(rt, job[0]),
            folder=folder,
            question=job[1],
            check=check,
            reverse=reverse,
            dirty=dirty,
        )
